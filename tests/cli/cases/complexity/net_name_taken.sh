roofline complexity --net "$RFL_TEST_DATA/complexity/net_invalid/name_taken/input.json"
