# Counted steps on a GPU that is made of two fake libraries (tests/fakes): message, exit code and row
# of everything that can happen to them. The run itself is ok in every case.
build=$(dirname "$ROOFLINE")/..
[ -f "$build/tests/fakes/libcupti.so.13" ] || { echo "no fake libraries" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH="$build/tests/engines" RFL_FAKE_DEVICE=cuda
export LD_LIBRARY_PATH="$build/tests/fakes"

# count NAME CUDA CUPTI OPTION...: a run with the libraries told what to do
count() {
	name=$1
	FAKE_CUDA=$2
	FAKE_CUPTI=$3
	export FAKE_CUDA FAKE_CUPTI
	shift 3
	roofline run --engine fake --backend cuda --arch mnist_cnn --synthetic --batch-size 2 \
		--warmup-iters 1 --iters 12 --env gpu --label "gpu_$name" --log-dir L "$@" >out 2>err
	code=$?
	grep -q 'sanitizer' err && { echo "CUPTI is not used beside a sanitizer" >&2; exit 77; }
	echo "-- $name: exit $code"
	sed -n -e "s|$build/tests/fakes/*|FAKES/|g" -e '/warning/p' err
	sed -e 's/.*; counters/counters/' -e 's/ \[.*\]$//' out
	# quoted fields have commas: they are texts, which are above
	sed 's/"[^"]*"/text/g' L/metrics.csv | awk -F, -v name="gpu_$name" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["label"] == name {
			printf "%s, source %s, passes %s, flops %s, bytes %s, idle %s, self-test %s %s\n",
				$at["status"], $at["counters_source"], $at["counter_passes"],
				$at["counted_flops_per_step"], $at["counted_dram_bytes_per_step"],
				($at["idle_dram_bytes_per_s"] + 0 > 0 ? "some" : $at["idle_dram_bytes_per_s"]),
				$at["selftest_flops_ratio"],
				$at["selftest_dram_ratio"] }'
	printf 'rows of phases and layers: '
	[ ! -f L/counters.csv ] || grep "gpu_$name," L/counters.csv |
		awk -F, '$12 == "phase" || $12 == "layer" || $12 == "step" { print $12 ":" $13 }' |
		sort -u | awk '{ n++ } END { printf "%d ranges", n }'
	echo
}

count phases '' '' --counters phase
count steps '' '' --counters step
count layers '' '' --counters layer
count three_passes '' passes=3 --counters phase --counter-sets core
count forward '' '' --counters phase --mode fwd --counter-sets core,flops
count idle '' idle=5000 --counters step
count refused '' fail=cuptiProfilerGetCounterAvailability:35 --counters phase
count refused_at_start '' fail=cuptiRangeProfilerStart:35 --counters phase
count refused_without_kernels '' fail=cuptiRangeProfilerStart:35 --counters phase --counter-sets core
count dropped '' drop=2 --counters phase
count nan '' nan=dram__bytes_read.sum --counters phase
count busy '' fail=cuptiRangeProfilerEnable:26 --counters phase
count subscribers '' fail=cuptiProfilerInitialize:39 --counters phase
count no_nvperf '' fail=cuptiProfilerInitialize:15 --counters phase
count off '' scale=0.9 --counters phase
count no_kernels '' fail=cuptiActivityRegisterCallbacks:39 --counters phase
count no_gpu count=0 '' --counters phase
RFL_FAKE=segv:backward:14 count crash '' '' --counters phase
RFL_FAKE=fail:restore:1 count no_way_back '' '' --counters phase
RFL_FAKE_LACKS=snapshot count no_snapshot '' '' --counters phase
RFL_FAKE_LACKS=mark count no_marks '' '' --counters layer
count here '' '' --counters phase --in-process
wc -l <L/metrics.csv
