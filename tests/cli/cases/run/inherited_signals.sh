# What a caller ignores or blocks does not cost a run its row; a signal that came before anyone listened
# ends it as a later one would.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
env --block-signal=TERM true 2>/dev/null || { echo "this env has no --block-signal" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH
set -- run -q --engine fake --arch resnet18 --image-size 32 --batch-size 2 --warmup-iters 0 --iters 30 \
	--backend cpu --threads 1 --synthetic --log-dir L
verdict() {
	"$@" >line 2>err
	echo "exit $?: $(sed "s/,.*//; s/interrupted:.*/interrupted/" line)"
}
verdict env --ignore-signal=CHLD roofline "$@" --label ignored
verdict env --block-signal roofline "$@" --label blocked
verdict env --block-signal=TERM sh -c 'kill -TERM $$; exec "$@"' sh roofline "$@" --label early
cut -d, -f7,9 L/metrics.csv
