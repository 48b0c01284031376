# A closed standard stream fails where it is used, and no file takes its place.
roofline version >&-
echo "exit $?"
roofline complexity --models resnet18 --output-dir out --format json >&- 2>/dev/null
echo "exit $?"
roofline complexity --models resnet18 --format json >expected
cmp expected out/summary.json
roofline nonsense 2>&-
echo "exit $?"
roofline run-child <&- 2>/dev/null
echo "exit $?"
