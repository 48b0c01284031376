# A size that cannot be.
roofline plot --points points.csv --peaks peaks.json --width 10
