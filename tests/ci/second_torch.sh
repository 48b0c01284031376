#!/usr/bin/env bash
# Build the torch engine against a newer PyTorch in a virtual environment, and run every engine test with
# it. Then run the benchmarks against that PyTorch and torchvision.
#
#   tests/ci/second_torch.sh [BUILD]      BUILD: default build/torch-2.11
#
# TORCH_VERSION picks another version (default 2.11.0).
set -euo pipefail
cd "$(dirname "$0")/../.."

build=${1:-build/torch-2.11}
version=${TORCH_VERSION:-2.11.0}
venv=$build/venv

mkdir -p "$build"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c "import torch, sys; sys.exit(torch.__version__.split('+')[0] != '$version')" \
  2>/dev/null || "$venv/bin/pip" install --quiet --disable-pip-version-check "torch==$version"
# Headers that NCCL's ask for and PyTorch does not bring; where there are none it is left out.
"$venv/bin/pip" install --quiet --disable-pip-version-check 'cuda-toolkit[cccl,crt]' ||
  echo "without the headers of cuda-toolkit[cccl,crt]: NCCL is left out" >&2
# Headers that declarations of the program are compared with.
"$venv/bin/pip" install --quiet --disable-pip-version-check nvidia-nvml-dev
torch=$("$venv/bin/python" -c 'import os, torch; print(os.path.dirname(torch.__file__))')

generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DRFL_WERROR=ON \
  -DRFL_TORCH=ON -DCMAKE_PREFIX_PATH="$torch"
cmake --build "$build" --target engine_tests

# The tests would skip without the plugin, which here would be a failure.
want=engine_torch-${version%.*}
plugin=$(ls "$build/lib/roofline/plugins/$want"-*.so)
# No test runs its part for GPUs, but it is compiled and its symbols are found when it is loaded.
readelf -d "$plugin" | grep -F '[libc10_cuda.so]'
xml=$(readlink -f "$build")/tests.xml
# The largest goldens are left to the first round: smaller ones have the same operations.
ctest --test-dir "$build" -j2 -L engine -E '^engine/verify_(vgg16|bf16_vgg16|resnet50_nchw)$' \
  --output-on-failure --no-tests=error --output-junit "$xml"
tests/ci/skipped.py "$xml"

# A PyTorch built with CUDA brings CUPTI, which knows all chips without having one. Its tests skip
# where it is not found, which here would be a failure.
cupti=$(ls "$torch"/../nvidia/*/lib/libcupti.so.1[23] | head -n 1)
RFL_CUPTI_PATH=$(dirname "$cupti") \
  ctest --test-dir "$build" -L cupti --output-on-failure --no-tests=error | tee "$build/cupti.log"
if grep -q Skipped "$build/cupti.log"; then
  echo "a test of CUPTI was skipped though $cupti is there" >&2
  exit 1
fi

# The loader against torchvision's transforms, and steps of a language model against PyTorch's, whose losses
# must agree. Both are short: their figures are for the log.
if "$venv/bin/pip" install --quiet --disable-pip-version-check "torch==$version" torchvision; then
  tests/bench/loader.sh --build "$build" --python "$venv/bin/python" --steps 4
  tests/bench/training.sh --build "$build" --python "$venv/bin/python" --steps 4 --threads 1 \
    tiny_lm:4:{composed,naive,sdpa}:fp32:32
else
  echo "skipped: the benchmarks: there is no torchvision for PyTorch $version" >&2
fi
