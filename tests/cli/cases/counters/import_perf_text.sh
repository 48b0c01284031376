# perf stat on a processor with two kinds of cores, of which the process used one.
cd "$RFL_TEST_DATA/profile" && roofline counters import perfstat_s2_armv8_notcounted.txt
