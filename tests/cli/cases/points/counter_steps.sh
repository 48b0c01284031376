# Steps are numbers.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
roofline points --metrics metrics.csv --peaks peaks.json --counter-steps all
roofline points --metrics metrics.csv --peaks peaks.json --counter-steps a=3 a=3 a=4
