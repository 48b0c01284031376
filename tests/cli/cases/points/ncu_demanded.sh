# Counters are demanded, and two of the configurations have none.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
sh "$RFL_TEST_DATA"/roofline/ncu_synthetic.sh 30 seed >ncu/rtx4090_resnet50_fp32_prof.csv
roofline -q points --metrics metrics.csv --peaks peaks.json --ncu-dir ncu --env rtx4090 --ai counters --output points.csv
