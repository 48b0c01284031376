#!/usr/bin/env bash
# Reading large files of ncu: `roofline counters import` against libcsv, which only cuts them into
# fields, and against pandas where it is installed; in turns, medians of ROUNDS (7). Each line is the
# wall time and the CPU time in seconds, and the peak memory in MiB, of a whole process.
# Usage: [PYTHON=python3] tests/bench/import.sh [BUILD_DIR]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
rounds=${ROUNDS:-7}
python=${PYTHON:-python3}
import=$build/tests/bench/bench_import
roofline=$build/bin/roofline

[ -x "$roofline" ] || { echo "import.sh: no $roofline; build first" >&2; exit 77; }
[ -x "$import" ] && [ -x "$build/tests/bench/bench_ncu_file" ] ||
  { echo "import.sh: cmake --build $build --target bench_import bench_ncu_file" >&2; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/tests/bench/bench_ncu_file" long 800000 > "$work/long.csv"
"$build/tests/bench/bench_ncu_file" wide 30000 600 > "$work/wide.csv"

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# one SIDE FILE: the three figures of one run
one() {
  case $1 in
    roofline) "$import" run "$roofline" counters import "$2" --from ncu --format json ;;
    pipe) "$import" run sh -c "cat '$2' | '$roofline' counters import - --from ncu --format json" ;;
    libcsv) "$import" run "$import" libcsv "$2" ;;
    pandas) "$import" run "$python" -c "import pandas; print(pandas.read_csv('$2', dtype=str).shape)" ;;
  esac
}

sides="roofline pipe libcsv"
"$python" -c 'import pandas' 2>/dev/null && sides="$sides pandas"

printf '%-10s %-10s %8s %8s %8s %8s\n' file reader wall_s cpu_s peak_MiB MB/s
for file in long wide; do
  size=$(stat -c %s "$work/$file.csv")
  for side in $sides; do one "$side" "$work/$file.csv" > /dev/null; done
  for ((i = 0; i < rounds; i++)); do
    for side in $sides; do
      one "$side" "$work/$file.csv" >> "$work/$file.$side"
    done
  done
  for side in $sides; do
    wall=$(cut -d' ' -f1 "$work/$file.$side" | median)
    printf '%-10s %-10s %8s %8s %8s %8s\n' $file $side "$wall" \
      "$(cut -d' ' -f2 "$work/$file.$side" | median)" \
      "$(cut -d' ' -f3 "$work/$file.$side" | median)" \
      "$(awk -v size="$size" -v wall="$wall" 'BEGIN { printf "%.0f", size / wall / 1e6 }')"
  done
done
