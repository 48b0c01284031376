# A file that is not there: how it is made.
roofline counters show logs/counters.csv
