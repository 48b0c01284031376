# Metrics of nvprof: reads of DRAM were counted, and were 0.
cd "$RFL_TEST_DATA/profile" && roofline counters import s05_nvprof_metrics.csv
