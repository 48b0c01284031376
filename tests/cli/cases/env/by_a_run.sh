# A run records its environment; the next one finds it as it is, and another engine's run too.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH
burst() {
	roofline run --engine fake --arch mnist_cnn --batch-size 2 --synthetic --iters 2 --warmup-iters 0 --env lab >/dev/null
}
burst 2>said
grep -c '"fake-1.0-test"' logs/env.json
cp logs/env.json before
burst 2>said
cmp before logs/env.json && echo same
sed -i 's/"bytes": [0-9]*/"bytes": 4096/' logs/env.json
burst 2>said
grep warning said | sed 's/is [0-9]*;/is N;/'
grep -c replaced_utc logs/env.json
echo 'not JSON' >logs/env.json
burst 2>said
echo "exit $?"
grep warning said
wc -l <logs/metrics.csv
wc -l <logs/metrics.jsonl
