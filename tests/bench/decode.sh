#!/usr/bin/env bash
# Tokens per second of roofline's decode against transformers with a static cache, same kernels: pairs
# of runs that take turns, the median step of each, and the median of the pairs' ratios.
#
#   tests/bench/decode.sh [--build DIR] [--python PYTHON] [--pairs N] [--threads N] [BATCH:PAST:fp32|bf16...]
#
# PYTHON needs the torch that the plugin in DIR was built against, and transformers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../../build/torch-2.11 python=/usr/bin/python3 pairs=5 threads=$(nproc) cases=()
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift 2 ;;
    --python) python=$2; shift 2 ;;
    --pairs) pairs=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) cases+=("$1"); shift ;;
  esac
done
[ ${#cases[@]} -gt 0 ] || cases=(1:64:fp32 1:1024:fp32 4:64:bf16 1:64:bf16)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
printf '%6s %6s %-5s %14s %13s %7s\n' batch past type 'transformers ms' 'roofline ms' ratio
for one in "${cases[@]}"; do
  IFS=: read -r batch past type <<<"$one"
  dtype=float32
  [ "$type" = fp32 ] || dtype=bfloat16
  : >"$logs/theirs"; : >"$logs/ours"; : >"$logs/ratios"
  for ((i = 0; i < pairs; i++)); do
    theirs=$("$python" "$here/torch_decode.py" "$past" 24 "$batch" $dtype "$threads" 2>/dev/null | median)
    "$build/bin/roofline" -q run --arch smollm2_135m --mode decode --past "$past" --iters 24 --warmup-iters 3 \
      --batch-size "$batch" --precision "$type" --threads "$threads" --backend cpu --engine torch \
      --log-dir "$logs/$one$i" >/dev/null 2>&1
    ours=$(cut -d, -f 7 "$logs/$one$i"/steps/*.csv | tail -n +2 | median)
    echo "$theirs" >>"$logs/theirs"; echo "$ours" >>"$logs/ours"
    awk "BEGIN { print $theirs / $ours }" >>"$logs/ratios"
  done
  printf '%6d %6d %-5s %14.1f %13.1f %7.2f\n' "$batch" "$past" "$type" "$(median <"$logs/theirs")" \
    "$(median <"$logs/ours")" "$(median <"$logs/ratios")"
done
