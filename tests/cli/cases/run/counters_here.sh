# On any machine: a run with counters is a run, whatever its counters say, and the step that was
# counted left its rows.
roofline list engines --format csv | grep -q '^engines,torch[^,]*,ok,' || { echo "no engine" >&2; exit 77; }
roofline run -q --arch resnet18 --image-size 32 --batch-size 2 --warmup-iters 1 --iters 12 --backend cpu \
	--synthetic --threads 1 --env lab --log-dir L --counters phase
echo "exit $?"
# the columns by name: what became of the counters, never empty; the window as without them
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	{ print $at["status"], ($at["counters_status"] != "") }' L/metrics.csv
cat L/steps/*.csv | grep -c '^[0-9]'
