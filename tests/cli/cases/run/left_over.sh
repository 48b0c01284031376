# What runs that were killed while they wrote have left is removed by the next one; a file of the user is not.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH
mkdir L
for name in env.json env_info.md metrics.csv metrics.jsonl metrics.labels mine; do
	touch -d '2 hours ago' L/$name.tmp.99999999.0
done
roofline run -q --engine fake --arch resnet18 --image-size 32 --batch-size 2 --warmup-iters 0 --iters 2 \
	--backend cpu --threads 1 --synthetic --label a --log-dir L >/dev/null
ls L
