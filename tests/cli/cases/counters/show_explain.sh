# The rule behind each figure, with what went in; and what is missing for the others.
(cd "$RFL_TEST_DATA/profile/ncu" && roofline counters import s01_a100_sgemm_metrics_long.csv --format csv) >c.csv
roofline counters show c.csv --explain --kernels 1 | sed -n '/^Rules/,$p'
