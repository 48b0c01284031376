cp "$RFL_TEST_DATA"/roofline/metrics.csv "$RFL_TEST_DATA"/roofline/peaks.json .
roofline points --metrics metrics.csv --peaks peaks.json --env lab_cup
