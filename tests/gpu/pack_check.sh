#!/usr/bin/env bash
# A packed directory works from another place, with the PyTorch that a link names: on the CPU here.
#
#   tests/gpu/pack_check.sh BUILD TORCH
#
# TORCH is the directory of the PyTorch that the plugin was built against. Exit 77 where it has not the
# shape of a wheel (Debian's libtorch-dev), which cannot be linked to.
set -euo pipefail

build=$1 torch=$2
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -e "$torch/lib/libtorch_cpu.so" ] || [ ! -e "$torch/version.py" ]; then
  echo "skipped: $torch is no PyTorch of a wheel"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/pack.sh" "$build" "$work/packed"
mv "$work/packed" "$work/carried to"
dir="$work/carried to"

# A PyTorch elsewhere: its directories through links, so that what is loaded shows where it was found.
mkdir -p "$work/site"
ln -s "$(realpath "$torch")" "$work/site/torch"
ln -s "$(realpath "$torch/..")/nvidia" "$work/site/nvidia"
ln -sfn "$work/site/torch" "$dir/lib/roofline/torch"
cd /
"$dir/bin/roofline" list engines | tee "$work/engines"
grep -q 'torch-.* ok ' "$work/engines"
LD_DEBUG=libs LD_DEBUG_OUTPUT="$work/ld" "$dir/bin/roofline" verify --threads 2 \
  "$dir/tests/data/golden/train_cifar_cnn.json" >"$work/verify"
tail -n 1 "$work/verify"
for library in libtorch_cpu.so libc10.so; do
  grep -q "calling init: $dir/lib/roofline/plugins/../torch/lib/$library" "$work"/ld.* || {
    echo "$library was not loaded through lib/roofline/torch" >&2
    exit 1
  }
done

# CUPTI is found through the link as well: the loader has a driver, but no CUPTI.
ls "$torch"/../nvidia/*/lib/libcupti.so.1[23] >/dev/null 2>&1 || exit 0
mkdir "$work/loader"
ln -s "$(realpath "$build/tests/fakes/libcuda.so.1")" "$work/loader"
touch "$work/loader/libcupti.so.12" "$work/loader/libcupti.so.13"
unset CUDA_HOME CUDA_PATH RFL_CUPTI_PATH
LD_LIBRARY_PATH=$work/loader "$dir/bin/roofline" counters check --no-self-test --format csv \
  >"$work/check" || true
grep "^CUPTI,ok,\"$dir/lib/roofline/torch/lib/" "$work/check" || {
  cat "$work/check" >&2
  exit 1
}
