# What cannot begin has no row, keeps nothing back, and is named at the end.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH ROOFLINE_LOCK_DIR=$PWD
umask 077
sed -e 's/"options": {"channels-last": true}/"options": {"synthetic": false, "data": "photos"}/' \
	"$(dirname "$0")/small.json" >m.json
roofline matrix run m.json --only lab/resnet18/fp32/2 2>err | sed -e 's/: ok, .*/: ok/'
sed 's/, about [0-9]* s left//' err >&2
ls -l roofline-cpu.lock | cut -c 1-10 # others can take it, too
roofline matrix status m.json --only lab/resnet18/fp32/2
echo "exit $?"

# One folder of many networks is one thing to mend; nothing begins, and only a run needs it.
sed -e 's/"synthetic": true/"data": "photos"/' "$(dirname "$0")/small.json" >all.json
roofline matrix run all.json --log-dir none
echo "exit $?"
[ ! -e none ] || echo "something has begun"
roofline matrix run all.json --log-dir none --shard 0/7 2>&1 >/dev/null | head -n 1
for command in expand slurm; do
	roofline matrix $command all.json >/dev/null && echo "$command: the folder may be elsewhere"
done
roofline matrix status all.json --log-dir none 2>/dev/null | tail -n 1
mkdir photos # the next thing to mend
roofline matrix run -q all.json --log-dir none | tail -n 1 | sed 's/^.* \([0-9]*\)  refused  \(.\{26\}\).*/\1 refused: \2/'

# What was interrupted would be run again: that its folder has gone meanwhile is the reason now.
roofline matrix run -q "$(dirname "$0")/small.json" --log-dir gone --only lab_resnet18_fp32_bs4_run1 >/dev/null
awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR > 1 { $at["cell"] = ""; $at["status"] = "interrupted" } 1' \
	gone/metrics.csv >row
mv row gone/metrics.csv
rmdir photos
roofline matrix run -q all.json --log-dir gone --only lab_resnet18_fp32_bs4_run1 2>/dev/null
echo "exit $?"
