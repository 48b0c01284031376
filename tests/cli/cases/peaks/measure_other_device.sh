cp "$RFL_TEST_DATA/peaks/long.json" peaks.json
roofline peaks measure --env rtx4090 --output peaks.json --quick
