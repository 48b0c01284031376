# Where the loader knows no driver.
LD_LIBRARY_PATH= RFL_CUPTI_PATH=$(dirname "$ROOFLINE")/../tests/fakes roofline -q counters check --format csv >check.csv 2>why
code=$?
grep -q "^driver,ok" check.csv && { echo "there is a driver here" >&2; exit 77; }
echo "exit $code"
cat why
cut -d, -f1,2 check.csv | grep -v "^processor"
