# A run of two processes waits for both of its GPUs: the second is held by its UUID here.
build=$(dirname "$ROOFLINE")/..
[ -f "$build/tests/fakes/libcuda.so.1" ] || { echo "no fake libraries" >&2; exit 77; }
command -v flock >/dev/null || { echo "no flock" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH=$build/tests/engines ROOFLINE_LOCK_DIR=$PWD/locks RFL_FAKE_DEVICE=cuda
export LD_LIBRARY_PATH=$build/tests/fakes:$build/tests/fakes/nvml FAKE_CUDA=count=2 FAKE_NVML=count=2
sed 's/"threads": 1/"threads": 1, "world": 2/; s/"cpu"/"cuda"/' "$(dirname "$0")/small.json" >m.json
mkdir locks meet
held=locks/roofline-gpu-a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1.lock
: >$held
flock $held sleep 2 &
while flock -n $held true; do :; done
CUDA_VISIBLE_DEVICES=0,1 RFL_FAKE_WORLD=$PWD/meet roofline matrix run m.json --only lab_resnet18_fp32_bs4_run1 2>&1 |
	grep -o 'waiting: .*'
wait
ls locks
CUDA_VISIBLE_DEVICES=GPU-a1a1a1a1,0 RFL_FAKE_WORLD=$PWD/meet roofline matrix run -q m.json --only lab_resnet18_fp32_bs4_run2 >/dev/null 2>&1
ls locks | wc -l
