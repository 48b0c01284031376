cp "$RFL_TEST_DATA/peaks/long.json" peaks.json
roofline peaks check --strict peaks.json
