# Limits that are too low are named, with the remedy.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH
once() {
	exec roofline run -q --engine fake --arch resnet18 --image-size 32 --batch-size 2 --warmup-iters 0 --iters 2 \
		--backend cpu --threads 1 --synthetic --label a --log-dir L
}
(ulimit -n 10 && once) 2>&1 | sed 's/: .*roofline: cannot/: ROOFLINE: cannot/'
(ulimit -s 64 && once) 2>&1
(ulimit -Ss 64 && once) 2>&1 | cut -d, -f1
