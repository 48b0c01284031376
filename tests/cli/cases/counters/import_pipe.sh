# A pipe has no name: the label says which run it is.
roofline counters import - --label lab_resnet50_fp32_bs4_run1 <"$RFL_TEST_DATA"/profile/timev_s1_spaces.txt | head -n 1
