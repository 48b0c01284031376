# Metrics as they were read.
(cd "$RFL_TEST_DATA/profile/ncu" && roofline counters import s06_metrics_tensor_na.csv --format csv) >c.csv
roofline counters show c.csv --by metric | sed -n 1,12p
