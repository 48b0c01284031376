# Names for tools: without one a warning, with one silence, with a wrong one the reason and no run.
build=$(dirname "$ROOFLINE")/..
tool=$build/tests/fakes/nvtx/libfake_nvtx_tool.so
[ -f "$tool" ] || { echo "no fake tool" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH="$build/tests/engines"

run() {
	roofline run --engine fake --backend cpu --arch mnist_cnn --synthetic --batch-size 2 \
		--warmup-iters 1 --iters 3 --env lab --log-dir L --nvtx "$@" >out 2>err
	echo "exit $?"
	grep -v '^L/metrics.csv' err
	sed 's/: ok,.*/: ok/' out
}

run layer
NVTX_INJECTION64_PATH=$tool run layer
NVTX_INJECTION64_PATH=/nonexistent/tool.so run step
NVTX_INJECTION64_PATH=$tool RFL_FAKE_LACKS=mark run layer
