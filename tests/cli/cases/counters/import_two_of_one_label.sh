# Two files that both have FLOPs are two runs.
cp "$RFL_TEST_DATA"/profile/s05_nvprof_metrics.csv a.csv
cp "$RFL_TEST_DATA"/profile/ncu/s01_a100_sgemm_metrics_long.csv b.csv
roofline counters import a.csv b.csv --label run1
