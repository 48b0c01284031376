# GNU time -v, every metric: kbytes are KiB.
cd "$RFL_TEST_DATA/profile" && roofline counters import timev_s1_spaces.txt timev_s2_cabal.txt --by metric
