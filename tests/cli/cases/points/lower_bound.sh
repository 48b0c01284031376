# As older reports have it: 2 x forward, AI = attained / bandwidth.
cp "$RFL_TEST_DATA"/roofline/metrics.csv "$RFL_TEST_DATA"/roofline/peaks.json .
roofline -q points --metrics metrics.csv --peaks peaks.json --ai lower-bound --train-factor 2 --format md
