cp "$RFL_TEST_DATA/peaks/long.json" peaks.json
roofline peaks show peaks.json --env gcp_l5
