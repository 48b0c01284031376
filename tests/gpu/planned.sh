#!/usr/bin/env bash
# The planned engine on a machine with an NVIDIA GPU: reference files, what must be equal, memory, and
# throughput beside the torch engine. Everything is recorded.
#
#   tests/gpu/planned.sh [--quick] ROOFLINE DIR
#
# DIR is a directory for the records (made when absent). --quick takes one small model and few steps, as
# for fakes. Exit 0 when every check holds, 1 when one does not, 77 without a GPU. See README.md.
set -uo pipefail

quick=0
if [ "${1:-}" = --quick ]; then
  quick=1
  shift
fi
if [ $# -ne 2 ]; then
  echo "usage: $0 [--quick] ROOFLINE DIR" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
roofline=$(realpath "$1")
golden=$here/../data/golden
mkdir -p "$2" && cd "$2" || exit 1
# shellcheck source=tests/gpu/record.sh
. "$here/record.sh"

# burst NAME ENGINE MODEL:BATCH OPTION...: a run; its losses are in NAME.losses
burst() {
  local name=$1 engine=$2 model=${3%%:*} batch=${3##*:}
  shift 3
  record "run-$name" "$roofline" run --arch "$model" --synthetic --backend cuda --engine "$engine" \
    --batch-size "$batch" --channels-last --warmup-iters "$warmup" --iters "$iters" --log-dir logs "$@" || return 1
  sed -n 's/.*: ok.* loss \([^ ]* -> [^ ]*\).*/\1/p' "run-$name.err" "run-$name.out" >"run-$name.losses"
}

warmup=10 iters=60 models="resnet50:256 vgg16:64 mobilenet_v2:256" precisions="fp32 tf32 bf16 fp16"
engines="planned torch" files=("$golden"/zoo/{alexnet,densenet121,efficientnet_b0,googlenet_aux,inception_v3}.json
  "$golden"/zoo/{mobilenet_v2,mobilenet_v3_small,regnet_y_400mf,resnet18,shufflenet_v2_x1_0,squeezenet1_1,vgg16}.json
  "$golden"/train_{cifar_cnn,resnet18,resnet50,vgg16,mobilenet_v2}.json)
if [ $quick = 1 ]; then
  warmup=3 iters=2 models=cifar_cnn:4 precisions=fp16 engines=planned
  files=("$golden/zoo/cifar_cnn.json" "$golden/train_cifar_cnn.json")
fi

: >summary.txt
rm -rf logs
record version "$roofline" version
record engines "$roofline" list engines
record smi nvidia-smi -q
if ! record probe "$roofline" verify --backend cuda --engine planned "$golden/zoo/cifar_cnn.json"; then
  if [ "$(cat probe.exit)" = 77 ]; then
    say skipped "$(tail -1 probe.err)"
    exit 77
  fi
fi

# 1 the reference files
for precision in fp32 bf16; do
  if record "verify-$precision" "$roofline" verify --backend cuda --engine planned --layout nhwc \
    --precision $precision "${files[@]}"; then
    hold "reference files, $precision: $(tail -1 "verify-$precision.out")"
  else
    break_ "reference files, $precision: $(grep -c differs "verify-$precision.out") differ: verify-$precision.out"
  fi
done

# 2 equal runs, a recorded step, and the same with cuDNN's choice by time
one=${models%% *}
if burst det1 planned "$one" --deterministic; then
  for form in "det2" "graph --cuda-graph"; do
    name=${form%% *}
    # shellcheck disable=SC2086 # an option, or none
    if burst "$name" planned "$one" --deterministic ${form#"$name"}; then
      if cmp -s run-det1.losses "run-$name.losses"; then
        hold "$form: the losses of the first run ($(cat run-det1.losses))"
      else
        break_ "$form: $(cat "run-$name.losses") instead of $(cat run-det1.losses)"
      fi
    else
      break_ "$form: $(tail -1 "run-$name.err")"
    fi
  done
else
  break_ "deterministic run: $(tail -1 run-det1.err)"
fi

# 3 throughput of both engines in turns
for one in $models; do
  for precision in $precisions; do
    for form in "plain" "benchmark --cudnn-benchmark" "graph --cuda-graph"; do
      name=${form%% *}
      for engine in $engines; do
        # shellcheck disable=SC2086 # an option, or none
        burst "$engine-${one%%:*}-$precision-$name" "$engine" "$one" --precision "$precision" ${form#"$name"} ||
          break_ "$engine, $one, $precision, $form: $(tail -1 "run-$engine-${one%%:*}-$precision-$name.err")"
      done
    done
  done
done
record compare "$roofline" compare --by engine
say record "both engines side by side: compare.out"
exit $failed
