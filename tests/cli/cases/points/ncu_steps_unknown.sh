# No row bears the label of the file: how many steps it covers is asked for, once of a point.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
sh "$RFL_TEST_DATA"/roofline/ncu_synthetic.sh 30 sass >ncu/rtx4090_resnet50_fp32_bs128_prof.csv
roofline -q points --metrics metrics.csv --peaks peaks.json --ncu-dir ncu --env rtx4090 | grep 'not used'
roofline -q points --metrics metrics.csv --peaks peaks.json --ncu-dir ncu --env rtx4090 \
	--counter-steps rtx4090_resnet50_fp32_bs128_prof=30 | grep 'bytes measured'
