# Three launches of two kernels on an A100: totals to the digit, and the trap of HFMA2.MMA.
cd "$RFL_TEST_DATA/profile/ncu" && roofline counters import s01_a100_sgemm_metrics_long.csv
