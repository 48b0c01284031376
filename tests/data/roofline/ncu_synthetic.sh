# What `ncu --csv --page raw` writes of so many steps of ResNet-50 at batch 128, with numbers that are
# made up: 60 GB of DRAM traffic in three kernels a step.
#
#   sh ncu_synthetic.sh STEPS seed   the metrics flop_count_sp and flop_count_hp, which are n/a
#   sh ncu_synthetic.sh STEPS sass   FP32 instructions and times: 3130281936896 FLOP and 200 ms a step,
#                                    10 % of them in a kernel without a FLOP
awk -v steps="$1" -v kind="$2" 'BEGIN {
	n = split("conv_kernel,30000000000,10000000000,0,0,1555140968448,150000000 " \
		  "bn_kernel,8000000000,8000000000,10000000000,10000000000,0,30000000 " \
		  "copy_kernel,2000000000,2000000000,0,0,0,20000000", kernels, " ")
	q = "\""
	inst = "smsp__sass_thread_inst_executed_op_"
	head = q "ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC"
	unit = q "\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\""
	if (kind == "seed") {
		head = head "\",\"dram__bytes_read.sum\",\"dram__bytes_write.sum\",\"flop_count_hp\",\"flop_count_sp\",\"pcie__read_bytes.sum\",\"pcie__write_bytes.sum" q
		unit = unit "\",\"byte\",\"byte\",\"\",\"\",\"byte\",\"byte" q
	} else {
		head = head "\",\"dram__bytes_read.sum\",\"dram__bytes_write.sum\",\"gpu__time_duration.sum\",\"" inst "fadd_pred_on.sum\",\"" inst "ffma_pred_on.sum\",\"" inst "fmul_pred_on.sum" q
		unit = unit "\",\"byte\",\"byte\",\"ns\",\"inst\",\"inst\",\"inst" q
	}
	print "==PROF== Connected to process 4242 (/usr/bin/python3.12)"
	print head
	print unit
	for (s = 0; s < steps; s++)
		for (i = 1; i <= n; i++) {
			split(kernels[i], k, ",")
			row = q id++ "\",\"4242\",\"python3.12\",\"127.0.0.1\",\"" k[1] "(float *)\",\"1\",\"7\",\"(256, 1, 1)\",\"(1024, 1, 1)\",\"0\",\"8.9\",\"" k[2] "\",\"" k[3] "\",\""
			print row (kind == "seed" ? "n/a\",\"n/a\",\"4096\",\"1024" : k[7] "\",\"" k[4] "\",\"" k[6] "\",\"" k[5]) q
		}
	print "==PROF== Disconnected from process 4242"
}'
