cp "$RFL_TEST_DATA/peaks/long.json" peaks.json
roofline peaks check peaks.json
