# The label of a run that is in the file already: nothing is added.
cp "$RFL_TEST_DATA"/profile/timev_s1_spaces.txt .
roofline -q counters import timev_s1_spaces.txt --output counters.csv >/dev/null
cp counters.csv before.csv
roofline counters import timev_s1_spaces.txt --output counters.csv
status=$?
cmp counters.csv before.csv && exit $status
