# 27 runs that another program wrote, against the matrix that they were of.
cp "$RFL_TEST_DATA"/ledger/mac_mps.csv .
roofline summary --metrics mac_mps.csv --matrix "$RFL_TEST_DATA"/../../examples/matrix-mac-mps.json --output-dir S
ls S
cmp S/throughput_summary.csv - <<END || exit
$(roofline -q summary --metrics mac_mps.csv --format csv)
END
cat S/throughput_summary.md
