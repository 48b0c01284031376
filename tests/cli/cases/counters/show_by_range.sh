# Every block and grid of a kernel by itself, the longest first, as Markdown.
(cd "$RFL_TEST_DATA/profile/ncu" && roofline counters import s01_a100_sgemm_metrics_long.csv --format csv) >c.csv
roofline counters show c.csv --by range --kernels 2 --format md
