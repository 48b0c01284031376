# What a GPU does in the window is in the row: a fake GPU, watched through a fake NVML. Without NVML
# the row says why there is nothing.
build=$(dirname "$ROOFLINE")/..
[ -f "$build/tests/fakes/nvml/libnvidia-ml.so.1" ] || { echo "no fake libraries" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH="$build/tests/engines" RFL_FAKE_DEVICE=cuda RFL_FAKE_MS=22,22,12

once() {
	roofline run -q --engine fake --backend cuda --arch mnist_cnn --synthetic --batch-size 2 --warmup-iters 1 \
		--iters 20 --env gpu --log-dir L >/dev/null || echo "exit $?"
}
LD_LIBRARY_PATH="$build/tests/fakes/nvml" FAKE_NVML=energy=10,14 once
LD_LIBRARY_PATH="$build/tests/fakes/nvml" FAKE_NVML=energy=10 once # the counter stands still: power times time
once
sed 's/"[^"]*"/text/g' L/metrics.csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	{ e = $at["energy_j_per_step"]; j = $at["samples_per_j"]
	  print $at["status"], ($at["power_mean_w"] > 0), ($at["sm_clock_mean_hz"] > 0),
		(NR == 2 ? e : (e > 0)), (NR == 2 ? j : (j > 0)), ($at["unwatched"] != "") }'
