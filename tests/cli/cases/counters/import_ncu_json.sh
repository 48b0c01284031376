# kernels[] and total: FLOPs by precision, bytes, time and intensity, each a number or null with its reason.
cd "$RFL_TEST_DATA/profile/ncu" && roofline counters import s01_a100_sgemm_metrics_long.csv --format json |
	grep -E "^ {2,8}\"(name|total|kernels|time_s|fp32|tensor_bf16|flops.tensor_bf16|dram_bytes|ai)\""
