cp "$RFL_TEST_DATA/peaks/invalid/zero/input.json" peaks.json
roofline peaks check peaks.json
