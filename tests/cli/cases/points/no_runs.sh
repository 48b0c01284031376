# A ledger without a run that ended well.
cp "$RFL_TEST_DATA"/roofline/peaks.json .
sed 's/,ok,/,oom,/' "$RFL_TEST_DATA"/roofline/metrics.csv >metrics.csv
roofline points --metrics metrics.csv --peaks peaks.json --output points.csv
code=$?
ls
exit $code
