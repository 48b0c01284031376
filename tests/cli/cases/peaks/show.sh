roofline peaks show "$RFL_TEST_DATA/peaks/long.json" --env gcp_l4 zen5_vm
