#!/bin/sh
# The harness must notice each kind of difference, or its cases prove nothing.
#   check_harness.sh ROOFLINE
set -u
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/roofline-harness.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/cases" || exit 1
bad=0

# expect CODE WHAT: run the case c with the files that are there.
expect() {
	"$here/run.sh" --roofline "$roofline" "$dir/cases/c.sh" 2>"$dir/log"
	code=$?
	[ $code -eq "$1" ] && return
	echo "harness: $2: exit $code instead of $1" >&2
	cat "$dir/log" >&2
	bad=1
}
begin() {
	rm -f "$dir"/cases/*
	printf '%s\n' "$1" >"$dir/cases/c.sh"
}
roofline=$1

begin 'echo one; echo two'
expect 1 "output without an expectation"
printf 'one\ntwo\n' >"$dir/cases/c.stdout"
expect 0 "exact output"
printf 'one\n' >"$dir/cases/c.stdout"
expect 1 "a line too many"
rm "$dir/cases/c.stdout"
printf 'o*\n...\n' >"$dir/cases/c.stdout.glob"
expect 0 "pattern"
printf '...\ntw*x\n' >"$dir/cases/c.stdout.glob"
expect 1 "pattern that does not fit"
printf 'o*e\n' >"$dir/cases/c.stdout.glob"
expect 1 "pattern with a line too few"
printf '[o]ne\ntwo\n' >"$dir/cases/c.stdout.glob"
expect 1 "brackets stand for themselves"

begin 'exit 3'
expect 1 "exit code without an expectation"
echo 3 >"$dir/cases/c.exit"
expect 0 "exit code"
echo 4 >"$dir/cases/c.exit"
expect 1 "another exit code"

begin 'echo oops >&2'
expect 1 "standard error without an expectation"
echo oops >"$dir/cases/c.stderr"
expect 0 "standard error"

begin 'exit 77'
expect 77 "a case that is skipped"
echo 77 >"$dir/cases/c.exit"
expect 0 "77 as the expected exit code"

begin 'echo new; exit 5'
"$here/run.sh" --roofline "$roofline" --update "$dir/cases/c.sh" 2>/dev/null
expect 0 "after --update"
[ "$(cat "$dir/cases/c.stdout")" = new ] || { echo "harness: --update wrote nothing" >&2; bad=1; }
exit $bad
