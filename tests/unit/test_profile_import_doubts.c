/*
 * test_profile_import_doubts.c - rows that look like counts and are not, counts that look complete
 * and are not, and causes that a profiler did not name.
 */
#include "tests/unit/summary_rig.h"

static bool noted(const struct rfl_capture *c, const char *words)
{
	for (size_t i = 0; i < c->nnotes; i++)
		if (strstr(c->notes[i], words))
			return true;
	return false;
}

static const char ncu_header[] = "\"ID\",\"Process ID\",\"Kernel Name\",\"CC\",\"Metric Name\","
				 "\"Metric Unit\",\"Metric Value\"\n";

/* A launch of an H100 with fp32 FLOPs and another metric. */
static const struct rfl_capture *with_metric(struct summary_rig *rig, const char *name,
					     const char *value)
{
	static const char *const fp32[] = { "fadd", "fmul", "ffma" };
	char text[2048];
	int n = snprintf(text, sizeof(text), "%s", ncu_header);

	for (size_t i = 0; i < 3; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "\"0\",\"1\",\"k\",\"9.0\",\"smsp__sass_thread_inst_executed_op_%s_"
			      "pred_on.sum\",\"inst\",\"100\"\n",
			      fp32[i]);
	snprintf(text + n, sizeof(text) - (size_t)n,
		 "\"0\",\"1\",\"k\",\"9.0\",\"%s\",\"inst\",\"%s\"\n", name, value);
	return rig_read(rig, "ncu", text);
}

/* Hopper counts the products of warps and of warp groups separately. */
static void matrix_flops_of_both_instructions_are_added(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "ncu", "ncu/s08_h200_hgmma.csv");
	assert_total(c, FLOPS_TENSOR_BF16, 23622320128.0 + 3120562176.0);
	assert_total(c, FLOPS_FP32, 46202880 + 49086464 + 2 * 47579136.0);
	assert_int_equal(c->total[RFL_QUANTITY_FLOPS].validity, RFL_VALID_PARTIAL);
	assert_non_null(strstr(c->total[RFL_QUANTITY_FLOPS].reason, "sparse"));
	rig_fini(&rig);
}

static void unknown_counts_of_flops_make_the_total_a_lower_bound(void **state)
{
	static const struct {
		const char *name, *value;
		bool partial;
	} cases[] = {
		{ "sm__ops_path_tensor_op_newmma_src_bf16.sum", "1000", true },
		{ "sm__ops_path_tensor_op_newmma_src_bf16.sum", "0", false },
		{ "sm__ops_path_tensor_src_int8.sum", "1000", false },
		{ "sm__inst_executed_pipe_tensor.sum", "10", true },
		{ "sm__inst_executed_pipe_tensor.sum", "0", false },
		{ "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum", "10", true },
		{ "smsp__sass_thread_inst_executed_op_fp32_pred_on.sum", "10", false },
		{ "sm__ops_path_tensor_src_bf16.sum.pct_of_peak_sustained_elapsed", "10", false },
		{ "gpu__time_duration_x.sum", "10", false },
		{ "dram__bytes_x.sum", "10", false },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_capture *c = with_metric(&rig, cases[i].name, cases[i].value);
		const struct rfl_amount *range = &c->ranges[0].amount[RFL_QUANTITY_FLOPS];
		const struct rfl_amount *total = &c->total[RFL_QUANTITY_FLOPS];

		assert_close(total->value, 400, 0);
		assert_int_equal(total->validity, cases[i].partial ? RFL_VALID_PARTIAL : RFL_VALID);
		assert_int_equal(range->validity, total->validity);
		if (!cases[i].partial)
			continue;
		assert_non_null(strstr(total->reason, "present but in no formula: "));
		assert_non_null(strstr(total->reason, cases[i].name));
	}
	rig_fini(&rig);
}

/* A metric that a formula uses together with others, of which none is present. */
static void known_counts_without_the_rest_of_their_formula_are_a_lower_bound(void **state)
{
	static const struct {
		const char *name, *value, *quantity;
	} cases[] = {
		{ "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum", "1000",
		  "flops.tensor_bf16" },
		{ "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum", "1000",
		  "flops.tensor_fp16" },
		{ "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", "1", "flops.fp64" },
		{ "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", "0", NULL },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_capture *c = with_metric(&rig, cases[i].name, cases[i].value);
		const struct rfl_amount *total = &c->total[RFL_QUANTITY_FLOPS];
		char why[256];

		assert_close(total->value, 400, 0);
		assert_int_equal(total->validity,
				 cases[i].quantity ? RFL_VALID_PARTIAL : RFL_VALID);
		if (!cases[i].quantity) {
			assert_null(strstr(total->reason, "a lower bound"));
			continue;
		}
		snprintf(why, sizeof(why),
			 "a lower bound: %s was counted, but not the other metrics that %s needs",
			 cases[i].name, cases[i].quantity);
		assert_non_null(strstr(total->reason, why));
	}
	rig_fini(&rig);
}

/* The sums of both directions are exact; ncu rounds the rate of their sum. */
static void exact_sums_come_before_a_rounded_rate(void **state)
{
	char text[1024];
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	snprintf(text, sizeof(text),
		 "%s\"0\",\"1\",\"k\",\"8.0\",\"gpu__time_duration.sum\",\"ns\",\"1,000\"\n"
		 "\"0\",\"1\",\"k\",\"8.0\",\"dram__bytes.sum.per_second\",\"Gbyte/s\",\"3.01\"\n"
		 "\"0\",\"1\",\"k\",\"8.0\",\"dram__bytes_read.sum\",\"byte\",\"2,000\"\n"
		 "\"0\",\"1\",\"k\",\"8.0\",\"dram__bytes_write.sum\",\"byte\",\"1,001\"\n",
		 ncu_header);
	c = rig_read(&rig, "ncu", text);
	assert_total(c, DRAM, 3001);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM].validity, RFL_VALID);
	rig_fini(&rig);
}

/* A quote that precedes neither a comma nor a line break is text, if the fields then fit. */
static void reads_rules_with_their_own_quotes(void **state)
{
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	assert_total(rig_file(&rig, "ncu", "ncu/s09_rule_with_quotes.csv"), INSTRUCTIONS, 4148968);
	rig_refuses(&rig,
		    "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
		    "\"0\",\"k\",\"a \"b\" c\",\"d\"\n",
		    ":2:13: text after a closing quote; double the quotes inside fields");
	rig_fini(&rig);
}

/* Warnings of every kind precede the results; only some explain that there are none. */
static void quotes_only_messages_that_are_a_cause(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	rig_refuses(&rig,
		    "==PROF== Connected to process 1\n==WARNING== Unable to access the following 6 "
		    "metrics: ctc__rx_bytes_data_user.sum\n==PROF== Report: /tmp/a.ncu-rep\n",
		    ": ncu's messages; the results are in '/tmp/a.ncu-rep': convert it with 'ncu "
		    "--import FILE --csv --page raw --print-units base'");
	c = rig_read(&rig, "ncu",
		     "==PROF== Connected to process 1\n==WARNING== Backing up device memory\n"
		     "==WARNING== No kernels were profiled.\n");
	assert_non_null(strstr(c->refusals[0].reason, "No kernels were profiled"));
	c = rig_read(&rig, "nvprof",
		     "==7== NVPROF is profiling process 7, command: ./a\n"
		     "==7== Warning: Profiling results might be incorrect with this nvcc\n"
		     "==7== Profiling result:\nNo events/metrics were profiled.\n");
	assert_non_null(strstr(c->refusals[0].reason, "'No events/metrics were profiled.'"));
	rig_refuses(&rig,
		    "==7== NVPROF is profiling process 7, command: ./a\n"
		    "==7== Warning: Profiling results might be incorrect with this nvcc\n"
		    "==7== Profiling result:\n"
		    "   Start  Duration            Grid Size      Block Size     Regs*  Name\n"
		    "285.07ms  1.2160us           (4096 1 1)       (256 1 1)        12  k [307]\n",
		    ": an aligned nvprof table, not CSV; run nvprof with --csv");
	rig_refuses(&rig,
		    "Processing [x.sqlite] with [/r/nvtx_sum.py]...\nSKIPPED: x.sqlite does not "
		    "contain NV Tools Extension (NVTX) data.\n"
		    "Processing [x.sqlite] with [/r/cuda_gpu_kern_sum.py]...\n"
		    "SKIPPED: x.sqlite does not contain CUDA kernel data.\n",
		    ": no kernels: nsys reports 'SKIPPED: x.sqlite does not contain CUDA kernel "
		    "data.'");
	rig_fini(&rig);
}

/* --- rows that are not kernels --------------------------------------------------------------- */

static enum rfl_rc read_as(struct summary_rig *rig, const char *name, const char *text)
{
	rig_again(rig);
	return rfl_import_text(text, strlen(text), name, &rig->options, &rig->captures, &rig->err);
}

#define STATS "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n"

static void statistics_of_other_events_are_rejected(void **state)
{
	static const struct {
		const char *file, *row;
	} cases[] = {
		{ "1_marker_api_stats.csv", STATS "\"train_step\",6,35520,5920.0,100.0\n" },
		{ "results.copy_stats.csv", STATS "\"x\",6,35520,5920,100.0\n" },
		{ "a.csv", STATS "\"async-copy\",6,35520,5920,100.0\n" },
		{ "a.csv", STATS "\"ncclAllReduce\",6,35520,5920,100.0\n" },
		{ "a.csv", STATS "\"SCRATCH_MEMORY_ALLOC\",6,35520,5920,100.0\n" },
		{ "a.csv", STATS "\"omp_target_emi\",6,35520,5920,100.0\n" },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		assert_int_equal(read_as(&rig, cases[i].file, cases[i].row), RFL_EFORMAT);
		assert_non_null(strstr(rig.err.msg, ", not of kernels; import the file"));
	}
	assert_ok(read_as(&rig, "chip_kernel_stats.csv", STATS "\"train_step\",6,35520,5920,100\n"),
		  &rig.err);
	assert_true(noted(rig.captures.captures[0], "the rows are read as kernels"));
	assert_ok(read_as(&rig, "a.csv", STATS "\"add(float*)\",6,35520,5920,100\n"), &rig.err);
	assert_false(noted(rig.captures.captures[0], "the rows are read as kernels"));
	rig_fini(&rig);
}

static void events_of_mpi_and_openmp_are_no_launches(void **state)
{
#define EVENTS "Time (%),Total Time (ns),Instances,Avg (ns),"
	static const char no_table[] = "no table of kernels";
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	assert_int_equal(
		read_as(&rig, "a.csv", EVENTS "Source,Name\n66.7,2000,2,1000.0,MPI,Send\n"),
		RFL_EFORMAT);
	assert_non_null(strstr(rig.err.msg, no_table));
	assert_int_equal(
		read_as(&rig, "r_openmp_sum.csv", EVENTS "Name\n66.7,2000,2,1000.0,task\n"),
		RFL_EFORMAT);
	assert_int_equal(read_as(&rig, "a.csv",
				 "Processing [x.sqlite] with [/r/openacc_sum.py]...\n" EVENTS
				 "Name\n66.7,2000,2,1000.0,acc_wait\n"),
			 RFL_EFORMAT);
	assert_ok(read_as(&rig, "a.csv",
			  "Processing [x.sqlite] with [/r/cuda_gpu_kern_sum.py]...\n" EVENTS
			  "Name\n66.7,2000,2,1000.0,k\n"),
		  &rig.err);
	assert_int_equal(rig.captures.captures[0]->nnotes, 0);
	/* nothing names the report */
	assert_ok(read_as(&rig, "omp.csv", EVENTS "Name\n66.7,2000,2,1000.0,barrier\n"), &rig.err);
	assert_true(noted(rig.captures.captures[0],
			  "the rows are read as kernels; nsys's reports on OpenMP and OpenACC"));
	assert_ok(read_as(&rig, "a.csv", EVENTS "Name\n66.7,2000,2,1000.0,add(float*)\n"),
		  &rig.err);
	assert_int_equal(rig.captures.captures[0]->nnotes, 0);
	rig_fini(&rig);
}

/* --- rocprof --------------------------------------------------------------------------------- */

static void joins_names_without_quotes(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;
	int64_t launches = 0;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "rocprof", "rocprof/v1_unquoted.stats.csv");
	for (size_t i = 0; i < c->nranges; i++)
		launches += c->ranges[i].launches;
	assert_int_equal(launches, 14);
	assert_total(c, TIME, 1649757e-9);
	rig_refuses(&rig, STATS "a,6,35520,5920,100.0,\n", ":2: 6 fields, but the header has 5");
	rig_refuses(&rig, STATS "\"a\",\"b\",6,35520,5920,100.0\n",
		    ":2: 6 fields, but the header has 5");
	rig_fini(&rig);
}

#define PMC "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,Kernel_Name,"

static void reads_timestamps_with_fractions(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "rocprof",
		     PMC "Start_Timestamp,End_Timestamp\n"
			 "0,2,64,64,k,810970000000000.25,810970000001000.75\n");
	assert_close(c->total[RFL_QUANTITY_TIME].value, 1000.5e-9, 1e-15);
	assert_true(noted(c, "means over the passes"));
	c = rig_read(&rig, "rocprof",
		     PMC "Start_Timestamp,End_Timestamp\n0,2,64,64,k,8.1097E+14,8.1097E+14\n");
	assert_unknown(c, TIME);
	rig_fini(&rig);
}

static void a_part_that_exceeds_its_whole_is_doubted(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "rocprof",
		     PMC "TCC_EA0_WRREQ_sum,TCC_EA0_WRREQ_64B_sum\n0,2,64,64,k,100,150\n");
	assert_total(c, DRAM_WRITE, 32 * 250);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM_WRITE].validity, RFL_VALID_ESTIMATE);
	assert_non_null(strstr(c->total[RFL_QUANTITY_DRAM_WRITE].reason, "exceeds TCC_EA0_WRREQ"));
	c = rig_read(&rig, "rocprof",
		     PMC "TCC_EA0_WRREQ_sum,TCC_EA0_WRREQ_64B_sum\n0,2,64,64,k,100,100\n");
	assert_int_equal(c->total[RFL_QUANTITY_DRAM_WRITE].validity, RFL_VALID);
	rig_fini(&rig);
}

/* --- CPUs ------------------------------------------------------------------------------ */

/* The shell times `time -v` as well: its line is the same process. */
static void a_process_that_a_shell_times_again_counts_once(void **state)
{
#define GNU                                                                 \
	"\tCommand being timed: \"./tr\"\n\tUser time (seconds): 2554.50\n" \
	"\tSystem time (seconds): 630.74\n"                                 \
	"\tElapsed (wall clock) time (h:mm:ss or m:ss): 19:12.89\n"
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "time", GNU "2554.50s user 630.74s system 276% cpu 19:12.89 total\n");
	assert_int_equal(c->nranges, 1);
	assert_total(c, TIME, 1152.89);
	assert_true(noted(c, "are counted once"));
	c = rig_read(&rig, "time", GNU "real 1152.91\nuser 2554.50\nsys 630.75\n");
	assert_total(c, TIME, 1152.89);
	c = rig_read(&rig, "time", GNU "real 1152.91\nuser 2555.50\nsys 630.75\n");
	assert_total(c, TIME, 1152.89 + 1152.91);
	rig_fini(&rig);
}

static void reads_an_excerpt_without_the_command(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "time",
		     "        User time (seconds): 3.20\n        System time (seconds): 72.28\n"
		     "        Percent of CPU this job got: 183%\n"
		     "        Elapsed (wall clock) time (h:mm:ss or m:ss): 0:41.09\n"
		     "        Maximum resident set size (kbytes): 10624\n");
	assert_total(c, TIME, 41.09);
	assert_metric(c, 0, "max_rss", 10624 * 1024);
	assert_true(noted(c, "the largest resident set is 10,878,976 bytes"));
	rig_fini(&rig);
}

/* The largest of two processes, not their sum. */
static void resident_sets_are_not_added(void **state)
{
	static const char block[] = "        1.00 real         0.50 user         0.10 sys\n"
				    "             8192  maximum resident set size\n";
	char text[512];
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	snprintf(text, sizeof(text), "%s%s", block, block);
	assert_metric(rig_read(&rig, "time", text), 0, "max_rss", 8192);
	rig_fini(&rig);
}

/* Events of any length; two that differ only in their ends are two events. */
static void long_events_of_perf_are_not_cut(void **state)
{
	char tail[400], text[2048];
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	memset(tail, 'x', sizeof(tail) - 1);
	tail[sizeof(tail) - 1] = '\0';
	snprintf(text, sizeof(text),
		 "5;;cpu/event=0x03,a%s1/;1000;100.00;;\n7;;cpu/event=0x03,a%s2/;1000;100.00;;\n",
		 tail, tail);
	rig.options.all_metrics = true;
	c = rig_read(&rig, "perf", text);
	assert_int_equal(c->ranges[0].nmetrics, 2);
	assert_close(c->ranges[0].metrics[0].value, 5, 0);
	assert_close(c->ranges[0].metrics[1].value, 7, 0);
	rig_fini(&rig);
}

static void repeats_of_perf_are_averages_in_every_form(void **state)
{
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	assert_true(noted(rig_read(&rig, "perf", "5;;cycles;1.50%;1000;100.00;;\n"),
			  "averages over perf's repeated runs"));
	assert_false(noted(rig_read(&rig, "perf", "5;;cycles;1000;100.00;;\n"), "averages"));
	rig_fini(&rig);
}

/* likwid's group FLOPS_AVX has vector instructions only. */
static void some_vector_instructions_are_a_lower_bound(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "likwid",
		     "TABLE,Group 1 Raw,FLOPS_AVX,2,\nEvent,Counter,HWThread 0,\n"
		     "FP_ARITH_INST_RETIRED_256B_PACKED_SINGLE,PMC0,1000,\n"
		     "FP_ARITH_INST_RETIRED_256B_PACKED_DOUBLE,PMC1,100,\n");
	assert_total(c, FLOPS_FP32, 8000);
	assert_total(c, FLOPS_FP64, 400);
	assert_int_equal(c->total[RFL_QUANTITY_FLOPS_FP64].validity, RFL_VALID_PARTIAL);
	rig_fini(&rig);
}

/* UTF-16 without a mark, as some editors save it. */
static void reads_utf_16_without_a_mark(void **state)
{
	static const char plain[] = "real 2.50\nuser 1.00\nsys 0.25\n";
	char wide[2 * sizeof(plain)];
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (int big = 0; big <= 1; big++) {
		for (size_t i = 0; i + 1 < sizeof(plain); i++) {
			wide[2 * i + (size_t)big] = plain[i];
			wide[2 * i + (size_t)!big] = '\0';
		}
		rig_again(&rig);
		assert_ok(rfl_import_text(wide, 2 * (sizeof(plain) - 1), "file", &rig.options,
					  &rig.captures, &rig.err),
			  &rig.err);
		assert_total(rig.captures.captures[0], TIME, 2.5);
	}
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matrix_flops_of_both_instructions_are_added),
		cmocka_unit_test(unknown_counts_of_flops_make_the_total_a_lower_bound),
		cmocka_unit_test(known_counts_without_the_rest_of_their_formula_are_a_lower_bound),
		cmocka_unit_test(exact_sums_come_before_a_rounded_rate),
		cmocka_unit_test(reads_rules_with_their_own_quotes),
		cmocka_unit_test(quotes_only_messages_that_are_a_cause),
		cmocka_unit_test(statistics_of_other_events_are_rejected),
		cmocka_unit_test(events_of_mpi_and_openmp_are_no_launches),
		cmocka_unit_test(joins_names_without_quotes),
		cmocka_unit_test(reads_timestamps_with_fractions),
		cmocka_unit_test(a_part_that_exceeds_its_whole_is_doubted),
		cmocka_unit_test(a_process_that_a_shell_times_again_counts_once),
		cmocka_unit_test(reads_an_excerpt_without_the_command),
		cmocka_unit_test(resident_sets_are_not_added),
		cmocka_unit_test(long_events_of_perf_are_not_cut),
		cmocka_unit_test(repeats_of_perf_are_averages_in_every_form),
		cmocka_unit_test(some_vector_instructions_are_a_lower_bound),
		cmocka_unit_test(reads_utf_16_without_a_mark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
