#!/usr/bin/env bash
# What a run of a matrix costs beside its steps: wall clock of `matrix run` over its runs, less the window
# (there is no warm-up) and less what the child spends on the library, the network and its weights.
# Usage: tests/bench/matrix.sh [BUILD_DIR] [MODEL]
set -euo pipefail
cd "$(dirname "$0")/../.."
roofline=$(readlink -f "${1:-build/release}/bin/roofline") || roofline=''
model=${2:-resnet50}

[ -x "$roofline" ] || { echo "matrix.sh: no ${1:-build/release}/bin/roofline; build first" >&2; exit 77; }
command -v python3 >/dev/null || { echo "matrix.sh: install python3" >&2; exit 77; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/roofline-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >matrix.json <<TEXT
{"schema": "roofline.matrix/1", "name": "bench", "repeats": 10,
 "environments": [{"name": "bench", "backend": "cpu"}],
 "models": ["$model"], "batch_sizes": [1], "precisions": ["fp32"],
 "options": {"synthetic": true, "image-size": 64, "warmup-iters": 0, "iters": 5}}
TEXT
begin=$(date +%s.%N)
"$roofline" matrix run -q matrix.json --share-device >/dev/null
end=$(date +%s.%N)
python3 - "$begin" "$end" <<'TEXT'
import csv
import statistics
import sys

rows = list(csv.DictReader(open("logs/metrics.csv", newline="")))
wall = (float(sys.argv[2]) - float(sys.argv[1])) / len(rows)
setup = statistics.mean(float(r["setup_s"]) for r in rows)
window = statistics.mean(float(r["wall_s"]) for r in rows)
print(f"{rows[0]['model']}, {len(rows)} runs, mean of each: {wall:.2f} s in all, {setup:.2f} s library, network "
      f"and weights, {window:.2f} s window, {wall - setup - window:.2f} s start, end, ledger and logs")
TEXT
