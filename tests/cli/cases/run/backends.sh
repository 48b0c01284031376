# auto says what it took, in the line, in the row, and with -v why; a device that is not here is exit
# code 77 and a row with the reason. --deterministic sets what cuBLAS reads when it starts, unless
# one of its two forms is set already.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH RFL_FAKE_LOG=$PWD/engine

once() {
	roofline run --engine fake --arch mnist_cnn --synthetic --batch-size 2 --warmup-iters 3 --iters 12 \
		--threads 1 --env lab --log-dir L "$@" >out 2>err
	echo "exit $?"
	sed 's/: ok,.* -> [^;[]*/: ok/; s/ *\[.*\]$//' out
	grep -e 'auto took' -e 'CUBLAS' -e 'warning' -e '^roofline run:' err
	[ ! -f engine ] || { sed -n 's/.*workspace=/workspace=/p' engine; rm engine; }
}

once -v
RFL_FAKE_DEVICE=cuda once -v
once --backend cpu
once --backend cuda
once --backend mps
once --pin-memory --cudnn-benchmark
once --cuda-graph
RFL_FAKE_DEVICE=cuda once -v --backend cuda --deterministic
CUBLAS_WORKSPACE_CONFIG=:16:8 RFL_FAKE_DEVICE=cuda once -v --backend cuda --deterministic
CUBLAS_WORKSPACE_CONFIG=:1:1 RFL_FAKE_DEVICE=cuda once --backend cuda --deterministic
once -v --backend cpu --deterministic
