# perf stat -j on a virtual machine without counters: why cycles are not known.
cd "$RFL_TEST_DATA/profile" && roofline counters import perf61_j.json
