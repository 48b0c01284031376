roofline complexity --net "$RFL_TEST_DATA/complexity/net_invalid/shape_add/input.json"
