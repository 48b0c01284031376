# A table of another kind is named, in one message.
cp "$RFL_TEST_DATA"/plot/points.csv "$RFL_TEST_DATA"/plot/peaks.json "$RFL_TEST_DATA"/roofline/metrics.csv .
printf 'model;batch\n"a;1,5";"b\nx,y,z\n' >semicolons.csv
roofline summary --metrics points.csv
roofline summary --metrics peaks.json
roofline points --metrics peaks.json --peaks peaks.json
roofline points --metrics semicolons.csv --peaks peaks.json
roofline plot --points metrics.csv --peaks peaks.json
