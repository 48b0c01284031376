# Steps that were counted live, on a GPU that is made of two fake libraries (tests/fakes): the capture
# knows its run and its steps. What a fake counts does not fit any network, so it is not taken unless
# it is demanded.
build=$(dirname "$ROOFLINE")/..
[ -f "$build/tests/fakes/libcupti.so.13" ] || { echo "no fake libraries" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH="$build/tests/engines" RFL_FAKE_DEVICE=cuda
echo '{"gpu": {"peak_gflops": 30000, "peak_gbps": 300}}' >peaks.json
for run in 1 2; do
	LD_LIBRARY_PATH="$build/tests/fakes" roofline run --engine fake --backend cuda --arch mnist_cnn --synthetic \
		--batch-size 2 --warmup-iters 1 --iters 12 --env gpu --log-dir L --counters phase >/dev/null 2>err
	grep -q 'sanitizer' err && { echo "CUPTI is not used beside a sanitizer" >&2; exit 77; }
done
for ai in auto counters; do
	roofline -q points --metrics L/metrics.csv --peaks peaks.json --counters L/counters.csv --ai $ai --format json |
		tr '{,' '\n\n' | grep -E '"(runs|flops_counters|bytes_counters|bytes_source|counters_[rsv][a-z]*|coverage)"'
done
