# A profiled run of 30 steps beside timed ones of 100. Its FLOP metrics are n/a, its bytes are not:
# 30 x 60 GB over 30 steps, 3110281936896 FLOP over 60 GB.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
sh "$RFL_TEST_DATA"/roofline/ncu_synthetic.sh 30 seed >ncu/rtx4090_resnet50_fp32_prof.csv
roofline points --metrics metrics.csv --peaks peaks.json --ncu-dir ncu --env rtx4090
roofline -q points --metrics metrics.csv --peaks peaks.json --ncu-dir ncu --env rtx4090 --ai counters --skip-missing --format json |
	tr '{,' '\n\n' | grep -E '"(flops_per_step|bytes_per_step|ai|flops_counters|bytes_counters|ai_counters|flops_measured_over_counted|counters_steps|counters_validity)"'
