# The message says what the file looks like.
cp "$RFL_TEST_DATA"/profile/timev_s1_spaces.txt a.txt
roofline counters import a.txt --from perf
