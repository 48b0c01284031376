# shellcheck shell=bash disable=SC2034
# Sourced by the scripts of this directory, which run where their records go: what was checked, and what
# was recorded of it. failed is 1 when a check did not hold.
failed=0

say() { printf '%-8s %s\n' "$1" "$2" | tee -a summary.txt; }
hold() { say ok "$1"; }
break_() { say FAILED "$1"; failed=1; }

# record NAME COMMAND...: its output, errors, exit code and seconds as files
record() {
  local name=$1 start=$EPOCHREALTIME code
  shift
  printf '%s\n' "$*" >"$name.command"
  "$@" >"$name.out" 2>"$name.err"
  code=$?
  printf '%s\n' "$code" >"$name.exit"
  awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", b - a }' >"$name.seconds"
  return $code
}
