# One figure per environment and format; the same input gives the same bytes.
roofline plot --points "$RFL_TEST_DATA"/plot/points.csv --peaks "$RFL_TEST_DATA"/plot/peaks.json \
	--format svg
ls figures
roofline plot --points "$RFL_TEST_DATA"/plot/points.csv --peaks "$RFL_TEST_DATA"/plot/peaks.json \
	--format svg --env lab_cpu --output-dir again/deep
cmp figures/roofline_lab_cpu.svg again/deep/roofline_lab_cpu.svg
grep -c '<text' again/deep/roofline_lab_cpu.svg
