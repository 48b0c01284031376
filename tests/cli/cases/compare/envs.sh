# Two environments of one ledger, and a gate that fails.
sed '2,$s/mac_mps/lab_mps/; 2,$s/macbook/lab/' "$RFL_TEST_DATA"/ledger/mac_mps.csv |
	awk -F, -v OFS=, 'NR > 1 { $11 *= 0.5 } 1' >b.csv
{ cat "$RFL_TEST_DATA"/ledger/mac_mps.csv; sed 1d b.csv; } >metrics.csv
roofline -q compare --metrics metrics.csv --env mac_mps lab_mps --model mobilenet_v2 --format csv | cut -d, -f1-3,16-28
roofline -q compare --metrics metrics.csv --env mac_mps lab_mps --model mobilenet_v2 --fail-if slower,missing >/dev/null
