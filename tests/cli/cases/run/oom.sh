# A batch that does not fit: recorded, shrunk, or the largest that fits searched for. The engine
# here has memory for five samples.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH RFL_FAKE_FITS=5

for policy in record shrink search; do
	roofline run --engine fake --backend cpu --arch mnist_cnn --synthetic --batch-size 16 --warmup-iters 1 \
		--iters 12 --threads 1 --env lab --log-dir "$policy" --oom "$policy" >out 2>err
	echo "$policy: exit $?"
	sed 's/: ok,.*/: ok/' out
	grep -e next: -e '^roofline run:' err
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{ print $at["batch"], "of", $at["requested_batch"], $at["status"] }' "$policy/metrics.csv"
done
