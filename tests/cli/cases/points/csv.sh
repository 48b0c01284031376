# --format csv is the file; without --output nothing is written.
cp "$RFL_TEST_DATA"/roofline/metrics.csv "$RFL_TEST_DATA"/roofline/peaks.json .
roofline -q points --metrics metrics.csv --peaks peaks.json --env lab_gpu --format csv
ls
roofline -q points --metrics metrics.csv --peaks peaks.json --env lab_gpu --output a.csv --format csv >b.csv
cmp a.csv b.csv
