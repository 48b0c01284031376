#!/usr/bin/env bash
# Two processes that a launcher starts train together, and go the way of one with the double batch.
#
#   launcher.sh ROOFLINE torchrun|openmpi|mpich [PROGRAM]      PROGRAM: the launcher itself
#
# Exit: 0 passed, 1 failed, 77 there is no such launcher, or no engine that can join (the reason is
# printed).
set -euo pipefail

roofline=$(readlink -f "$1")
launcher=$2
program=${3:-}
export LC_ALL=C

skip() {
	echo "skipped: $*" >&2
	exit 77
}

fail() {
	echo "FAILED: $*" >&2
	cat out err >&2 2>/dev/null || true
	exit 1
}

case $launcher in
torchrun) absent="no torchrun beside the libtorch of this build: PyTorch's wheels bring it" ;;
openmpi) absent="no mpirun.openmpi: install openmpi-bin" ;;
mpich) absent="no mpiexec.mpich: install mpich" ;;
*) fail "'$launcher' is no launcher of this test" ;;
esac
[ -n "$program" ] || skip "$absent"
"$roofline" list engines --format csv | grep -Eq '^engines,torch[^,]*,(ok|warn),' || skip "no torch engine"

dir=$(mktemp -d "${TMPDIR:-/tmp}/roofline-torchrun.XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"

set -- --arch tiny_lm --context-length 16 --warmup-iters 0 --iters 8 --backend cpu --threads 1 --synthetic \
	--env lab --lr 0.05 --log-dir logs
"$roofline" run -q "$@" --batch-size 8 --label alone >out 2>err || fail "one process"
case $launcher in
torchrun) start=(env OMP_NUM_THREADS=1 "$program" --standalone --nproc_per_node 2 --no_python) ;;
openmpi) start=("$program" --allow-run-as-root --oversubscribe -n 2) ;;
mpich) start=("$program" -n 2) ;;
esac
"${start[@]}" "$roofline" run -q "$@" --batch-size 4 --label both --world env --world-timeout 60 >out 2>err ||
	fail "two processes"

# field LABEL COLUMN
field() {
	awk -F, -v label="$1" -v column="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["label"] == label { print $at[column] }' logs/metrics.csv
}

# losses LABEL: one a line
losses() {
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") k = i; next } { print $k }' \
		"logs/steps/$(field "$1" run_id).csv"
}

for label in alone both both_rank0 both_rank1; do
	[ "$(field $label status)" = ok ] || fail "the row $label is '$(field $label status)'"
done
[ "$(field both launcher) $(field both interconnect) $(field both world_size) $(field both batch)" = "$launcher gloo 2 8" ] ||
	fail "launcher, interconnect, world_size, batch: $(field both launcher) $(field both interconnect) $(field both world_size) $(field both batch)"
losses alone >a
losses both >b
paste a b | awk 'NF == 2 { d = $1 - $2; if (d < 0) d = -d; if (d <= 1e-5 * $1) same++ } END { exit !(NR == 8 && same == 8) }' ||
	fail "losses differ: $(paste a b)"
echo "two processes of $launcher have the eight losses of one"
