# Permission may be refused by any call of CUPTI: the run is ok, its row says which call it was.
build=$(dirname "$ROOFLINE")/..
[ -f "$build/tests/fakes/libcupti.so.13" ] || { echo "no fake libraries" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH="$build/tests/engines" RFL_FAKE_DEVICE=cuda
export LD_LIBRARY_PATH="$build/tests/fakes"
for call in cuptiProfilerInitialize cuptiProfilerDeviceSupported cuptiDeviceGetChipName \
	cuptiProfilerGetCounterAvailability cuptiProfilerHostInitialize cuptiProfilerHostGetConfigImage \
	cuptiRangeProfilerEnable cuptiRangeProfilerGetCounterDataSize \
	cuptiRangeProfilerCounterDataImageInitialize cuptiRangeProfilerSetConfig cuptiRangeProfilerStart \
	cuptiRangeProfilerPushRange cuptiRangeProfilerPopRange cuptiRangeProfilerStop \
	cuptiRangeProfilerDecodeData cuptiRangeProfilerGetCounterDataInfo \
	cuptiRangeProfilerCounterDataGetRangeInfo cuptiProfilerHostEvaluateToGpuValues \
	cuptiRangeProfilerDisable; do
	FAKE_CUPTI="fail=$call:35" roofline run --engine fake --backend cuda --arch mnist_cnn \
		--synthetic --batch-size 2 --warmup-iters 0 --iters 1 --env gpu --label "gpu_$call" \
		--log-dir L --counters phase --counter-sets core,flops >out 2>err
	code=$?
	grep -q 'sanitizer' err && { echo "CUPTI is not used beside a sanitizer" >&2; exit 77; }
	row=$(grep "gpu_$call," L/metrics.csv)
	said=$(echo "$row" | grep -o "[a-z]*: \([a-z]*: \)*$call: the driver allows counters to administrators only")
	echo "exit $code, $(echo "$row" | grep -c ',ok,') row ok, ${said:-nothing about $call}"
done
