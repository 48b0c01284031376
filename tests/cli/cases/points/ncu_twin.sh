# FLOPs and bytes measured: 3130281936896 of 3110281936896 FLOP, and a kernel without one.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
sh "$RFL_TEST_DATA"/roofline/ncu_synthetic.sh 30 sass >ncu/rtx4090_resnet50_fp32_prof.csv
for flops in model counters; do
	roofline -q points --metrics metrics.csv --peaks peaks.json --ncu-dir ncu --env rtx4090 --ai counters --flops $flops --skip-missing --format json |
		tr '{,' '\n\n' | grep -E '"(flops_per_step|flops_source|bytes_per_step|bytes_source|ai|ai_counters|flops_counters|bytes_counters|flops_measured_over_counted|bytes_over_[a-z]*|counters_[rsv][a-z]*|coverage|zero_flop_[a-z]*|attained_gflops|compute_key)"'
done
