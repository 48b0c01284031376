roofline complexity --net "$RFL_TEST_DATA/complexity/net_invalid/missing_tensor/input.json"
