#!/usr/bin/env bash
# Ceilings by `roofline peaks measure` against likwid-bench: best of ROUNDS (15) each, taken in turns,
# so that both meet the same noise. Exits with 1 if DRAM, FP32 or FP64 is below LEAST (0.97) of likwid's.
# Usage: tests/bench/peaks.sh [BUILD_DIR]
#
# Both sides run for about 20 ms per sample after a warm-up; ours takes at least 3 samples in a round, and
# more when other programs disturb it. likwid-bench's store kernels only write: they are printed, but a
# program that only writes does not exist, so they are no ceiling.
set -euo pipefail
cd "$(dirname "$0")/../.."
roofline=${1:-build/release}/bin/roofline
least=${LEAST:-0.97}
rounds=${ROUNDS:-15}
set_size=${SET:-1GB}

command -v likwid-bench >/dev/null || { echo "peaks.sh: install likwid" >&2; exit 77; }
[ -x "$roofline" ] || { echo "peaks.sh: no $roofline; build first" >&2; exit 77; }
threads=$("$roofline" peaks measure --env bench --only fp32.vector --quick --repeats 3 --format csv -q 2>/dev/null |
  awk -F, '$1 == "fp32.vector" { print $7 }')

if grep -q -w avx512f /proc/cpuinfo; then
  memory="load_avx512 copy_avx512 copy_mem_avx512 stream_avx512_fma stream_mem_avx512 triad_mem_avx512_fma"
  stores="store_mem_avx512"
  load=load_avx512 fp32=peakflops_sp_avx512_fma fp64=peakflops_avx512_fma
elif grep -q -w fma /proc/cpuinfo; then
  memory="load_avx copy_avx copy_mem_avx stream_avx_fma stream_mem_avx_fma triad_mem_avx_fma"
  stores="store_mem_avx"
  load=load_avx fp32=peakflops_sp_avx_fma fp64=peakflops_avx_fma
else
  memory="load_sse copy_sse copy_mem_sse stream_sse stream_mem_sse triad_mem_sse"
  stores="store_mem_sse"
  load=load_sse fp32=peakflops_sp_sse fp64=peakflops_sse
fi

# Half of each cache, of all threads: L1d and L2 are taken to belong to a core, L3 to all.
levels=(L1 L2 L3)
declare -A set_of
while read -r name size; do
  case $name in
    L1d) set_of[L1]=$((size * threads / 2048))kB ;;
    L2) set_of[L2]=$((size * threads / 2048))kB ;;
    L3) set_of[L3]=$((size / 2048))kB ;;
  esac
done < <(lscpu --bytes --caches=NAME,ONE-SIZE)
for level in "${levels[@]}"; do
  [ -n "${set_of[$level]:-}" ] || { echo "peaks.sh: lscpu reports no $level" >&2; exit 77; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# likwid KERNEL SET UNIT [OPTION...]: one figure in G per second
likwid() {
  likwid-bench -t "$1" -w "S0:$2:$threads" "${@:4}" 2>/dev/null |
    awk -v unit="$3" '$1 == unit { print $2 / 1000 }'
}

# Iterations that take about 20 ms.
iterations() {
  likwid-bench -t "$1" -w "S0:$2:$threads" -s 1 2>/dev/null |
    awk '/^Iterations per thread:/ { n = $4 } /^Time:/ { t = $2 }
         END { k = int(n * 0.02 / t + 0.5); print (k > 2 ? k : 2) }'
}

sample_likwid() {
  local kernel level
  for kernel in $memory $stores; do
    echo "$kernel $(likwid "$kernel" "$set_size" MByte/s: -i "${iters[$kernel]}")"
  done
  for kernel in $fp32 $fp64; do
    echo "$kernel $(likwid "$kernel" 16kB MFlops/s: -i "${iters[$kernel]}")"
  done
  for level in "${levels[@]}"; do
    echo "$level $(likwid $load "${set_of[$level]}" MByte/s: -i "${iters[$level]}")"
  done
}

sample_ours() {
  "$roofline" peaks measure --env bench --only DRAM fp32.vector fp64.vector "${levels[@]}" --repeats 3 \
    --format csv -q 2>/dev/null |
    awk -F, -v n="$threads" 'NR > 1 {
      sub(/^ *other loop/, "DRAM")
      gsub(/"/, "")
      print $1 "," $9 $10 $11 "\t" $2 * ($3 ~ /per core/ ? n : 1)
    }'
}

declare -A iters
for kernel in $memory $stores; do iters[$kernel]=$(iterations "$kernel" "$set_size"); done
for kernel in $fp32 $fp64; do iters[$kernel]=$(iterations "$kernel" 16kB); done
for level in "${levels[@]}"; do iters[$level]=$(iterations $load "${set_of[$level]}"); done

for ((i = 1; i <= rounds; i++)); do
  echo "round $i of $rounds" >&2
  sample_likwid >>"$work/likwid"
  sample_ours >>"$work/ours"
done

best() { awk -v re="$1" -F"$3" '$1 ~ re && $2 > m { m = $2 } END { print m + 0 }' "$work/$2"; }

echo "best of $rounds, $threads threads, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-)"
echo
echo "likwid-bench"
for kernel in $memory $stores $fp32 $fp64; do
  printf '  %-26s %8.2f\n' "$kernel" "$(best "^$kernel\$" likwid ' ')"
done
echo "roofline"
awk -F'\t' '$2 > m[$1] { m[$1] = $2 } END { for (k in m) printf "  %-50s %8.2f\n", k, m[k] }' "$work/ours" | sort
echo
compare() { # NAME OURS THEIRS LEAST
  awk -v n="$1" -v a="$2" -v b="$3" -v least="${4:-0}" 'BEGIN {
    printf "%-6s ours %8.2f  likwid %8.2f  ratio %.3f\n", n, a, b, a / b
    exit a < least * b }' || low=1
}
low=0
compare DRAM "$(best '^DRAM' ours '\t')" "$(best "^($(tr ' ' '|' <<<"$memory"))\$" likwid ' ')" "$least"
compare fp32 "$(best '^fp32' ours '\t')" "$(best "^$fp32\$" likwid ' ')" "$least"
compare fp64 "$(best '^fp64' ours '\t')" "$(best "^$fp64\$" likwid ' ')" "$least"
for level in "${levels[@]}"; do
  compare "$level" "$(best "^$level," ours '\t')" "$(best "^$level\$" likwid ' ')"
done
exit "$low"
