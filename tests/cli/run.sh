#!/bin/sh
# Runs command line cases; see README.md in this directory.
#
#   run.sh --roofline PATH [--data DIR] [--update] CASE...
#
# Exit: 0 all passed, 1 one failed, 77 every case that ran was skipped, 2 wrong usage.
set -u

here=$(cd "$(dirname "$0")" && pwd)
roofline='' update=no data="$here/../data"
while [ $# -gt 0 ]; do
	case $1 in
	--roofline) roofline=$2; shift 2 ;;
	--data) data=$2; shift 2 ;;
	--update) update=yes; shift ;;
	-*) echo "run.sh: unknown option $1" >&2; exit 2 ;;
	*) break ;;
	esac
done
[ -x "$roofline" ] || { echo "run.sh: --roofline: '$roofline' is not a program" >&2; exit 2; }
[ $# -gt 0 ] || { echo "run.sh: name a case" >&2; exit 2; }

scratch=$(mktemp -d "${TMPDIR:-/tmp}/roofline-cli.XXXXXX") || exit 1
trap 'chmod -R u+w "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

ROOFLINE=$(cd "$(dirname "$roofline")" && pwd)/$(basename "$roofline")
PATH=$(dirname "$ROOFLINE"):$PATH
RFL_TEST_DATA=$(cd "$data" && pwd)
LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH=1767225600 HOME=$scratch
export ROOFLINE PATH RFL_TEST_DATA LC_ALL TZ SOURCE_DATE_EPOCH HOME
unset ROOFLINE_PLUGIN_PATH OMP_NUM_THREADS RFL_CUPTI_PATH CUDA_HOME CUDA_PATH NVTX_INJECTION64_PATH

failed=0 passed=0 skipped=0 number=0

fail() {
	echo "FAILED $case: $*" >&2
	ok=no
}

# compare STREAM WORD: what was written against the section of that stream.
compare() {
	want=$work.$1 got=$work.got.$1
	if [ -f "$want.glob" ]; then
		awk -v pattern="$want.glob" -f "$here/glob.awk" "$got" >"$work.why" 2>&1 ||
			{ fail "standard $2: $(cat "$work.why")"; sed 's/^/  | /' "$got" >&2; }
		return
	fi
	[ -f "$want" ] || want=/dev/null
	cmp -s "$want" "$got" && return
	if [ $update = yes ]; then
		changed=yes
		return
	fi
	fail "standard $2 differs (- expected, + got):"
	diff -u "$want" "$got" | sed -e '1,2d' -e 's/^/  /' >&2
}

check_exit() {
	want=0
	[ ! -f "$work.exit" ] || read -r want <"$work.exit"
	[ "$code" -ne "$want" ] || return
	if [ $update = yes ]; then
		changed=yes
	else
		fail "exit code $code instead of $want"
	fi
}

# section MARKER FILE: as it stands in a case.
section() {
	[ -z "$1" ] || echo "--- $1"
	awk -v escape=1 -f "$here/sections.awk" "$2"
	[ -z "$(tail -c 1 "$2")" ] || echo "--- no newline"
}

# The case anew: its script and its patterns as they are, the rest as it was just now.
write_case() {
	section '' "$work.sh"
	[ "$code" -eq 0 ] || echo "--- exit $code"
	for stream in stdout stderr; do
		if [ -f "$work.$stream.glob" ]; then
			section "$stream glob" "$work.$stream.glob"
		elif [ -s "$work.got.$stream" ]; then
			section $stream "$work.got.$stream"
		fi
	done
}

for case; do
	[ -f "$case" ] || { echo "run.sh: $case does not exist" >&2; exit 2; }
	number=$((number + 1))
	work=$scratch/$number
	mkdir "$work" || exit 1
	awk -v base="$work" -f "$here/sections.awk" "$case" || exit 2
	ok=yes changed=no
	(cd "$work" && exec sh -u "$work.sh") >"$work.got.stdout" 2>"$work.got.stderr" </dev/null
	code=$?
	if [ $code -eq 77 ] && [ ! -f "$work.exit" ]; then
		echo "skipped $case: $(cat "$work.got.stderr")" >&2
		skipped=$((skipped + 1))
		continue
	fi
	check_exit
	compare stdout output
	compare stderr error
	if [ $changed = yes ]; then
		write_case >"$work.case" && cat "$work.case" >"$case" && echo "updated $case" >&2
	fi
	if [ $ok = yes ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "  again: $here/run.sh --roofline $ROOFLINE $case" >&2
	fi
done

[ $# -eq 1 ] || echo "$passed passed, $failed failed, $skipped skipped" >&2
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
