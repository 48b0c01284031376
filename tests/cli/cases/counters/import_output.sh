# Captures are added to counters.csv, from which they come back as they were.
cp "$RFL_TEST_DATA"/profile/s05_nvprof_metrics.csv "$RFL_TEST_DATA"/profile/timev_s1_spaces.txt .
roofline counters import s05_nvprof_metrics.csv --output logs/counters.csv | head -n 1
roofline counters import timev_s1_spaces.txt --output logs/counters.csv | head -n 1
roofline counters import logs/counters.csv --format csv | cmp - logs/counters.csv && echo same
