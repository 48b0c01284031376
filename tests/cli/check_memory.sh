#!/bin/sh
# check_memory.sh ROOFLINE LIBRARY DATA - memory runs out at one allocation after another: the program ends with exit
# code 1 and one message, or does not need that memory. It never crashes, a file that it replaces is the old one or
# the new one, and a new file is whole or a temporary one. LIBRARY (failing_memory.c) makes the allocation fail.
# Figures are SVG: cairo and libpng, which write the other formats, do not survive all failures.
set -u
export LC_ALL=C SOURCE_DATE_EPOCH=1700000000
roofline=$1 library=$2 data=$3
dir=$(mktemp -d "${TMPDIR:-/tmp}/roofline-memory.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cd "$dir" || exit
mkdir good work
cp "$data/roofline/metrics.csv" "$data/roofline/peaks.json" good
bad=0

fail() {
	echo "when allocation $n of $count fails: roofline $*" >&2
	sed 's/^/    /' ../log >&2
	bad=1
}

# The command in a directory of good files, then again with failures in a copy of them. In every second run its files
# exist already.
check() {
	cd "$dir/good" || exit
	COUNT_TO=$dir/count LD_PRELOAD=$library "$roofline" "$@" >../out 2>../log || { cat ../log; exit 1; } >&2
	[ -s ../count ] || { echo "skipped: nothing can be preloaded" >&2; exit 77; }
	count=$(cat ../count)
	mv ../log ../known # warnings
	for i in $(seq 0 49); do
		n=$((1 + i * count / 50))
		cd "$dir" && rm -rf work && mkdir work && cd work || exit
		[ $((i % 2)) -eq 1 ] || cp ../good/metrics.csv ../good/peaks.json .
		[ $((i % 2)) -eq 0 ] || cp -R ../good/. .
		[ -e points.csv ] || [ ! -e ../good/points.csv ] || [ "$1" = points ] || cp ../good/points.csv .
		FAIL_AT=$n LD_PRELOAD=$library "$roofline" "$@" >../out 2>../log
		code=$?
		said=$(grep -vxF -f ../known ../log)
		case $code,$said in
		0, | 1,'roofline: out of memory') ;;
		1,roofline*': out of memory' | 1,roofline*': Cannot allocate memory')
			[ "$(printf '%s\n' "$said" | wc -l)" -eq 1 ] || fail "$@" ;;
		*) fail "$@: exit $code" ;;
		esac
		find . -type f ! -name '*.tmp.[0-9]*.[0-9]*' >../files
		while read -r file; do
			cmp -s "$file" "../good/$file" || fail "$@: $file is neither old nor new"
		done <../files
	done
}

check complexity --models resnet18 --batch-sizes 2 --output-dir summaries
check points --metrics metrics.csv --peaks peaks.json --output points.csv --skip-missing
check plot --points points.csv --peaks peaks.json --output-dir figures --format svg
check report --metrics metrics.csv --points points.csv --peaks peaks.json --output report.html
check summary --metrics metrics.csv
check peaks show peaks.json
exit $bad
