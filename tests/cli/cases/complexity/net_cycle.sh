roofline complexity --net "$RFL_TEST_DATA/complexity/net_invalid/cycle/input.json"
