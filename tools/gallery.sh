#!/bin/sh
# Draw the pictures of docs/gallery.md from the data in tests/data.
#
#   tools/gallery.sh ROOFLINE [DIR]    DIR: default docs/images/gallery
set -eu
roofline=$1 out=${2:-docs/images/gallery} data=tests/data
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
draw() { # NAME OPTIONS...: the picture drawn by these options
	name=$1
	shift
	"$roofline" -q plot --dpi 96 --no-data --output-dir "$work/new" "$@" >/dev/null
	mv "$work/new/"*.png "$out/$name.png"
	rm -r "$work/new"
}
points() { # NAME OPTIONS...: the points of these files
	name=$1
	shift
	"$roofline" -q points "$@" --output "$work/$name.csv" >/dev/null
}
lab() { # NAME OPTIONS...: the picture of the synthetic points
	name=$1
	shift
	draw "$name" --points $data/plot/points.csv --peaks $data/plot/peaks.json "$@"
}

for style in screen paper column slides dark mono; do
	lab "style-$style" --env lab_cpu --style $style
done
lab grid --layout grid
lab overlay --layout overlay
lab trajectory --env lab_cpu --kind trajectory
lab time --env lab_cpu --kind time

# a language model
points lm --metrics $data/plot/lm.csv --peaks $data/roofline/gpu_peaks.json
draw contexts --points "$work/lm.csv" --peaks $data/roofline/gpu_peaks.json --kind trajectory --style paper

# kernels of a step, from a synthetic ncu file
mkdir "$work/ncu" "$work/sgemm"
sh $data/roofline/ncu_synthetic.sh 30 sass >"$work/ncu/rtx4090_resnet50_fp32_prof.csv"
points kernels --metrics $data/roofline/gpu_metrics.csv --peaks $data/roofline/gpu_peaks.json --env rtx4090 \
	--ncu-dir "$work/ncu" --by kernel
draw kernels --points "$work/kernels.csv" --peaks $data/roofline/gpu_peaks.json --kind kernels

# a matrix product with the traffic of all levels
cp $data/profile/ncu/s01_a100_sgemm_metrics_long.csv "$work/sgemm/a100_sgemm_fp32_bs1_prof.csv"
cat >"$work/metrics.csv" <<END
label,env,status,backend,model,batch,precision,mode,iters,step_ms_median
a100_sgemm_fp32_bs1_run1,a100,ok,cuda,sgemm,1,fp32,fwd,1,1000
END
points sgemm --metrics "$work/metrics.csv" --peaks $data/plot/a100.json --ncu-dir "$work/sgemm" --by kernel
draw hierarchical --points "$work/sgemm.csv" --peaks $data/plot/a100.json --kind hierarchical --style paper \
	--title "A matrix product (gemm_v0) and its initialisation on an A100"

# runs on two cores
two=$data/plot/two_cores
draw layers --points $two/layers.csv --peaks $two/peaks.json --kind layers
draw time-layers --points $two/layers.csv --peaks $two/peaks.json --kind time
for run in 1 2; do
	sed -n "1p; /_run$run,/p" $two/metrics.csv >"$work/metrics.csv"
	points run$run --metrics "$work/metrics.csv" --peaks $two/peaks.json
done
draw compare --points "$work/run2.csv" --against "$work/run1.csv" --peaks $two/peaks.json --kind compare \
	--style paper
for kind in phases steps loss; do
	draw $kind --kind $kind --metrics $two/metrics.csv
done
draw bandwidth --kind bandwidth --peaks $data/plot/sweep_peaks.json
draw memory --kind memory --metrics $data/ledger/v0.1.0.csv
draw throughput --kind throughput --metrics $data/ledger/mac_mps.csv
draw scaling --kind scaling --metrics $data/ledger/attention_laptop.csv --map $data/ledger/lm.map 'env="laptop_{device}"' \
	'model="attention_d{d_model}"'
