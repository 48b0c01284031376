#!/usr/bin/env bash
# A training killed with SIGKILL at ten random moments and continued each time ends with the numbers of
# one that was not, to the bit: losses and accuracies of all epochs, and the losses of all steps. Then
# the same with SIGTERM, on which a training writes a checkpoint.
#
#   kill.sh ROOFLINE MAKE_DIGITS [SEED]
set -euo pipefail

roofline=$(readlink -f "$1")
make_digits=$(readlink -f "$2")
seed=${3:-20261123}
. "$(dirname "$0")/../killing.sh"
needs_torch
cd "$dir"
"$make_digits" --train 320 --test 70 digits

# in an array, so that $! is the program's process, not that of a function
train=("$roofline" -q train --data digits --epochs 4 --devices cpu --threads 2 --workers 1 --batch-size 16
	--lr-step 2 --checkpoint-steps 3 --resume --log-dir)
numbers() { # of the epochs, and the losses of the steps
	run=$(ls -t "$1"/epochs | head -n 1)
	cut -d, -f1-6 "$1/epochs/$run"
	cut -d, -f1,8 "$1/steps/$run"
}

begin=$(now_ms)
"${train[@]}" whole --format csv >out
whole_ms=$(($(now_ms) - begin))
numbers whole >expected
[ "$(wc -l <expected)" -eq 86 ] || { echo "FAILED: not 4 epochs and 80 steps" >&2; cat expected >&2; exit 1; }

# The steps in the checkpoint of a log directory; 0 if there is none.
saved() {
	at=$(grep -aom1 '"done":[0-9]*' "$1"/checkpoints/*.checkpoint 2>/dev/null || true)
	at=${at#*:}
	echo "${at:-0}"
}
compare() { numbers "$1" | cmp - expected || { numbers "$1" | diff - expected >&2; exit 1; }; }

# Each signal comes some steps after the last checkpoint, at a random moment of a step, an evaluation or
# the writing of a checkpoint; the first one while the program starts. How fast a training is depends on
# the machine: one that has ended before its signal is compared like any other, and another one begun.
# Where steps are faster than this script looks, only the first signals are in time.
RANDOM=$seed
for signal in KILL TERM; do
	signals=10
	[ $signal = KILL ] || signals=3
	left=$signals
	training=1
	log=$signal-1
	while [ $left -gt 0 ] && [ $training -le 20 ]; do
		first=$(saved $log)
		until=$((first + RANDOM % ((80 - first) / (left + 2) + 1)))
		[ $left -lt $signals ] || until=0
		part_ms=$((RANDOM % (whole_ms / 20 + 1)))
		"${train[@]}" $log >out 2>err &
		pid=$!
		if [ $until -gt 0 ]; then
			while [ "$(saved $log)" -le $until ] && kill -0 $pid 2>/dev/null; do sleep 0.005; done
		fi
		sleep_ms $part_ms
		kill -$signal $pid 2>/dev/null || true
		rc=0
		wait $pid 2>/dev/null || rc=$?
		pid=''
		if [ $rc -eq 1 ] && grep -q interrupted err; then rc=143; fi
		case $rc in
		0)
			echo "$signal: training $training had ended"
			compare $log
			training=$((training + 1))
			log=$signal-$training
			;;
		137 | 143)
			left=$((left - 1))
			echo "$signal: training $training from step $first, the checkpoint has $(saved $log) of 80; $left left"
			;;
		*) cat err >&2; echo "FAILED: exit status $rc" >&2; exit 1 ;;
		esac
	done
	[ $left -lt $signals ] || { echo "FAILED: $signal: no signal was in time" >&2; exit 1; }
	[ $left -eq 0 ] || echo "$signal: $left signals were not in time"
	"${train[@]}" $log >out
	compare $log
done
echo "passed with seed $seed"
