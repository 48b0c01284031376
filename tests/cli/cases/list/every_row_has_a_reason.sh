# "no" is never without a reason, "ok" never has one.
roofline list --format json >rows.json
grep '"status": "no"' rows.json | grep '"reason": null'
grep '"status": "ok"' rows.json | grep -v '"reason": null'
for registry in models engines benchmarks sources importers surfaces; do
	grep -q "\"registry\": \"$registry\"" rows.json && echo "$registry"
done
