# FLOPs of matrix units, and names of nvprof that no chip has.
cd "$RFL_TEST_DATA/profile/ncu" && roofline counters import s06_metrics_tensor_na.csv
