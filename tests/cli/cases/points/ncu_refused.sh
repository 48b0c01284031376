# ncu may not count: its file is the reason why the point stands on counts.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
printf "%s\n" "==PROF== Connected to process 7 (/a)" "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission" \
	>ncu/rtx4090_resnet50_fp32_prof.csv
roofline points --metrics metrics.csv --peaks peaks.json --ncu-dir ncu --env rtx4090
