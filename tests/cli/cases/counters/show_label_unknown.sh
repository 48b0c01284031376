# A label that no capture has.
(cd "$RFL_TEST_DATA/profile/ncu" && roofline counters import s01_a100_sgemm_metrics_long.csv --format csv) >c.csv
roofline counters show c.csv --label nobody
