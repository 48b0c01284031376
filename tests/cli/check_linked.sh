#!/bin/sh
# Neither the program nor a plugin is linked to the CUDA driver or to CUPTI: both are guests that are
# opened when they are asked for.   check_linked.sh ROOFLINE PLUGINS...
set -u
command -v readelf >/dev/null || { echo "readelf is not here: install binutils" >&2; exit 77; }
for file in "$@"; do
	[ -e "$file" ] || continue
	needed=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
	case $needed in
	*libc.so*) ;;
	*) echo "$file: readelf names no C library: this check is blind" >&2; exit 1 ;;
	esac
	if printf '%s\n' "$needed" | grep -E '^lib(cuda|cupti|nvperf|nvidia)[^r]*\.so'; then
		echo "$file is linked to it" >&2
		exit 1
	fi
done
