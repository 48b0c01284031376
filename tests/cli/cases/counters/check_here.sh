# A stand-in for driver and CUPTI: everything holds.
fakes=$(dirname "$ROOFLINE")/../tests/fakes
LD_LIBRARY_PATH=$fakes RFL_CUPTI_PATH=$fakes roofline counters check --format csv >check.csv
echo "exit $?"
cut -d, -f1,2 check.csv | grep -v "^processor"
