roofline compare
roofline compare a.csv
roofline compare a.csv b.csv c.csv
roofline compare --env a b c
roofline compare a.csv b.csv --metric loss_last
roofline compare a.csv b.csv --fail-if same
roofline compare a.csv b.csv --threshold -1
roofline compare a.csv b.csv
