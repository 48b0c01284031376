for options in "--as fvcore --train" "--as fvcore --precision amp" "--as fvcore -b 8" "--as fvcore --by kind" \
	"--as fvcore --columns model" "--fit 8GiB --top 3" "--fit 8GiB --columns model" "--fit 8GiB --optimizer adamw" \
	"--fit 8GiB -b 2" "-m tiny_lm --fit 1GiB -b 2 3" "--fit 8GiB --causal half" "--optimizer adamw" "--update fused" \
	"--accumulate 2" "--by kind --freeze conv1" "--by kind --checkpoint 1" "--by kind --aux" "--by kind --input-grad" \
	"--device cpu" "--depth 2" "--by layer --depth 2" "--top 3" "--summary --by kind" "--summary --train" \
	"--summary -b 1 8" "--summary --format csv" "--format json --columns model" "--format json --top 3 --by layer" \
	"--format json --fusion fused"; do
	roofline complexity -m resnet18 $options
	echo "$options: $?"
done
for question in "--as fvcore" "--fit 8GiB" "--summary" "--columns params"; do
	echo '{"lab": {"peak_gflops": 1500, "peak_gbps": 60}}' > peaks.json
	roofline complexity -m resnet18 $question --peaks peaks.json --env lab
	echo "$question --peaks: $?"
done
