# FLOPs of counters are demanded of a file that has none: the reason, and what to do.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
sh "$RFL_TEST_DATA"/roofline/ncu_synthetic.sh 30 seed >ncu/rtx4090_resnet50_fp32_prof.csv
sed '/bs64\|amp/d' metrics.csv >one.csv
roofline -q points --metrics one.csv --peaks peaks.json --ncu-dir ncu --env rtx4090 --flops counters
