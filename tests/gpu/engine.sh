#!/usr/bin/env bash
# The torch engine on a machine with a GPU: results against the reference files, what must be equal,
# what is watched, and throughput against a Python loop on the same PyTorch. Everything is recorded.
#
#   tests/gpu/engine.sh [--quick] ROOFLINE DIR [PYTHON]
#
# ROOFLINE is the program, DIR a directory for the records (made when absent), PYTHON one that has the
# same PyTorch and torchvision (default python3); without it the comparison is left out. --quick takes
# one model, few steps, two precisions and one layout. Exit 0 when every check holds, 1 when one does not, 77 without a GPU.
# BACKEND=cpu tries the script itself out on a machine without a GPU. See README.md.
set -uo pipefail

quick=0
if [ "${1:-}" = --quick ]; then
  quick=1
  shift
fi
if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  echo "usage: $0 [--quick] ROOFLINE DIR [PYTHON]" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
roofline=$(realpath "$1")
golden=$here/../data/golden
loop=$here/../bench/torch_gpu.py
python=${3:-python3}
backend=${BACKEND:-cuda}
mkdir -p "$2" && cd "$2" || exit 1
runs=0
# shellcheck source=tests/gpu/record.sh
. "$here/record.sh"

# column NAME: of the last row of the ledger
column() {
  "$python" - "$1" <<'PY'
import csv, sys
with open("logs/metrics.csv", newline="") as file:
    print(list(csv.DictReader(file))[-1][sys.argv[1]])
PY
}

# is EXPRESSION: arithmetic of Python
is() { "$python" -c "import sys; nan = float('nan'); sys.exit(not ($1))" 2>/dev/null; }

# burst NAME MODEL BATCH OPTIONS...: a run, its row is the last of the ledger then
burst() {
  local name=$1 model=$2 batch=$3
  shift 3
  runs=$((runs + 1))
  record "run-$name" "$roofline" run --arch "$model" --synthetic --backend "$backend" \
    --batch-size "$batch" --warmup-iters "$warmup" --iters "$iters" --log-dir logs \
    --label "gpu_${model}_${name}_bs${batch}_run${runs}" "$@"
}

warmup=10 iters=100 models="resnet50:64 vgg16:32 mobilenet_v2:64" files="$golden/*.json"
precisions="fp32 tf32 amp bf16" layouts="nchw nhwc"
if [ $quick = 1 ]; then
  warmup=5 iters=10 models="resnet50:8" files="$golden/train_cifar_cnn.json"
  precisions="fp32 bf16" layouts=nchw
fi
if [ "$backend" = cpu ]; then
  models="mobilenet_v2:2"
fi

: >summary.txt
rm -rf logs
record version "$roofline" version
record engines "$roofline" list engines
record smi nvidia-smi -q
if ! "$python" -c '' 2>/dev/null; then
  say skipped "no $python, which reads the ledger here"
  exit 77
fi

# 1 is there a GPU, and an engine for it?
# shellcheck disable=SC2086 # the pattern is meant to be expanded
set -- $files
if ! record probe "$roofline" verify --backend "$backend" "$golden/train_cifar_cnn.json"; then
  if [ "$(cat probe.exit)" = 77 ]; then
    say skipped "$(tail -1 probe.err)"
    exit 77
  fi
fi

# 2 the reference files in fp32
for layout in nchw nhwc; do
  if record "verify-$layout" "$roofline" verify --backend "$backend" --layout $layout "$@"; then
    hold "reference files, fp32, $layout"
  else
    break_ "reference files, fp32, $layout: $(grep -c differs "verify-$layout.out") differ: verify-$layout.out"
  fi
done

# 3 equal runs, and equal losses of a recorded step
set -- "${models%% *}"
model=${1%%:*} batch=${1##*:}
if burst det1 "$model" "$batch" --deterministic; then
  first=$(column loss_last)
  second=''
  burst det2 "$model" "$batch" --deterministic && second=$(column loss_last)
  if [ -n "$first" ] && [ "$first" = "$second" ]; then
    hold "deterministic: the same loss twice ($first)"
  else
    break_ "deterministic: $first and $second"
  fi
  if [ "$backend" = cuda ]; then
    if burst detgraph "$model" "$batch" --deterministic --cuda-graph; then
      third=$(column loss_last)
      if is "abs($third - $first) <= 1e-5 * abs($first)"; then
        hold "--cuda-graph: the loss of ordinary steps ($third, $first)"
      else
        break_ "--cuda-graph: $third and $first"
      fi
    else
      break_ "--cuda-graph: $(tail -1 run-detgraph.err)"
    fi
  fi
else
  break_ "deterministic run: $(tail -1 run-det1.err)"
fi

# 4 what a run says of the GPU
if [ "$backend" = cuda ] && burst facts "$model" "$batch"; then
  for name in device_name pci_bus_id cuda_runtime cuda_driver cudnn_version device_memory_bytes \
    mem_alloc_peak_bytes mem_reserved_peak_bytes sm_clock_mean_hz power_mean_w energy_j_per_step \
    temperature_max_c launch_gap fwd_ms_mean bwd_ms_mean opt_ms_mean; do
    value=$(column $name)
    if [ -n "$value" ] && [ "$value" != nan ]; then
      say record "$name $value"
    else
      break_ "$name is not known"
    fi
  done
  if is "0 <= $(column launch_gap) < 1 and $(column mem_alloc_peak_bytes) <= \
    $(column mem_reserved_peak_bytes) <= $(column device_memory_bytes)"; then
    hold "launch gap between 0 and 1; allocated <= reserved <= the device's memory"
  else
    break_ "launch gap or memory is not plausible"
  fi
  record estimate "$roofline" complexity --arch "$model" --train --batch-size "$batch" --format json
  say record "memory against the estimate: mem_alloc_peak_bytes above, estimate.out"
fi

# 5 data that is brought at every step: through page-locked memory, beside the work
pins=("")
[ "$backend" = cuda ] && pins+=(--pin-memory)
for pin in "${pins[@]}"; do
  if burst "host${pin:+pin}" "$model" "$batch" --data-mode synthetic-host ${pin:+"$pin"}; then
    say record "synthetic-host${pin:+ $pin}: upload $(column upload_ms_mean) ms, step $(column step_ms_mean) ms"
  else
    break_ "synthetic-host $pin: $(tail -1 "run-host${pin:+pin}.err")"
  fi
done

# 6 throughput, ours and Python's in turns
echo "model,batch,precision,layout,graph,ours_img_s,python_img_s,ratio" >throughput.csv
for one in $models; do
  model=${one%%:*} batch=${one##*:}
  for precision in $precisions; do
    [ "$backend" = cpu ] && [ $precision = tf32 ] && continue
    for layout in $layouts; do
      for graph in "" --cuda-graph; do
        [ "$backend" = cpu ] && [ -n "$graph" ] && continue
        options=(--precision "$precision")
        [ $layout = nhwc ] && options+=(--channels-last)
        [ -n "$graph" ] && options+=("$graph")
        name=$model-$precision-$layout${graph:+-graph}
        ours='' theirs='' python_graph=''
        if burst "$name" "$model" "$batch" "${options[@]}"; then
          ours=$(column samples_per_s)
        else
          break_ "$name: $(tail -1 "run-$name.err")"
        fi
        [ -n "$graph" ] && [ $precision != amp ] && python_graph=--graph
        if record "python-$name" "$python" "$loop" "$model" "$batch" $layout $precision $python_graph \
          --warmup "$warmup" --iters "$iters" --device "$backend"; then
          theirs=$(cut -d, -f1 "python-$name.out")
        fi
        ratio=$("$python" -c "print('%.3f' % ($ours / $theirs))" 2>/dev/null)
        echo "$model,$batch,$precision,$layout,${graph:+yes},$ours,$theirs,$ratio" | tee -a throughput.csv
      done
    done
  done
done
say record "throughput against Python: throughput.csv"

# 7 training to accuracy: it learns, and continues to the same numbers after a signal
digits=$here/../data/digits # of pack.sh
make_digits=$(dirname "$roofline")/make_digits
if [ ! -d "$digits" ] && [ -x "$make_digits" ]; then
  digits=$PWD/digits
  record digits "$make_digits" --train 3000 --test 500 "$digits"
fi
# tests FILE: the test losses and accuracies of the last device in a report
tests() {
  "$python" - "$1" <<'PY'
import json, sys
with open(sys.argv[1]) as file:
    print([(e["test_loss"], e["test_accuracy"]) for e in json.load(file)["epochs"][-3:]])
PY
}
if [ -d "$digits" ]; then
  train=("$roofline" train --data "$digits" --epochs 3 --batch-size 32 --deterministic --format json)
  if record train "${train[@]}" --devices "cpu,$backend" --log-dir train; then
    whole=$(tests train.out)
    if is "max(accuracy for _, accuracy in $whole) >= 0.97"; then
      hold "training: 97 % of the digits in three epochs"
    else
      break_ "training: test losses and accuracies $whole"
    fi
    say record "training: $(grep -c '"epoch":' train.out) epochs, speed-up $(grep '"speedup"' train.out | tail -1)"
    record train-stopped timeout -s TERM 8 "${train[@]}" --devices "$backend" --log-dir train2 --checkpoint-steps 20
    record train-continued "${train[@]}" --devices "$backend" --log-dir train2 --checkpoint-steps 20 --resume
    again=$(tests train-continued.out)
    if [ "$again" = "$whole" ]; then
      hold "training: continued to the same test losses and accuracies"
    else
      break_ "training: continued to $again instead of $whole"
    fi
  else
    break_ "training: $(tail -1 train.err)"
  fi
else
  say skipped "training: no $make_digits, which writes the data"
fi
exit $failed
