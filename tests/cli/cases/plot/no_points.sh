# A file of points without a point.
head -1 "$RFL_TEST_DATA"/plot/points.csv >points.csv
roofline plot --points points.csv --peaks "$RFL_TEST_DATA"/plot/peaks.json
