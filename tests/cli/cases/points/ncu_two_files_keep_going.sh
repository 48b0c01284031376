# Two files for one label, and the user wants the rest: the one whose steps are known stays.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
sh "$RFL_TEST_DATA"/roofline/ncu_synthetic.sh 30 seed >ncu/rtx4090_resnet50_fp32_prof.csv
cp ncu/rtx4090_resnet50_fp32_prof.csv ncu/rtx4090_resnet50_fp32_bs128.csv
roofline points --metrics metrics.csv --peaks peaks.json --ncu-dir ncu --env rtx4090 --keep-going --format json |
	tr '{,' '\n\n' | grep -E '"(bytes_counters|counters_repeats)": [0-9]'
