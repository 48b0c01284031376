# A metric that an older CUPTI lacks is said to be absent, and not asked of ncu.
export RFL_CUPTI_PATH=$(dirname "$ROOFLINE")/../tests/fakes
export FAKE_CUPTI="absent=l1tex__t_bytes"
roofline counters list --chip GA100 --format csv | grep "^l1_bytes"
roofline -q counters list --chip GA100 --ncu >line
grep -q l1tex__t_bytes line || echo "ncu is not asked for it"
