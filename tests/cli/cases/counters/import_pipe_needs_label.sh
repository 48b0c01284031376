# What cannot be found again is not written.
roofline counters import - --output counters.csv <"$RFL_TEST_DATA"/profile/timev_s1_spaces.txt
status=$?
ls
exit $status
