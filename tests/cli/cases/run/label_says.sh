# A label that says another precision or batch than the run has is told; any other text is a label.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH
for label in lab_resnet18_fp32_bs4_run1 lab_resnet18_amp_bs64_run1 my-own.try_2; do
	roofline run --engine fake --backend cpu --arch resnet18 --image-size 32 --batch-size 4 --synthetic --warmup-iters 1 \
		--iters 2 --threads 1 --label $label >out 2>err || cat out
	grep -e '--label' err
done
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at["label"], $at["precision"], $at["batch"] }' logs/metrics.csv

# Of several processes it is told once, by the label that was given; the batch of one or of all is true.
for label in both_resnet18_fp32_bs4_a both_resnet18_fp32_bs8_b both_resnet18_fp32_bs2_c; do
	mkdir $label
	RFL_FAKE_WORLD=$PWD/$label roofline run --engine fake --backend cpu --arch resnet18 --image-size 32 --batch-size 4 --synthetic \
		--warmup-iters 1 --iters 2 --threads 1 --world 2 --label $label >out 2>err || cat out err
	grep -e '--label' err
done
