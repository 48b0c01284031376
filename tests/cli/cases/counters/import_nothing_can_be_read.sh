# None of several.
roofline counters import a.txt b.txt --keep-going
