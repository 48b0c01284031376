#!/usr/bin/env bash
# A matrix killed with SIGKILL at ten random moments and begun again each time: in the end every
# configuration has exactly its number of ok rows, no line is torn, no row is lost, and no child has
# outlived its parent.
#
#   kill.sh ROOFLINE ENGINES ENGINE [SEED]      ENGINE: fake or torch
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
roofline=$(readlink -f "$1")
if [ -n "$2" ]; then ROOFLINE_PLUGIN_PATH=$(readlink -f "$2") && export ROOFLINE_PLUGIN_PATH; fi
engine=$3
seed=${4:-20251114}
command -v python3 >/dev/null || { echo "skipped: no python3 to look at the ledger" >&2; exit 77; }
. "$here/../killing.sh"
[ "$engine" = fake ] || needs_torch
cd "$dir"
mkdir locks
export ROOFLINE_LOCK_DIR=$dir/locks RFL_FAKE_PID=$dir/child RFL_FAKE_MS=12,12,6

case $engine in
fake) models='"resnet18", "alexnet"' batches=2,4 runs=12 repeats=3 size=64 ;;
*) models='"resnet18"' batches=2,4 runs=4 repeats=2 size=32 ;;
esac
cat >matrix.json <<TEXT
{"schema": "roofline.matrix/1", "name": "kill", "repeats": $repeats,
 "environments": [{"name": "lab", "backend": "cpu"}],
 "models": [$models], "batch_sizes": [$batches], "precisions": ["fp32"],
 "options": {"engine": "$engine", "synthetic": true, "image-size": $size, "warmup-iters": 1, "iters": 10, "threads": 1}}
TEXT

rows() { if [ -f logs/metrics.csv ]; then wc -l <logs/metrics.csv; else echo 0; fi; }

# A zombie that nobody has waited for is dead.
is_alive() { [ -n "$1" ] && [ -r "/proc/$1/stat" ] && ! grep -q ') Z ' "/proc/$1/stat"; }

# The first run tells how long one takes here: each kill comes some rows later, and a random part of a
# run after these, so that kills meet the start, the steps and the end of a run on any machine.
begin=$(now_ms)
"$roofline" matrix run matrix.json --only lab_resnet18_fp32_bs2_run1 >>out 2>>err || { cat err >&2; exit 1; }
run_ms=$(($(now_ms) - begin))

RANDOM=$seed
later=0
for moment in $(seq 10); do
	first=$(rows)
	left=$((runs - $(grep -c ',ok,' logs/metrics.csv)))
	more=0 # the last run is left for the kills, if it has not come before one of them
	[ $left -le 1 ] || more=$((RANDOM % (2 * (left - 1) / (11 - moment) + 2)))
	[ $more -eq 0 ] || [ $more -lt $left ] || more=$((left - 1))
	part_ms=$((RANDOM % 1000 * run_ms / 1000))
	rm -f child
	"$roofline" matrix run matrix.json >>out 2>>err &
	pid=$!
	while [ "$(rows)" -lt $((first + more)) ] && is_alive $pid; do sleep 0.01; done
	sleep_ms $part_ms
	kill -STOP $pid 2>/dev/null || true # its children are to be known, and to be the last
	children="$(cat /proc/$pid/task/*/children 2>/dev/null || true) $(cat child 2>/dev/null || true)"
	kill -KILL $pid 2>/dev/null || true
	wait $pid 2>/dev/null || true
	pid=''
	before=$(rows)
	[ "$before" -eq "$first" ] || later=$((later + 1))
	for child in $children; do
		for _ in $(seq 600); do # a minute: that it dies counts, not how soon
			is_alive "$child" || break
			sleep 0.1
		done
		! is_alive "$child" || { echo "FAILED: child $child has outlived its parent" >&2; exit 1; }
	done
	sleep 0.1
	[ "$(rows)" -eq "$before" ] || { echo "FAILED: somebody still appends" >&2; exit 1; }
	echo "kill $moment: $((before - first)) rows and $part_ms of $run_ms ms after its begin"
done
[ $later -gt 0 ] || { echo "FAILED: no kill came after a row" >&2; exit 1; }
"$roofline" matrix run matrix.json >>out 2>>err || { cat err >&2; exit 1; }
cp logs/metrics.jsonl mirror
sed '$d' mirror >logs/metrics.jsonl # killed between the last row and its mirror, and nothing left to do
"$roofline" matrix run matrix.json >>out 2>>err || { cat err >&2; exit 1; }
cmp mirror logs/metrics.jsonl || { echo "FAILED: the mirror lacks the last row" >&2; exit 1; }
"$roofline" matrix status matrix.json >status 2>status.err || { cat status >&2; exit 1; }
[ ! -s status.err ] || { cat status.err >&2; exit 1; }
python3 "$here/check_ledger.py" logs $runs
echo "passed with seed $seed"
