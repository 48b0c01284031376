# Two files for one label.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
sh "$RFL_TEST_DATA"/roofline/ncu_synthetic.sh 30 seed >ncu/rtx4090_resnet50_fp32_prof.csv
cp ncu/rtx4090_resnet50_fp32_prof.csv ncu/rtx4090_resnet50_fp32_bs128.csv
roofline -q points --metrics metrics.csv --peaks peaks.json --ncu-dir ncu --env rtx4090 --counter-steps 30
