# What was counted live is not added to its own file again.
cp "$RFL_TEST_DATA"/profile/timev_s1_spaces.txt a.txt
roofline -q counters import a.txt --output a.csv >/dev/null
sed 's/,time,a.txt,/,time,,/' a.csv >live.csv
roofline counters import live.csv --output live.csv
