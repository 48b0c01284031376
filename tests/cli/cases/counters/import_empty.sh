# An empty file.
: >a.csv
roofline counters import a.csv
