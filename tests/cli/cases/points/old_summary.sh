# Forward MACs per sample are not enough.
cp "$RFL_TEST_DATA"/roofline/metrics.csv "$RFL_TEST_DATA"/roofline/peaks.json .
echo '{"resnet50": {"params": 25557032, "macs": 4089184256}}' >summary.json
roofline points --metrics metrics.csv --peaks peaks.json --complexity-json summary.json
