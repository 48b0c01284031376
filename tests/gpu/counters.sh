#!/usr/bin/env bash
# Counters on a machine with a GPU: what can be checked against known work, and what has to be seen
# once on hardware. Everything is recorded.
#
#   tests/gpu/counters.sh ROOFLINE DIR
#
# ROOFLINE is the program, DIR a folder for the records (made when absent). Exit 0 when every check
# holds, 1 when one does not, 77 without a GPU or where its counters may not be read. See README.md.
set -uo pipefail

if [ $# -ne 2 ]; then
  echo "usage: $0 ROOFLINE DIR" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
roofline=$(realpath "$1")
mkdir -p "$2" && cd "$2" || exit 1
# shellcheck source=tests/gpu/record.sh
. "$here/record.sh"

# state CHECK.out ROW: the second column of the row of `counters check --format csv`
state() { awk -F, -v row="$2" '$1 == row { print $2; exit }' "$1"; }

: >summary.txt
record version "$roofline" version
record smi nvidia-smi -q
[ -r /proc/driver/nvidia/params ] && cp /proc/driver/nvidia/params params.txt

# 1 what is in the way, and where permission is refused
record check "$roofline" counters check --no-self-test --format csv
if [ "$(state check.out device)" != ok ]; then
  say skipped "no GPU: $(head -1 check.err)"
  exit 77
fi
if [ "$(state check.out permission)" != ok ]; then
  say skipped "counters may not be read here: see check.out"
  exit 77
fi
hold "driver, device, CUPTI and permission"

# 2 known bytes and FLOPs, in every data type: the ratios are in the records
for precision in fp32 tf32 bf16 fp16; do
  record "selftest-$precision" "$roofline" counters check --precision $precision --format csv
  if [ "$(state "selftest-$precision.out" permission)" != ok ]; then
    say skipped "counters are refused when counting begins: see selftest-$precision.out"
    exit 77
  fi
  off=$(awk -F, '$1 ~ /^self-test/ && $2 == "failed" { print $1 ": " $3 }' \
    "selftest-$precision.out")
  if [ -n "$off" ]; then
    break_ "self-test $precision: $off"
  elif grep -q '^self-test.*,ok,' "selftest-$precision.out"; then
    hold "self-test $precision: $(awk -F, '$1 ~ /^self-test/ { printf "%s %s; ", $1, $3 }' \
      "selftest-$precision.out")"
  else
    break_ "self-test $precision: nothing was counted"
  fi
done

# 3 the self-test again and again: how far counts of the same work stray
for i in 1 2 3 4 5; do
  record "repeat-$i" "$roofline" counters check --format csv
done
say record "five self-tests: repeat-*.out"

# 4 a network, where an engine serves the GPU
if ! "$roofline" list engines --format csv | grep -q ',ok,'; then
  say skipped "no engine is usable: runs are left out"
  exit $failed
fi
burst() { # burst LABEL OPTIONS...
  local label=$1
  shift
  record "run-$label" "$roofline" run --arch resnet50 --synthetic --backend cuda \
    --batch-size 64 --warmup-iters 20 --iters 50 --log-dir logs --label "gpu_resnet50_$label" "$@"
}
if ! burst fp32_bs64_run1 --precision fp32; then
  say skipped "the engine does not train on this GPU: $(tail -1 run-fp32_bs64_run1.err)"
  exit $failed
fi

# 5 phases of three precisions; the idle bytes and the share of matrix products are in the notes
for precision in fp32 tf32 amp; do
  if burst "${precision}_bs64_run2" --precision $precision --counters phase; then
    hold "run $precision with counters"
  else
    break_ "run $precision with counters: $(tail -1 "run-${precision}_bs64_run2.err")"
  fi
done
# 6 the same run once more: how far the bytes of the same step stray; 7 layers; 8 all sets
burst fp32_bs64_run3 --precision fp32 --counters phase
burst fp32_bs64_run4 --precision fp32 --counters layer
burst fp32_bs64_run5 --precision fp32 --counters step \
  --counter-sets core flops audit links kernels self-test
record show "$roofline" counters show logs/counters.csv --by range
record explain "$roofline" counters show logs/counters.csv --explain
say record "counters of the runs: show.out, explain.out, logs/counters.csv"

# 9 the same steps under ncu, where it is installed
if command -v ncu >/dev/null; then
  chip=$(awk -F, '$1 == "chip" { print $3; exit }' check.out)
  metrics=$("$roofline" counters list --chip "$chip" --ncu | sed -n 's/.*--metrics[ =]//p')
  start=$(date +%s.%N)
  record ncu ncu --profile-from-start off --csv --page raw --print-units base \
    --metrics "$metrics" --log-file ncu.csv "$roofline" run --arch resnet50 --synthetic \
    --backend cuda --batch-size 64 --warmup-iters 5 --iters 1 --precision fp32 --in-process \
    --log-dir logs --label gpu_resnet50_fp32_bs64_run6_prof
  awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.3f\n", b - a }' >ncu.seconds
  record ncu-import "$roofline" counters import ncu.csv
  say record "one step under ncu: ncu.csv, ncu-import.out, wall time in ncu.seconds"
fi
exit $failed
