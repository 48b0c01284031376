cp "$RFL_TEST_DATA/peaks/invalid/nan/input.json" peaks.json
roofline peaks check peaks.json
