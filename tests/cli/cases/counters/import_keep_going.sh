# The same, and the rows in front of it.
head -c 3000 "$RFL_TEST_DATA"/profile/s05_nvprof_metrics.csv >cut.csv
roofline counters import cut.csv --keep-going --all-metrics --by metric --kernels 3
