# A region of the marker API, group MEM_DP: raw events by formula.
cd "$RFL_TEST_DATA/profile" && roofline counters import likwid_mem_dp.csv
