#!/usr/bin/env bash
# What a run costs beside its steps: a whole `roofline run` of one step of a small network, and the
# loading of its engine's libraries alone. The rest is ours: two processes, the network, the
# weights, ledger and logs. Usage: tests/bench/overhead.sh [BUILD_DIR]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
roofline=$build/bin/roofline
load=$build/tests/bench/bench_load

command -v hyperfine >/dev/null || { echo "overhead.sh: install hyperfine" >&2; exit 77; }
[ -x "$roofline" ] && [ -x "$load" ] ||
	{ echo "overhead.sh: no $roofline or $load; build roofline and bench_load" >&2; exit 77; }
plugin=$(find "$build/lib/roofline" -name 'engine_torch-*.so' | head -1)
[ -n "$plugin" ] || { echo "overhead.sh: no torch plugin in $build" >&2; exit 77; }

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
run="$roofline run -q --arch mnist_cnn --batch-size 1 --synthetic --backend cpu --warmup-iters 0 --iters 1"

hyperfine --shell=none --warmup 2 --runs 15 --style basic --export-csv "$logs/times.csv" \
  -n load "$load $plugin" \
  -n run "$run --log-dir $logs/one"

# command,mean,stddev,median,user,system,min,max
awk -F, 'NR > 1 { median[$1] = $4; cpu[$1] = $5 + $6; least[$1] = $7 }
  END { printf "run less load: median %.3f s, of the fastest %.3f s, of CPU time %.3f s\n",
        median["run"] - median["load"], least["run"] - least["load"], cpu["run"] - cpu["load"] }' \
	"$logs/times.csv"
