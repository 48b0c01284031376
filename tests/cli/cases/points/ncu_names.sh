# Names that are no run's: each with the cure.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
for name in 4090_resnet50_fp32_bs128 rtx4090_resnet50_fp32 rtx4090_vgg16_fp32_bs32 tuesday; do
	sh "$RFL_TEST_DATA"/roofline/ncu_synthetic.sh 1 seed >ncu/$name.csv
done
roofline points --metrics metrics.csv --peaks peaks.json --ncu-dir ncu --env rtx4090 --format md | head -3
