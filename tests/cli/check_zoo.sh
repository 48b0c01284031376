#!/bin/sh
# The table of docs/reference/zoo.md, between its two marks, must be what the program counts.
#   check_zoo.sh [--update] ROOFLINE docs/reference/zoo.md
set -u
update=
[ "$1" = --update ] && update=yes && shift
roofline=$1
page=$2
for mark in begin end; do
	grep -q "^<!-- zoo: $mark" "$page" && continue
	echo "$page: no line '<!-- zoo: $mark ... -->' for the table" >&2
	exit 1
done
made=$(mktemp -d) || exit 1
trap 'rm -rf "$made"' EXIT

# What a sample of each model is, as `list` says it: "3x224x224, 1000 classes; also ..."
"$roofline" list models --format md >"$made/models" || exit 1
"$roofline" complexity --models all --train --format csv \
	--columns model,params,forward_macs,forward_flops,training_flops >"$made/counts" || exit 1
awk '
function grouped(n, out) {
	while (length(n) > 3) {
		out = "," substr(n, length(n) - 2) out
		n = substr(n, 1, length(n) - 3)
	}
	return n out
}
FNR == 1 { part++ }
part == 1 && /^\| models \|/ {
	split($0, cell, / *\| */)
	split(cell[6], word, "; also ")
	sample[cell[3]] = word[1]
	other[cell[3]] = word[2]
}
part == 2 && FNR == 1 {
	print "| model | a sample | parameters | MACs | FLOPs | training FLOPs |"
	print "|:---|:---|---:|---:|---:|---:|"
}
part == 2 && FNR > 1 {
	split($0, n, ",")
	if (!(n[1] in sample))
		exit 1
	printf "| %s%s | %s | %s | %s | %s | %s |\n", n[1],
		other[n[1]] == "" ? "" : " (" other[n[1]] ")", sample[n[1]], grouped(n[2]),
		grouped(n[3]), grouped(n[4]), grouped(n[5])
}' "$made/models" "$made/counts" >"$made/table" || exit 1

awk -v table="$made/table" '
!inside { print }
/^<!-- zoo: begin/ {
	inside = 1
	while ((getline line <table) > 0)
		print line
}
/^<!-- zoo: end/ { inside = 0; print }' "$page" >"$made/page" || exit 1
if [ -n "$update" ]; then
	cp "$made/page" "$page.new" && mv "$page.new" "$page"
	exit
fi
diff -u "$page" "$made/page" && exit 0
echo "docs/reference/zoo.md is not up to date: cmake --build <build> --target cli-update" >&2
exit 1
