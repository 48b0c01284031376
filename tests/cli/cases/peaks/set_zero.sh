roofline peaks set peaks.json lab fp32.vector 0 --source "data sheet"
code=$?
[ ! -e peaks.json ] || echo "a file was written"
exit $code
