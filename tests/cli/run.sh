#!/bin/sh
# Runs command line cases; see README.md in this folder.
#
#   run.sh --roofline PATH [--data DIR] [--update] CASE.sh...
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

# compare STREAM: the file that was written against <case>.STREAM or <case>.STREAM.glob.
compare() {
	got=$work.$1
	if [ -f "$stem.$1.glob" ]; then
		awk -v pattern="$stem.$1.glob" -f "$here/glob.awk" "$got" >"$work.why" 2>&1 ||
			{ fail "standard $2: $(cat "$work.why")"; sed 's/^/  | /' "$got" >&2; }
		return
	fi
	want=$stem.$1
	[ -f "$want" ] || want=/dev/null
	cmp -s "$want" "$got" && return
	if [ $update = yes ]; then
		if [ -s "$got" ]; then cp "$got" "$stem.$1"; else rm -f "$stem.$1"; fi
		echo "updated $stem.$1" >&2
		return
	fi
	fail "standard $2 differs (- expected, + got):"
	diff -u "$want" "$got" | sed -e '1,2d' -e 's/^/  /' >&2
}

check_exit() {
	want=0
	[ ! -f "$stem.exit" ] || want=$(cat "$stem.exit")
	[ "$code" -ne "$want" ] || return
	if [ $update = yes ]; then
		if [ "$code" -eq 0 ]; then rm -f "$stem.exit"; else echo "$code" >"$stem.exit"; fi
		echo "updated $stem.exit" >&2
		return
	fi
	fail "exit code $code instead of $want"
}

for case; do
	stem=$(cd "$(dirname "$case")" && pwd)/$(basename "$case" .sh)
	[ -f "$stem.sh" ] || { echo "run.sh: $case does not exist" >&2; exit 2; }
	number=$((number + 1))
	work=$scratch/$number
	mkdir "$work" || exit 1
	ok=yes
	(cd "$work" && exec sh -u "$stem.sh") >"$work.stdout" 2>"$work.stderr" </dev/null
	code=$?
	if [ $code -eq 77 ] && [ ! -f "$stem.exit" ]; then
		echo "skipped $case: $(cat "$work.stderr")" >&2
		skipped=$((skipped + 1))
		continue
	fi
	check_exit
	compare stdout output
	compare stderr error
	if [ $ok = yes ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "  again: $here/run.sh --roofline $ROOFLINE $stem.sh" >&2
	fi
done

[ $# -eq 1 ] || echo "$passed passed, $failed failed, $skipped skipped" >&2
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
