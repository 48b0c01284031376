# A folder without any.
mkdir runs
roofline counters import runs
