roofline peaks show "$RFL_TEST_DATA/peaks/short.json" --format csv
