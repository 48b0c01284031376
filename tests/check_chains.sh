#!/usr/bin/env bash
# The hot loop of every chain of multiply-adds is what it should be: so many instructions on
# registers, a counter, a jump, and nothing else.
# Usage: check_chains.sh LIBRARY|OBJECT|SOURCE [OBJDUMP]
set -euo pipefail
library=$1
objdump=${2:-objdump}

command -v "$objdump" >/dev/null || { echo "skipped: $objdump is not installed"; exit 77; }
if [[ $library == *.c ]]; then # cross-compile it
  compiler=${objdump%objdump}gcc
  command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not installed"; exit 77; }
  object=$(mktemp)
  trap 'rm -f "$object"' EXIT
  "$compiler" -std=c17 -O2 -Wall -Wextra -Werror -I"$(dirname "$0")/.." -c "$library" -o "$object"
  library=$object
fi
listing=$("$objdump" -d --no-show-raw-insn "$library")

# symbol, instruction, how many per iteration
case $listing in
  *elf64-x86-64*) expected='
fp32_avx512 vfmadd213ps 24
fp64_avx512 vfmadd213pd 24
bf16_avx512 vdpbf16ps 24
fp16_avx512 vfmadd213ph 24
int8_avx512 vpdpbusd 24
fp32_nofma_avx512 vmulps 24
fp32_nofma_avx512 vaddps 24
fp64_nofma_avx512 vmulpd 24
fp64_nofma_avx512 vaddpd 24
fp32_fmaadd_avx512 vfmadd213ps 24
fp32_fmaadd_avx512 vaddps 24
fp64_fmaadd_avx512 vfmadd213pd 24
fp64_fmaadd_avx512 vaddpd 24
bf16_amx tdpbf16ps 6
int8_amx tdpbssd 6
fp32_avx2 vfmadd213ps 12
fp64_avx2 vfmadd213pd 12
fp32_fmaadd_avx2 vfmadd213ps 12
fp32_fmaadd_avx2 vaddps 12
fp64_fmaadd_avx2 vfmadd213pd 12
fp64_fmaadd_avx2 vaddpd 12
int8_avx2 vpdpbusd 12
fp32_avx vmulps 12
fp32_avx vaddps 12
fp64_avx vmulpd 12
fp64_avx vaddpd 12
fp32_sse2 mulps 12
fp32_sse2 addps 12
fp64_sse2 mulpd 12
fp64_sse2 addpd 12
fp32_scalar_fma vfmadd213ss 12
fp64_scalar_fma vfmadd213sd 12
fp32_scalar_sse2 mulss 12
fp32_scalar_sse2 addss 12
fp64_scalar_sse2 mulsd 12
fp64_scalar_sse2 addsd 12' ;;
  *elf64-littleaarch64*) expected='
fp32_neon fmla 24
fp64_neon fmla 24
bf16_neon bfdot 24
fp16_neon fmla 24
int8_neon sdot 24
bf16_mmla bfmmla 24
int8_mmla smmla 24
fp32_nofma_neon fmul 24
fp32_nofma_neon fadd 24
fp64_nofma_neon fmul 24
fp64_nofma_neon fadd 24
fp32_fmaadd_neon fmla 24
fp32_fmaadd_neon fadd 24
fp64_fmaadd_neon fmla 24
fp64_fmaadd_neon fadd 24
fp32_scalar_neon fmadd 24
fp64_scalar_neon fmadd 24' ;;
  *) echo "skipped: no chains for this architecture"; exit 77 ;;
esac

# Instructions from the target of the function's one backward jump to the jump itself.
loop_of() {
  awk -v symbol="<rfl_kernel__$1>:" '
    index($0, symbol) { inside = 1; next }
    inside && NF == 0 { inside = 0 }
    inside {
      address = $1; sub(/:$/, "", address)
      n++; at[n] = address; line[n] = $0; row[address] = n
      if ($2 ~ /^(jne|b\.ne)$/ && ($3 in row)) { first = row[$3]; last = n; loops++ }
    }
    END {
      if (loops != 1) { print "found " loops + 0 " loops" > "/dev/stderr"; exit 1 }
      for (i = first; i <= last; i++) {
        sub(/^[^\t]*\t/, "", line[i]); sub(/^{vex} /, "", line[i]); print line[i]
      }
    }' <<<"$listing"
}

failed=0
checked=0
while read -r kernel instruction count; do
  [ -n "$kernel" ] || continue
  if ! body=$(loop_of "$kernel"); then
    echo "$kernel: the loop was not found"; failed=1; continue
  fi
  found=$(grep -c "^${instruction}[[:space:]]" <<<"$body" || true)
  # an operand in memory, or in AArch64 a load or store
  memory=$(grep -c -E '[([]|^(ld|st)' <<<"$body" || true)
  wanted=$(grep -c . <<<"$(grep "^$kernel " <<<"$expected" | awk '{ for (i = 0; i < $3; i++) print }')")
  others=$(($(grep -c . <<<"$body") - wanted))
  if [ "$found" -ne "$count" ] || [ "$memory" -ne 0 ] || [ "$others" -ne 2 ]; then
    echo "$kernel: $found $instruction instead of $count, $memory operands in memory, $others other instructions instead of 2 (counter, jump):"
    echo "$body"
    failed=1
  fi
  checked=$((checked + 1))
done <<<"$expected"
while read -r kernel; do
  if ! grep -q "^$kernel " <<<"$expected"; then
    echo "$kernel: not checked; add it to tests/check_chains.sh"; failed=1
  fi
done < <(sed -n 's/^[0-9a-f]* <rfl_kernel__\(.*\)>:$/\1/p' <<<"$listing" | grep -vE '^(read|copy|triad)_')
echo "$checked lines checked"
exit $failed
