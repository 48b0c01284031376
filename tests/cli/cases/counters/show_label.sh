# Captures of one run among several.
(cd "$RFL_TEST_DATA/profile/ncu" && roofline counters import s01_a100_sgemm_metrics_long.csv s06_metrics_tensor_na.csv --format csv) >c.csv
roofline counters show c.csv --label s06_metrics_tensor_na --format json | grep -E '^  "|^      "label"'
