roofline complexity --net "$RFL_TEST_DATA/complexity/net_invalid/overflow_counts/input.json"
