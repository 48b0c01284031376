#!/bin/sh
# The harness must notice each kind of difference, or its cases prove nothing.
#   check_harness.sh ROOFLINE
set -u
here=$(cd "$(dirname "$0")" && pwd)
roofline=$1
dir=$(mktemp -d "${TMPDIR:-/tmp}/roofline-harness.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
bad=0

# expect CODE WHAT [LINE...]: the script with these lines behind it.
expect() {
	want=$1 what=$2
	shift 2
	{ printf '%s\n' "$script"; [ $# -eq 0 ] || printf '%s\n' "$@"; } >"$dir/c.case"
	"$here/run.sh" --roofline "$roofline" "$dir/c.case" 2>"$dir/log"
	code=$?
	[ $code -eq "$want" ] && return
	echo "harness: $what: exit $code instead of $want" >&2
	cat "$dir/log" >&2
	bad=1
}

script='echo one; echo two'
expect 1 "output without an expectation"
expect 0 "exact output" '--- stdout' one two
expect 1 "a line too many" '--- stdout' one
expect 1 "a line too few" '--- stdout' one two three
expect 1 "a byte that differs" '--- stdout' one twO
expect 1 "a newline too many" '--- stdout' one two '--- no newline'
expect 1 "the other stream" '--- stderr' one two
expect 0 "pattern" '--- stdout glob' 'o*' ...
expect 1 "pattern that does not fit" '--- stdout glob' ... 'tw*x'
expect 1 "pattern with a line too few" '--- stdout glob' 'o*e'
expect 1 "brackets stand for themselves" '--- stdout glob' '[o]ne' two
expect 2 "two expectations of one stream" '--- stdout' one two '--- stdout glob' ...
expect 2 "text that belongs to no section" '--- exit 0' one

script='exit 3'
expect 1 "exit code without an expectation"
expect 0 "exit code" '--- exit 3'
expect 1 "another exit code" '--- exit 4'

script='echo oops >&2'
expect 1 "standard error without an expectation"
expect 0 "standard error" '--- stderr' oops
expect 0 "pattern of standard error" '--- stderr glob' '*ps'
expect 1 "pattern of standard error that does not fit" '--- stderr glob' '*pz'

script='exit 77'
expect 77 "a case that is skipped"
expect 0 "77 as the expected exit code" '--- exit 77'

script="printf '%s\n' '--- stdout' '\\--- exit 1' '--- other'; printf end"
expect 0 "lines like markers, no newline at the end" '--- stdout' '\--- stdout' '\\--- exit 1' \
	'--- other' end '--- no newline'

# What --update writes is what passes; a pattern stays.
for script in 'echo new; echo err >&2; exit 5' "printf '%s\n' a '' '--- stderr' '\\--- no newline'; printf b"; do
	{ printf '%s\n' "$script"; printf '%s\n' '--- exit 1' '--- stdout' old; } >"$dir/c.case"
	"$here/run.sh" --roofline "$roofline" --update "$dir/c.case" 2>"$dir/log" || bad=1
	"$here/run.sh" --roofline "$roofline" "$dir/c.case" ||
		{ echo "harness: after --update" >&2; cat "$dir/c.case" >&2; bad=1; }
done
printf '%s\n' 'echo new; echo err >&2; exit 5' '--- stdout glob' 'n*' >"$dir/c.case"
"$here/run.sh" --roofline "$roofline" --update "$dir/c.case" 2>"$dir/log" || bad=1
printf '%s\n' 'echo new; echo err >&2; exit 5' '--- exit 5' '--- stdout glob' 'n*' '--- stderr' err |
	diff - "$dir/c.case" || { echo "harness: --update wrote something else" >&2; bad=1; }
exit $bad
