#!/usr/bin/env bash
# Training throughput of an engine against the same loop in Python. Both
# sides take turns step by step, in processes of their own; the ratio is the median over pairs of
# neighbouring steps, so that noise which lasts longer than a step meets both. The ratio of CPU
# times, with --threads 1, is also stable while other programs run.
#
#   tests/bench/training.sh [--build DIR] [--python PYTHON] [--steps N] [--threads N] [--engine NAME]
#                           [--compile] [--malloc kept|default] [CASE...]
#
# glibc returns a tensor of 32 MB or more to the system when it is freed, and its pages are faulted in
# again at the next step, which costs eager PyTorch up to half of its time. Both sides therefore keep
# freed memory: the engine by itself, Python by the environment; --malloc default leaves Python as it
# is. --engine is torch (default) or planned, --compile passes Python's network through torch.compile.
#
# CASE is model:batch:layout:precision, default: resnet50:8 vgg16:4 mobilenet_v2:8, each in nchw and
# nhwc, fp32 and bf16 autocast, or model:batch:attention:precision:context for a language model
# (torch_lm.py), such as S:4:naive:fp32:128; "lm" stands for S at batch 4, fp32, 128 tokens in the three
# forms of attention. A case that fails is shown with dashes (MobileNetV2 in bf16 on 1.13: PyTorch has no
# kernel for the gradient of ReLU6 there). The losses of a language model must agree in every step.
# PYTHON (default /usr/bin/python3) needs torch and torchvision of the version that the plugin in
# DIR (default build/release) was built against: Debian's python3-torch and python3-torchvision, or
# a virtual environment with torch==2.11.0 and torchvision==0.26.0.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../../build/release python=/usr/bin/python3 steps=20 warmup=4 threads=$(nproc) failed=0
engine=torch mode=eager malloc=kept
cases=()
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift 2 ;;
    --python) python=$2; shift 2 ;;
    --steps) steps=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --engine) engine=$2; shift 2 ;;
    --malloc) malloc=$2; shift 2 ;;
    --compile) mode=compile; shift ;;
    -h | --help) sed -n '2,24s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "training.sh: unknown option '$1'" >&2; exit 2 ;;
    lm) cases+=(S:4:{composed,naive,sdpa}:fp32:128); shift ;;
    *) cases+=("$1"); shift ;;
  esac
done
if [ ${#cases[@]} -eq 0 ]; then
  for precision in fp32 bf16; do
    for model in resnet50:8 vgg16:4 mobilenet_v2:8; do
      cases+=("$model:nchw:$precision" "$model:nhwc:$precision")
    done
  done
fi
cmake --build "$build" --target bench_steps >/dev/null
memory=()
[ "$malloc" = default ] ||
  memory=(env MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1 MALLOC_TOP_PAD_=67108864)

row='%-13s %5s %-8s %-9s %-9s %10s %12s %7s %15s %6s\n'
printf "$row" model batch form precision part 'Python ms' 'roofline ms' ratio quartiles CPU
for one in "${cases[@]}"; do
  IFS=: read -r model batch form precision context <<<"$one"
  case_of=("$model" "$batch" "$form" "$threads" "${precision:=fp32}" "${context:=0}")
  parts=$("$python" "$here/lockstep.py" "$steps" "$warmup" \
    -- "${memory[@]}" "$python" "$here/torch_loop.py" "$mode" "${case_of[@]}" \
    -- "$build/tests/bench/bench_steps" "$build/lib/roofline/plugins" "$engine" "${case_of[@]}") ||
    { parts='- - - - - - -' failed=1; }
  while read -r part a b ratio low high cpu; do
    printf "$row" "$model" "$batch" "$form" "$precision" "$part" "$a" "$b" "$ratio" "$low - $high" "$cpu"
  done <<<"$parts"
done
echo "ratio: throughput of roofline ($engine) over that of Python ($mode, $malloc malloc), CPU: by CPU" \
  "time; $threads threads, $steps pairs of steps, torch $("$python" -c 'import torch; print(torch.__version__)')"
exit $failed
