# -q keeps warnings back, wherever it stands; errors are still told.
cp "$RFL_TEST_DATA"/roofline/metrics.csv "$RFL_TEST_DATA"/roofline/peaks_unknown.json .
set -- points --metrics metrics.csv --peaks peaks_unknown.json
roofline "$@" --skip-missing 2>&1 >/dev/null | grep -q '^roofline: warning: ' && echo warned
roofline -q "$@" --skip-missing 2>&1 >/dev/null | wc -l | tr -d ' '
roofline "$@" --skip-missing --quiet 2>&1 >/dev/null | wc -l | tr -d ' '
roofline -q "$@" 2>&1 >/dev/null | head -n 1 | cut -c 1-16
