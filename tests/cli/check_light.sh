#!/bin/sh
# `roofline version` and `--help` must start light. The dynamic loader itself says which files it
# loads, at start and by dlopen.   check_light.sh ROOFLINE
set -u
heavy_names='torch|libc10|cuda|cudnn|nvidia|blas|libstdc\+\+|libc\+\+'
# The sanitizers' own runtime needs the C++ library.
"$1" version | grep -q sanitizers && heavy_names=${heavy_names%|libstdc*}
for words in version --help; do
	loaded=$(LD_DEBUG=files "$1" $words 2>&1 >/dev/null |
		sed -n 's/.*file=\([^ ]*\).*needed by.*/\1/p; s/.*file=\([^ ]*\).*dynamically loaded.*/\1/p' |
		sort -u)
	case $loaded in
	*libc.so*) ;;
	*) echo "the loader does not report the C library: this check is blind here" >&2; exit 77 ;;
	esac
	heavy=$(printf '%s\n' "$loaded" | grep -E "$heavy_names")
	if [ -n "$heavy" ]; then
		echo "roofline $words loads: $heavy" >&2
		exit 1
	fi
done
