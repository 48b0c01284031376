cp "$RFL_TEST_DATA/peaks/invalid/short_unknown_key/input.json" peaks.json
roofline peaks check peaks.json
