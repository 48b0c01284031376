# The 28th row of a retry: named, and the last counts.
cp "$RFL_TEST_DATA"/../../examples/matrix-mac-mps.json .
{
	cat "$RFL_TEST_DATA"/ledger/mac_mps.csv
	echo 2025-11-14T12:40:00,macbook,mps,vgg16,32,0,fp32,10,100,40,80.00,mps,mac_mps_vgg16_fp32_bs32_r2_20251114_124000,2.9.1
} >metrics.csv
roofline -q summary --metrics metrics.csv --matrix matrix-mac-mps.json --model vgg16
roofline summary --metrics metrics.csv --matrix matrix-mac-mps.json --model vgg16 --format csv | cut -d, -f1-4,37-39
