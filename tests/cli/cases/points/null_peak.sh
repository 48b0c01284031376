# A null ceiling stops the command; nothing is written.
cp "$RFL_TEST_DATA"/roofline/metrics.csv "$RFL_TEST_DATA"/roofline/peaks_null.json .
roofline -q points --metrics metrics.csv --peaks peaks_null.json --output points.csv
code=$?
ls
exit $code
