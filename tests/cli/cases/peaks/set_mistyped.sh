roofline peaks set peaks.json lab fp32.vectro 420 --source "data sheet"
code=$?
[ ! -e peaks.json ] || echo "a file was written"
exit $code
