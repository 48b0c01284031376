# Hundreds of columns, and neither FLOPs nor bytes among them: unavailable, and no failure.
cd "$RFL_TEST_DATA/profile/ncu" && roofline counters import s02_b200_wide_raw_base.csv
