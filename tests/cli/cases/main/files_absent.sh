# A file that an earlier command makes: the message names that command.
roofline points
echo "$?"
cp "$RFL_TEST_DATA"/roofline/metrics.csv .
roofline points --metrics metrics.csv --peaks ceilings.json
echo "$?"
roofline plot --points points.csv --peaks ceilings.json
echo "$?"
roofline peaks show ceilings.json
echo "$?"
cp "$RFL_TEST_DATA"/plot/points.csv .
roofline points --metrics points.csv --peaks "$RFL_TEST_DATA"/roofline/peaks.json
echo "$?"
