# A file that ends in the middle of a row.
head -c 2000 "$RFL_TEST_DATA"/profile/s05_nvprof_metrics.csv >cut.csv
roofline counters import cut.csv
