cp "$RFL_TEST_DATA/peaks/invalid/bare_null/input.json" peaks.json
roofline peaks check peaks.json
