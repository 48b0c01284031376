# A file of another profiler is no counters.csv.
roofline counters show "$RFL_TEST_DATA/profile/s05_nvprof_metrics.csv" 2>&1 | sed 's|.*/tests/data|tests/data|'
