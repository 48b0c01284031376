#!/usr/bin/env bash
# Training throughput of the torch engine against the same loop in Python on the same libtorch. Both
# sides take turns step by step, in processes of their own; the ratio is the median over pairs of
# neighbouring steps, so that noise which lasts longer than a step meets both.
#
#   tests/bench/training.sh [--build DIR] [--python PYTHON] [--steps N] [CASE...]
#
# CASE is model:batch:layout, default: resnet50:8 vgg16:4 mobilenet_v2:8, each in nchw and nhwc.
# PYTHON (default /usr/bin/python3) needs torch and torchvision of the version that the plugin in
# DIR (default build/release) was built against: Debian's python3-torch and python3-torchvision, or
# a virtual environment with torch==2.11.0 and torchvision==0.26.0.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../../build/release python=/usr/bin/python3 steps=20 warmup=4
cases=()
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift 2 ;;
    --python) python=$2; shift 2 ;;
    --steps) steps=$2; shift 2 ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "training.sh: unknown option '$1'" >&2; exit 2 ;;
    *) cases+=("$1"); shift ;;
  esac
done
if [ ${#cases[@]} -eq 0 ]; then
  cases=(resnet50:8:nchw resnet50:8:nhwc vgg16:4:nchw vgg16:4:nhwc mobilenet_v2:8:nchw
    mobilenet_v2:8:nhwc)
fi
threads=$(nproc)
cmake --build "$build" --target bench_steps >/dev/null

printf '%-13s %5s %-6s %10s %12s %7s %15s\n' model batch layout 'Python ms' 'roofline ms' ratio quartiles
for one in "${cases[@]}"; do
  IFS=: read -r model batch layout <<<"$one"
  read -r a b ratio low high < <("$python" "$here/lockstep.py" "$steps" "$warmup" \
    -- "$python" "$here/torch_loop.py" "$model" "$batch" "$layout" "$threads" \
    -- "$build/tests/bench/bench_steps" "$build/lib/roofline/plugins" "$model" "$batch" "$layout" \
    "$threads")
  printf '%-13s %5s %-6s %10s %12s %7s %15s\n' "$model" "$batch" "$layout" "$a" "$b" "$ratio" \
    "$low - $high"
done
echo "ratio: throughput of roofline over that of Python; $threads threads, $steps pairs of steps," \
  "torch $("$python" -c 'import torch; print(torch.__version__)')"
