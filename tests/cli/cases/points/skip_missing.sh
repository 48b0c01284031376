# The rest, and what was left out.
cp "$RFL_TEST_DATA"/roofline/metrics.csv "$RFL_TEST_DATA"/roofline/peaks_unknown.json .
roofline points --metrics metrics.csv --peaks peaks_unknown.json --skip-missing --format md
