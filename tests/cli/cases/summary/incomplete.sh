# One row is gone: its name, and exit code 1; what there is is printed all the same.
mkdir logs-mac
sed 15d "$RFL_TEST_DATA"/ledger/mac_mps.csv >logs-mac/metrics.csv
cp "$RFL_TEST_DATA"/../../examples/matrix-mac-mps.json .
roofline -q summary --metrics logs-mac/metrics.csv --matrix matrix-mac-mps.json --model vgg16 --format md
