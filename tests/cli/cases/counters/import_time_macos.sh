# time -l of macOS, in front of which the program printed something.
cd "$RFL_TEST_DATA/profile" && roofline counters import timel_s1_macos.txt timel_s2_macos_signals.txt
