#!/bin/sh
# Draw the pictures of docs/gallery.md from data in tests/data.
#
#   tools/gallery.sh ROOFLINE [DIR]    DIR: default docs/images/gallery
set -eu
roofline=$1 out=${2:-docs/images/gallery} data=tests/data
mkdir -p "$out"
draw() { # NAME OPTIONS...: the picture of lab_cpu, or of all environments
	name=$1
	shift
	"$roofline" -q plot --points $data/plot/points.csv --peaks $data/plot/peaks.json --dpi 96 --no-data \
		--output-dir "$out/new" "$@" >/dev/null
	mv "$out/new/"*.png "$out/$name.png"
	rm -r "$out/new"
}
for style in screen paper column slides dark mono; do
	draw "style-$style" --env lab_cpu --style $style
done
draw trajectory --env lab_cpu --kind trajectory
draw grid --layout grid
draw overlay --layout overlay
"$roofline" -q plot --kind throughput --metrics $data/ledger/mac_mps.csv --dpi 96 --output-dir "$out/new" >/dev/null
mv "$out/new/throughput_mac_mps.png" "$out/throughput.png"
rm -r "$out/new"
