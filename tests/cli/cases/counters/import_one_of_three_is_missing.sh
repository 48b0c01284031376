# The others are read where the user says so.
cp "$RFL_TEST_DATA"/profile/timev_s1_spaces.txt a.txt
cp "$RFL_TEST_DATA"/profile/timev_s2_cabal.txt c.txt
roofline counters import a.txt b.txt c.txt
echo $? >&2
roofline counters import a.txt b.txt c.txt --keep-going | grep time,
