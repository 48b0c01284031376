# Points of an environment that the peaks file does not have.
cp "$RFL_TEST_DATA"/plot/points.csv .
sed 's/"old_box"/"older_box"/' "$RFL_TEST_DATA"/plot/peaks.json >peaks.json
roofline plot --points points.csv --peaks peaks.json --format svg
