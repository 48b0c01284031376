#!/usr/bin/env bash
# Training throughput against the same loop in Python on the same libtorch: both sides alternate, so
# that a drift of the machine meets both; medians over rounds of the medians of the steps.
#
#   tests/bench/training.sh [--build DIR] [--python PYTHON] [--rounds N] [--iters N] [CASE...]
#
# CASE is model:batch:layout, default: resnet50:8 vgg16:4 mobilenet_v2:8, each in nchw and nhwc.
# PYTHON (default /usr/bin/python3) needs torch and torchvision of the version that the plugin in
# DIR (default build/release) was built against: Debian's python3-torch and python3-torchvision, or
# a virtual environment with torch==2.11.0 and torchvision==0.26.0.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../../build/release python=/usr/bin/python3 rounds=3 iters=8 warmup=3
cases=()
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift 2 ;;
    --python) python=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --iters) iters=$2; shift 2 ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "training.sh: unknown option '$1'" >&2; exit 2 ;;
    *) cases+=("$1"); shift ;;
  esac
done
if [ ${#cases[@]} -eq 0 ]; then
  cases=(resnet50:8:nchw resnet50:8:nhwc vgg16:4:nchw vgg16:4:nhwc mobilenet_v2:8:nchw
    mobilenet_v2:8:nhwc)
fi
threads=$(nproc)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Median of the numbers on standard input.
median() { sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

# Median step of one run, in ms: the column of the ledger.
ours() {
  rm -rf "$scratch/logs"
  "$build/bin/roofline" run --synthetic --arch "$1" --batch-size "$2" --threads "$threads" \
    --warmup-iters "$warmup" --iters "$iters" --log-dir "$scratch/logs" --env bench "${@:3}" \
    >"$scratch/out" 2>&1 || { cat "$scratch/out" >&2; exit 1; }
  "$python" - "$scratch/logs/metrics.csv" <<'PY'
import csv, sys
print(list(csv.DictReader(open(sys.argv[1])))[-1]["step_ms_median"])
PY
}

theirs() {
  "$python" "$here/torch_loop.py" --arch "$1" --batch-size "$2" --threads "$threads" \
    --warmup-iters "$warmup" --iters "$iters" "${@:3}" | cut -d' ' -f1
}

printf '%-13s %5s %-6s %12s %12s %8s\n' model batch layout 'Python ms' 'roofline ms' ratio
for one in "${cases[@]}"; do
  IFS=: read -r model batch layout <<<"$one"
  flags=()
  [ "$layout" = nhwc ] && flags=(--channels-last)
  : >"$scratch/a"; : >"$scratch/b"
  for _ in $(seq "$rounds"); do
    theirs "$model" "$batch" "${flags[@]}" >>"$scratch/a"
    ours "$model" "$batch" "${flags[@]}" >>"$scratch/b"
  done
  a=$(median <"$scratch/a") b=$(median <"$scratch/b")
  printf '%-13s %5s %-6s %12.1f %12.1f %8.3f\n' "$model" "$batch" "$layout" "$a" "$b" \
    "$(awk -v a="$a" -v b="$b" 'BEGIN { print a / b }')"
done
echo "ratio: throughput of roofline over that of Python; $threads threads, $rounds rounds of $iters steps"
