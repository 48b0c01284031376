#!/usr/bin/env bash
# first.sh goes through on the stand-ins for driver, CUPTI and engine, and keeps what it has when one
# experiment hangs.
#
#   tests/gpu/first_check.sh BUILD
set -euo pipefail

build=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
[ -e "$build/tests/engines/engine_fake-1.0-test.so" ] || { echo "skipped: no fake engine"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$build/tests/fakes:$build/tests/fakes/nvml ROOFLINE_PLUGIN_PATH=$build/tests/engines
export RFL_FAKE_DEVICE=cuda RFL_FAKE_MS=1,1,1 FAKE_CUDA='free=8e6;l2=65536'
unset FAKE_CUPTI FAKE_NVML RFL_FAKE

verdict() { awk -F, -v e="$2" -v h="$3" '$1 == e && $2 == h { print $3 }' "$work/$1/results.csv"; }
want() { # want DIR EXPERIMENT HYPOTHESIS VERDICT
  local got
  got=$(verdict "$1" "$2" "$3")
  [ "$got" = "$4" ] || { echo "$1: $2, $3: '$got', not '$4'" >&2; cat "$work/$1/summary.txt" >&2; exit 1; }
}

# A fake GPU does no network's FLOPs: those hypotheses fail, what it can do passes.
code=0
"$here/first.sh" --scale 10 --only check,patched,kernels "$build/bin/roofline" "$work/all" >"$work/log" || code=$?
[ $code = 1 ] || { echo "exit $code, not 1" >&2; cat "$work/log" >&2; exit 1; }
for row in permission 'counters links' 'self-test flops.fp32' 'self-test dram_read_bytes'; do
  want all check "$row" pass
done
want all patched 'fp32 FLOPs of fwd' fail
want all kernels 'the same step again' pass
want all matrix 'matrix FLOPs in bf16' 'not run'
want all patched 'fp32 FLOPs by default' fail
tar -tzf "$work/all/records.tar.gz" records/logs/counters.csv >/dev/null

# stand_in NAME WORDS COMMAND: the program, but a call with these words is the command.
stand_in() {
  printf '#!/bin/sh\ncase "$*" in *"%s"*) %s ;; esac\nexec "%s/bin/roofline" "$@"\n' "$2" "$3" "$build" >"$work/$1"
  chmod +x "$work/$1"
}

# The patched kernels hang, which ends as by timeout: what was before stays, what comes after is run.
stand_in hangs 'core flops' 'exit 137'
"$here/first.sh" --scale 10 --part 1 --only check,patched "$work/hangs" "$work/hung" >"$work/log" || true
want hung check permission pass
want hung patched 'fp32 FLOPs of fwd' fail
want hung patched 'step with CUPTI open' pass
grep -q 'its time was up' "$work/hung/summary.txt"

# The limit of a command ends it.
stand_in sleeps --precision 'exec sleep 1000'
"$here/first.sh" --only check --most 1 "$work/sleeps" "$work/late" >"$work/log" || true
for precision in fp32 tf32 bf16 amp; do
  [ "$(cat "$work/late/records/check-$precision.exit")" = 124 ] || { echo "check in $precision: no limit" >&2; exit 1; }
done

# Without permission to read counters, or without CUPTI, what needs no counters is run.
mkdir "$work/driver"
ln -s "$build/tests/fakes/libcuda.so.1" "$work/driver"
denied=FAKE_CUPTI=fail=cuptiProfilerGetCounterAvailability:35
for setting in "$denied" "LD_LIBRARY_PATH=$work/driver RFL_CUPTI_PATH=/nonexistent"; do
  rm -rf "$work/denied"
  for options in '--only check,kernels' '--only peaks,idle --most 1'; do
    # shellcheck disable=SC2086 # settings of the environment, options
    env $setting "$here/first.sh" $options "$build/bin/roofline" "$work/denied" >"$work/log" 2>&1 || true
  done
  want denied check permission 'not run'
  want denied kernels 'links' 'not run'
  [ -e "$work/denied/records/run-vit_b_16_fp32_bs32_run8.exit" ] || { echo "idle was not tried" >&2; exit 1; }
  grep -q '^skipped .*counters: ' "$work/denied/summary.txt"
  [ -e "$work/denied/records/peaks.exit" ] || { echo "peaks were not tried" >&2; exit 1; }
done

# Where the driver refuses, nothing is tried.
code=0
FAKE_CUDA='fail=cuInit:100' "$here/first.sh" "$build/bin/roofline" "$work/none" >"$work/log" 2>&1 || code=$?
[ $code = 77 ] || { echo "exit $code, not 77" >&2; exit 1; }
