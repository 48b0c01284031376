# An environment that the points do not have.
roofline plot --points "$RFL_TEST_DATA"/plot/points.csv --peaks "$RFL_TEST_DATA"/plot/peaks.json \
	--env lab_cup 2>err
code=$?
sed "s#$RFL_TEST_DATA#DATA#g" err >&2
ls | grep -v err
exit $code
