# A kind that there is not.
roofline counters import a.txt --from vtune
