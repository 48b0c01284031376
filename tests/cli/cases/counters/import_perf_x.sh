# perf stat -x: values that perf has scaled to the whole time are not scaled again.
cd "$RFL_TEST_DATA/profile" && roofline counters import perfstat_s1_x_csv_multiplexed.csv
