# Columns by a file and by the command line; step times instead of a rate.
cat >map.txt <<'END'
# of our older script
model = net
batch = n
step_ms_median = secs s
END
printf 'net,n,secs\nvgg16,8,0.5\nvgg16,8,0.52\nvgg16,8,\n' >old.csv
roofline summary --metrics old.csv --metric step_ms --map map.txt 'env="lab"' 'precision="fp32"' --format json
roofline summary --metrics old.csv --map map.txt
roofline summary --metrics old.csv --map modle=net
roofline summary --metrics old.csv --map none.txt
