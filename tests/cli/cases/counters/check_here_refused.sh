# The driver allows counters to administrators only: what fails is named, and what to do.
fakes=$(dirname "$ROOFLINE")/../tests/fakes
export FAKE_CUPTI="fail=cuptiProfilerGetCounterAvailability:35"
LD_LIBRARY_PATH=$fakes RFL_CUPTI_PATH=$fakes roofline counters check --format csv >check.csv
echo "exit $?"
grep "^permission" check.csv
