# The exit code depends on what is here: 0 or 1, never anything else.
roofline doctor >screen
code=$?
for check in program system processor vectors memory gpu counters models engine benchmarks figures fonts \
	jpeg folder; do
	grep -Eq "^(ok|warn|no) +$check +[^ ]" screen || echo "no line: $check"
done
grep -A 1 -E '^(warn) ' screen | grep -q -v -E '^(warn|     *->)' && echo "a warning without advice"
[ "$code" -eq 0 ] && grep -q '^The main job works here:' screen && exit 0
[ "$code" -eq 1 ] && grep -q '^The main job does not work here' screen && exit 0
exit "$code"
