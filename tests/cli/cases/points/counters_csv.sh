# Our own counters.csv: two repeats of 30 steps, which no row of the ledger tells. The file that was
# imported is not to be given a second time.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
for run in 1 2; do
	sh "$RFL_TEST_DATA"/roofline/ncu_synthetic.sh 30 seed >ncu/rtx4090_resnet50_fp32_bs128_run${run}_prof.csv
	roofline -q counters import ncu/rtx4090_resnet50_fp32_bs128_run${run}_prof.csv --output counters.csv >/dev/null
done
roofline -q points --metrics metrics.csv --peaks peaks.json --counters counters.csv --env rtx4090 --ai counters --skip-missing --counter-steps 30 --format json |
	tr '{,' '\n\n' | grep -E '"(bytes_per_step|bytes_source|ai|ai_lo|ai_hi|counters_[rsv][a-z]*)"'
roofline -q points --metrics metrics.csv --peaks peaks.json --counters counters.csv --env rtx4090 | grep 'bytes are'
roofline -q points --metrics metrics.csv --peaks peaks.json --counters counters.csv --ncu-dir ncu --env rtx4090 --counter-steps 30
