# A counters.csv that cannot be read stops the command, or is left out.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir ncu
sh "$RFL_TEST_DATA"/roofline/ncu_synthetic.sh 30 seed >ncu/rtx4090_resnet50_fp32_prof.csv
roofline -q counters import ncu --output counters.csv >/dev/null
sed '3s/,total,/,totally,/' counters.csv >bad.csv
roofline -q points --metrics metrics.csv --peaks peaks.json --counters bad.csv --env rtx4090
for files in counters.csv "bad.csv counters.csv"; do
	roofline -q points --metrics metrics.csv --peaks peaks.json --counters $files --env rtx4090 --keep-going --format json |
		tr '{,' '\n\n' | grep -E '"bytes_counters": [0-9]'
done
roofline points --metrics metrics.csv --peaks peaks.json --counters bad.csv --env rtx4090 --keep-going --format csv | wc -l
