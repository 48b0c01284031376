# The progress of the window on a terminal; elsewhere there is none.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
command -v script >/dev/null || { echo "no script(1), which makes a terminal" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH RFL_FAKE_MS=50,0,0
set -- run --engine fake --arch resnet18 --image-size 32 --batch-size 2 --synthetic --iters 12 --warmup-iters 1 \
	--backend cpu --threads 1 --env lab --log-dir L

echo '--- on a terminal'
script -qec "roofline $*" /dev/null </dev/null | tr '\r' '\n' |
	sed -n -e 's/ *$//' -e '/^measuring/s/: step [0-9]* of 12, [0-9]* s/: step N of 12, N s/p' | sort -u

echo '--- elsewhere'
roofline "$@" 2>&1 >out | grep measuring
cut -d: -f1 out
