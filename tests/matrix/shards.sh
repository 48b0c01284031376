#!/usr/bin/env bash
# Several processes share a matrix: two shards at once in one log directory, two in two directories that are
# merged, three without shards in one. Each run is done once, and no two runs are timed at once.
#
#   shards.sh ROOFLINE ENGINES
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
roofline=$(readlink -f "$1")
ROOFLINE_PLUGIN_PATH=$(readlink -f "$2")
export ROOFLINE_PLUGIN_PATH LC_ALL=C RFL_FAKE_MS=8,8,4
command -v python3 >/dev/null || { echo "skipped: no python3 to look at the ledger" >&2; exit 77; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/roofline-shards.XXXXXX")
pids=()
stop() {
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 1' HUP INT TERM
cd "$dir"
mkdir locks
export ROOFLINE_LOCK_DIR=$dir/locks
cat >matrix.json <<'TEXT'
{"schema": "roofline.matrix/1", "name": "shards", "repeats": 2,
 "environments": [{"name": "lab", "backend": "cpu"}],
 "models": ["resnet18", "alexnet"], "batch_sizes": [2, 4], "precisions": ["fp32"],
 "options": {"engine": "fake", "synthetic": true, "image-size": 64, "warmup-iters": 0, "iters": 10, "threads": 1}}
TEXT

fail() {
	echo "FAILED: $*" >&2
	cat ./*.err >&2
	exit 1
}

begin() { # NAME OPTION...
	local name=$1
	shift
	"$roofline" matrix run matrix.json "$@" >"$name.out" 2>"$name.err" &
	pids+=($!)
}

all_end() {
	local pid
	for pid in "${pids[@]}"; do
		wait "$pid" || fail "a process ended with exit code $?"
	done
	pids=()
}

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# The step of the engine takes 20 ms: eight runs of ten steps cannot be done in less than 1.6 s one
# after the other.
in_turn() { # BEGIN_MS WHAT
	local took=$(($(now_ms) - $1))
	[ $took -ge 1600 ] || fail "$2: eight runs in $took ms: they overlapped"
	echo "$2: $took ms"
}

begin_ms=$(now_ms)
begin a --shard 0/2 --log-dir one
begin b --shard 1/2 --log-dir one
all_end
in_turn "$begin_ms" "two shards in one directory"
python3 "$here/check_ledger.py" one 8
"$roofline" matrix status matrix.json --log-dir one >/dev/null || fail "one: not complete"

begin_ms=$(now_ms)
begin a --shard 0/2 --log-dir two/tasks/a
begin b --shard 1/2 --log-dir two/tasks/b
while kill -0 "${pids[0]}" 2>/dev/null || kill -0 "${pids[1]}" 2>/dev/null; do
	[ ! -d two/tasks/a ] || "$roofline" matrix merge matrix.json --log-dir two >merge.out ||
		fail "merge meanwhile: $(cat merge.out)"
	sleep 0.05
done
all_end
in_turn "$begin_ms" "two shards in two directories"
"$roofline" matrix merge matrix.json --log-dir two >merge.out || fail "merge: $(cat merge.out)"
[ "$(tail -n 1 merge.out)" = "shards: 8 of 8 runs ok" ] || fail "merge: $(cat merge.out)"
python3 "$here/check_ledger.py" two 8
[ "$(ls two/steps | wc -l) $(ls two/time | wc -l)" = "8 8" ] || fail "files: $(ls two/steps two/time)"

begin_ms=$(now_ms)
begin a --log-dir three
begin b --log-dir three
begin c --log-dir three --shuffle 3
all_end
in_turn "$begin_ms" "three without shards"
python3 "$here/check_ledger.py" three 8

# One of two is killed: the other does its runs as well.
begin a --log-dir four --share-device
begin b --log-dir four --share-device
sleep 0.3
kill -KILL "${pids[0]}"
wait "${pids[0]}" 2>/dev/null || true
pids=("${pids[1]}")
all_end
python3 "$here/check_ledger.py" four 8
