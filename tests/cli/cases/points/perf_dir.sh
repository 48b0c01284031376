# Events of a processor that count no FLOPs and no bytes: said, with what to count; a time log is
# read and says nothing of either.
cp "$RFL_TEST_DATA"/roofline/gpu_metrics.csv metrics.csv
cp "$RFL_TEST_DATA"/roofline/gpu_peaks.json peaks.json
mkdir perf
cat >perf/lab_cpu_resnet50_perf.txt <<EOF
 Performance counter stats for 'roofline run':

    24,000,000,000      cycles
    36,000,000,000      instructions              #    1.50  insn per cycle
       120,000,000      cache-misses

       7.000000000 seconds time elapsed
EOF
cat >perf/lab_cpu_resnet50_fp32_bs4_run1_20260101_000000.txt <<EOF
	Command being timed: "roofline run"
	User time (seconds): 9.70
	System time (seconds): 0.45
	Percent of CPU this job got: 196%
	Elapsed (wall clock) time (h:mm:ss or m:ss): 0:05.20
	Maximum resident set size (kbytes): 900000
	Exit status: 0
EOF
roofline -q points --metrics metrics.csv --peaks peaks.json --perf-dir perf --env lab_cpu
# What to count is of the processor that ran, as far as the ledger tells it.
for cpu in "AMD EPYC 9654 96-Core Processor" "Intel(R) Xeon(R) Platinum 8360Y CPU" "Neoverse-V1"; do
	sed -e "1s/\$/,device_name/" -e "2,\$s/\$/,$cpu/" metrics.csv >named.csv
	roofline -q points --metrics named.csv --peaks peaks.json --perf-dir perf --env lab_cpu | grep -o 'not counted: .*'
done
# A folder of time logs alone.
mkdir -p logs/time
mv perf/*_run1_* logs/time
roofline points --metrics metrics.csv --peaks peaks.json --perf-dir logs/time --env lab_cpu 2>&1 | grep -o "nothing in .*"
