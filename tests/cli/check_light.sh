#!/bin/sh
# `roofline version` and `--help` must start light, and no command maps a library of CUDA that does
# not ask a GPU. The dynamic loader itself says which files it maps, at start and by dlopen, in the
# program and in its children; stand-ins for driver and CUPTI are where it looks, so that whoever asks
# for them gets them.   check_light.sh ROOFLINE DATA
set -u
heavy_names='torch|libc10|cuda|cudnn|nvidia|blas|libstdc\+\+|libc\+\+'
cuda_names='libcuda|libcupti|libnvperf|libnvidia|libcublas|libcudnn|libnv[A-Z]'
# The sanitizers' own runtime needs the C++ library.
"$1" version | grep -q sanitizers && heavy_names=${heavy_names%|libstdc*}
data=$2
fakes=$(cd "$(dirname "$1")/../tests" && pwd)/fakes
scratch=$(mktemp -d "${TMPDIR:-/tmp}/roofline-light.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT

# loads NAMES COMMAND...: fails when a file with one of these names is loaded
loads() {
	names=$1
	shift
	LD_DEBUG=files LD_DEBUG_OUTPUT="$scratch/loader" LD_LIBRARY_PATH=$fakes "$@" \
		>"$scratch/out" 2>"$scratch/err"
	code=$?
	loaded=$(cat "$scratch"/loader.* |
		sed -n 's/.*file=\([^ ]*\) .*generating link map.*/\1/p' | sort -u)
	rm -f "$scratch"/loader.*
	case $loaded in
	*libc.so*) ;;
	*) echo "the loader does not report the C library: this check is blind here" >&2; exit 77 ;;
	esac
	shift
	if [ $code -ne 0 ]; then
		echo "roofline $*: exit $code" >&2
		cat "$scratch/err" >&2
		exit 1
	fi
	heavy=$(printf '%s\n' "$loaded" | grep -E "$names")
	if [ -n "$heavy" ]; then
		echo "roofline $* loads: $heavy" >&2
		exit 1
	fi
}

for words in version --help; do
	loads "$heavy_names" "$1" $words
done
for words in 'counters list' 'list models' 'list surfaces' 'list importers' 'peaks devices' \
	'complexity --models resnet18' "counters import $data/profile/s05_nvprof_metrics.csv" \
	"counters import $data/profile/s05_nvprof_metrics.csv --output $scratch/counters.csv" \
	"counters show $scratch/counters.csv" 'completion bash'; do
	loads "$cuda_names" "$1" $words
done
# The check itself: a command that does ask loads what there is.
LD_DEBUG=files LD_DEBUG_OUTPUT="$scratch/loader" LD_LIBRARY_PATH=$fakes \
	"$1" -q counters list --chip GH100 >/dev/null 2>&1
if ! grep "generating link map" "$scratch"/loader.* | grep -qE "$cuda_names"; then
	echo "this check does not see that CUPTI is loaded" >&2
	exit 1
fi
rm -f "$scratch"/loader.*

engines=$(dirname "$1")/../tests/engines
if ls "$engines"/engine_fake*.so >/dev/null 2>&1; then
	ROOFLINE_PLUGIN_PATH=$engines
	export ROOFLINE_PLUGIN_PATH
	loads "$cuda_names" "$1" run --engine fake --arch mnist_cnn --synthetic --batch-size 2 \
		--warmup-iters 1 --iters 2 --env cpu --label light --log-dir "$scratch/logs"
fi
