cp "$RFL_TEST_DATA/plot/peaks.json" .
roofline complexity -m resnet18 --precision bf16 --peaks peaks.json --env lab_cpu
