# The page of details: bytes are an estimate, because ncu rounds what they are made of.
cd "$RFL_TEST_DATA/profile/ncu" && roofline counters import s03_t4_details_rules.csv
