#!/usr/bin/env bash
# The experiments to run first on a machine with a GPU, most important first: each under a limit,
# its records and verdicts on disk before the next one begins.
#
#   tests/gpu/first.sh [--part 1|2] [--only NAMES] [--limit S] [--most S] [--scale N] ROOFLINE DIR [PYTHON]
#
# ROOFLINE is the program, DIR a directory (made when absent), PYTHON one that has PyTorch (default
# python3). --part takes half of the experiments, --only some (a list with commas); together they may
# take --limit seconds (default 560), and one command --most; on a busy machine, --scale multiplies
# the limits. Records go to DIR/records; what is there
# stays. After each experiment DIR/results.csv, DIR/summary.txt and DIR/records.tar.gz are up to date.
# Where counters cannot be read, the experiments that need them are skipped. Exit 0 when no hypothesis
# fails, 1 when one does, 77 without a GPU. See README.md.
set -uo pipefail

part='' only='' limit=560 most=600 scale=1
while [ $# -gt 0 ]; do
  case $1 in
    --part) part=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    --limit) limit=$2; shift 2 ;;
    --most) most=$2; shift 2 ;;
    --scale) scale=$2; shift 2 ;;
    *) break ;;
  esac
done
if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  echo "usage: $0 [--part 1|2] [--only NAMES] [--limit S] [--most S] [--scale N] ROOFLINE DIR [PYTHON]" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
roofline=$(realpath "$1")
python=${3:-python3}
mkdir -p "$2/records" && cd "$2/records" || exit 1
# shellcheck source=tests/gpu/record.sh
. "$here/record.sh"
"$python" -c '' 2>/dev/null || { echo "$0: no $python, which judges the records" >&2; exit 77; }

# within SECONDS NAME COMMAND...: recorded, with what is left of the time at most. A process that
# survives every signal is abandoned.
within() {
  local left=$((scale * limit - SECONDS)) seconds=$((scale * $1)) name=$2 pid
  shift 2
  [ "$seconds" -gt "$most" ] && seconds=$most
  [ "$seconds" -gt "$left" ] && seconds=$left
  if [ "$seconds" -lt 5 ] && [ "$most" -ge 5 ]; then
    echo "$name: not run, the time is up"
    return 1
  fi
  record "$name" timeout -k 5 "$seconds" "$@" &
  pid=$!
  for ((i = 0; i < 5 * (seconds + 8); i++)); do
    kill -0 $pid 2>/dev/null || break
    sleep 0.2
  done
  if kill -0 $pid 2>/dev/null; then
    echo 137 >"$name.exit"
    return 137
  fi
  wait $pid
}

# burst SECONDS MODEL_PRECISION_BATCH_RUN OPTIONS...
burst() {
  local seconds=$1 label=$2
  shift 2
  [[ $label =~ ^(.*)_([a-z0-9]+)_bs([0-9]+)_run ]]
  within "$seconds" "run-$label" "$roofline" run --arch "${BASH_REMATCH[1]}" --synthetic \
    --backend cuda --batch-size "${BASH_REMATCH[3]}" --warmup-iters 5 --iters 20 \
    --precision "${BASH_REMATCH[2]}" --log-dir logs --label "gpu_$label" "$@"
}

complexity() {
  record "complexity-$1" "$roofline" complexity --models "$1" --batch-sizes "$2" --train --format json
}

# What ncu is asked for: both counts of L2, L1 with and without TMA, the matrix units.
metrics=dram__bytes_read.sum,lts__t_bytes.sum,lts__t_sectors_srcnode_gpc.sum,l1tex__t_bytes.sum
metrics+=,lts__t_sectors_srcunit_ltcfabric.sum,l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum
metrics+=,sm__ops_path_tensor_src_bf16_dst_fp32.sum

# ceilings, beside those of the data sheet
experiment_peaks() {
  within 240 peaks "$roofline" peaks measure --env gpu --backend cuda --output peaks.json
  within 20 peaks-check "$roofline" peaks check peaks.json
  within 20 peaks-devices "$roofline" peaks devices "$(nvidia-smi --query-gpu=name --format=csv,noheader -i 0)"
}
# permission, PTX, ratios of the self-test, links
experiment_check() {
  for p in fp32 tf32 bf16 amp; do
    within 60 "check-$p" "$roofline" counters check --precision $p --format csv
  done
}
# whether instructions are counted in kernels of libtorch, alone and with all that is counted by
# default; vit_b_16 has no Winograd
experiment_patched() {
  complexity vit_b_16 32
  burst 60 vit_b_16_fp32_bs32_run1
  burst 90 vit_b_16_fp32_bs32_run2 --counters phase --counter-sets core
  burst 180 vit_b_16_fp32_bs32_run3 --counters phase --counter-sets core flops
  burst 180 vit_b_16_fp32_bs32_run9 --counters phase
}
# the truth about bytes of L2 and L1 and operations of the matrix units
experiment_ncu() {
  command -v ncu >/dev/null || return 0
  for kernel in add product; do
    within 90 "ncu-$kernel" ncu --csv --page raw --print-units base --clock-control none \
      --profile-from-start off --metrics $metrics --log-file "ncu-$kernel.csv" \
      "$python" "$here/kernels.py" $kernel
  done
}
# FLOPs of the matrix units in each precision, and of all other types beside fp16
experiment_matrix() {
  complexity vit_b_16 32
  burst 60 vit_b_16_bf16_bs32_run4 --counters step --counter-sets core
  burst 60 vit_b_16_tf32_bs32_run5 --counters step --counter-sets core
  burst 60 vit_b_16_fp16_bs32_run6 --counters step --counter-sets core
  burst 90 vit_b_16_amp_bs32_run7 --counters step --counter-sets core audit
}
# reference files, equal runs, throughput against Python
experiment_engine() {
  within 270 engine "$here/engine.sh" --quick "$roofline" engine "$python"
}
# kernel times, ranges of layers, the same step again, links, everything of a step in amp
experiment_kernels() {
  burst 90 resnet50_fp32_bs64_run1 --counters layer --counter-sets core kernels
  burst 60 resnet50_fp32_bs64_run2 --counters step --counter-sets core
  burst 60 resnet50_fp32_bs64_run3 --counters step --counter-sets core links
  burst 150 resnet50_amp_bs64_run4 --counters phase
}
# what idles where, and the power of a window of more than a second
experiment_idle() {
  burst 60 mobilenet_v2_fp32_bs1_run1 --iters 50 --counters step --counter-sets kernels
  burst 60 mobilenet_v2_fp32_bs1_run2 --iters 50 --cuda-graph
  burst 60 vit_b_16_fp32_bs32_run8 --iters 100
}

part1="check peaks patched ncu matrix" part2="idle kernels engine"
need_counters="check patched ncu matrix kernels"
case $part in
  1) experiments=$part1 ;;
  2) experiments=$part2 ;;
  *) experiments="$part1 $part2" ;;
esac
record version "$roofline" version
within 20 smi nvidia-smi -q
[ -r /proc/driver/nvidia/params ] && cp /proc/driver/nvidia/params params.txt
within 60 probe "$roofline" counters check --no-self-test --format csv
if grep -qE '^(driver|device),failed' probe.out; then
  tail -n 1 probe.err >&2
  exit 77
fi
[ "$(cat probe.exit)" = 77 ] || need_counters=
code=0
for experiment in $experiments; do
  case ,${only:-$experiment}, in *,$experiment,*) ;; *) continue ;; esac
  case " $need_counters " in *" $experiment "*) continue ;; esac
  echo "$experiment, after $SECONDS s"
  "experiment_$experiment"
  "$python" "$here/first.py" .. && code=0 || code=1
  tar -czf ../records.tar.gz -C .. records
done
cat ../summary.txt
exit $code
