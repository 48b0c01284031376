#!/usr/bin/env bash
# What `roofline plot` takes for many points: those of tests/data/plot/points.csv in turns, each with another
# batch, rate and intensity; CPU time, median of ROUNDS (5) whole processes, that of reading the points included.
# Usage: [POINTS="1000 5000 10000"] tests/bench/plot.sh [BUILD_DIR]
set -euo pipefail
cd "$(dirname "$0")/../.."
roofline=$(realpath "${1:-build/release}")/bin/roofline
data=tests/data/plot

[ -x "$roofline" ] || { echo "plot.sh: no $roofline; build first" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A rate from 1/30 to 2 times that of the point, an intensity from 1/30 to 10 times.
points() {
  awk -F, -v OFS=, -v n="$1" '
    NR == 1 { for (i = 1; i <= NF; i++) name[i] = $i; print; next }
    $1 == "lab_cpu" { gsub(/"[^"]*"/, "words"); row[nrows++] = $0 }
    END {
      srand(1)
      for (r = 0; r < n; r++) {
        $0 = row[r % nrows]
        rate = exp(log(60) * rand() - log(30)); ai = exp(log(300) * rand() - log(30))
        for (i = 1; i <= NF; i++) {
          if (name[i] == "batch") $i = 1 + r % 64
          else if ($i != "" && name[i] ~ /^attained_gflops/) $i *= rate
          else if ($i != "" && name[i] ~ /^ai/) $i *= ai
        }
        print
      }
    }' $data/points.csv
}

printf '%8s %8s\n' points cpu_s
for n in ${POINTS:-1000 5000 10000}; do
  points "$n" >"$work/points.csv"
  for ((i = 0; i < ${ROUNDS:-5}; i++)); do
    /usr/bin/env time -f '%U %S' "$roofline" -q plot --points "$work/points.csv" --peaks $data/peaks.json \
      --env lab_cpu --format svg -o "$work" 2>&1 >/dev/null | tail -1 | awk '{ print $1 + $2 }'
  done | sort -n | awk -v n="$n" '{ v[NR] = $1 } END { printf "%8d %8s\n", n, v[int((NR + 1) / 2)] }'
done
