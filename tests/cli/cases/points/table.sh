# What people see, and that the file is written.
cp "$RFL_TEST_DATA"/roofline/metrics.csv "$RFL_TEST_DATA"/roofline/peaks.json .
roofline points --metrics metrics.csv --peaks peaks.json --output analysis/points.csv
ls analysis
