# The steps that a file covers are kept; counters.csv has them already.
cp "$RFL_TEST_DATA"/profile/timev_s1_spaces.txt run1.txt
roofline counters import run1.txt --steps 30 --output c.csv | head -n 1
cut -d , -f 2,10 c.csv | head -n 2
roofline counters import c.csv --steps 5 | head -n 1
roofline counters import run1.txt --steps 0
