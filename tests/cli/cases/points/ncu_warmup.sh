# The warm-up of 5 steps was profiled too: said, not used; with the number of steps it is.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
sh "$RFL_TEST_DATA"/roofline/ncu_synthetic.sh 35 sass >ncu/rtx4090_resnet50_fp32_prof.csv
sed '/bs64\|amp/d' metrics.csv >one.csv
roofline points --metrics one.csv --peaks peaks.json --ncu-dir ncu --env rtx4090
roofline -q points --metrics one.csv --peaks peaks.json --ncu-dir ncu --env rtx4090 --counter-steps rtx4090_resnet50_fp32_prof=35
