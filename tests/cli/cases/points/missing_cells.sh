# An absent environment and an unknown cell, in one message.
cp "$RFL_TEST_DATA"/roofline/metrics.csv "$RFL_TEST_DATA"/roofline/peaks_unknown.json .
roofline -q points --metrics metrics.csv --peaks peaks_unknown.json --output points.csv
