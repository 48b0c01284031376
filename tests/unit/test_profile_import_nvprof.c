/* nvprof: metrics, the trace, the summary; what it writes for people is refused with the fix. */
#include "tests/unit/summary_rig.h"

static void reads_the_sample(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "nvprof", "s05_nvprof_metrics.csv");
	assert_string_equal(c->device, "GeForce GTX 1080 Ti");
	assert_int_equal(c->nranges, 1);
	assert_string_equal(c->ranges[0].name, "binomialOptionsKernel(void)");
	/* add 0 + mul 2,170,537,984 + 2 x fma 2,170,536,960; the special functions are not in it */
	assert_total(c, FLOPS_FP32, 6511611904);
	assert_total(c, FLOPS, 6511611904);
	assert_total(c, DRAM_READ, 0);
	assert_total(c, DRAM_WRITE, 25 * 32);
	assert_unknown(c, TIME);
	assert_non_null(c->total[RFL_QUANTITY_TIME].reason);
	rig_fini(&rig);
}

#define METRICS                                                                                 \
	"\"Device\",\"Kernel\",\"Invocations\",\"Metric Name\",\"Metric Description\",\"Min\"," \
	"\"Max\",\"Avg\"\n"

/* A counted 0 stays 0, and no intensity is made of it. */
static void keeps_a_counted_zero(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "nvprof",
		     METRICS "\"P (0)\",\"k\",2,\"flop_count_sp\",\"\",10,10,10\n"
			     "\"P (0)\",\"k\",2,\"dram_read_transactions\",\"\",0,0,0\n"
			     "\"P (0)\",\"k\",2,\"dram_write_transactions\",\"\",0,0,0\n");
	assert_total(c, FLOPS_FP32, 20);
	assert_total(c, DRAM, 0);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM].validity, RFL_VALID);
	assert_true(isnan(rfl_amounts_ai(c->total)));
	rig_fini(&rig);
}

/* An average of counts is rounded where the launches differ. */
static void multiplies_averages(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "nvprof",
		     METRICS "\"P (0)\",\"a\",3,\"flop_count_sp\",\"\",10,12,11\n"
			     "epoch 1, loss 0.5, of the application\n"
			     "\"P (0)\",\"b\",1,\"flop_count_sp\",\"\",5,5,5\n");
	assert_int_equal(c->nranges, 2);
	assert_total(c, FLOPS_FP32, 38);
	assert_int_equal(metric_of(c, 0, "flop_count_sp")->validity, RFL_VALID_ESTIMATE);
	assert_int_equal(c->ranges[0].launches, 3);
	assert_metric(c, 1, "flop_count_sp", 5);
	c = rig_read(&rig, "nvprof",
		     METRICS "\"P (0)\",\"a\",100,\"flop_count_sp\",\"\",1e308,1e308,"
			     "1e308\n");
	assert_string_equal(metric_of(c, 0, "flop_count_sp")->reason, "too large to represent");
	rig.options.strict = true;
	rig_refuses(&rig, METRICS "\"P (0)\",\"a\",3,\"flop_count_sp\",\"\",10,12,11\n",
		    ":2: column 'Avg': 'flop_count_sp' is a rounded average of 3 invocations; "
		    "leave out --strict, or use --print-gpu-trace");
	rig_fini(&rig);
}

/* However many kernels have it, it is one metric. */
static void counts_unused_metrics_once(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "nvprof",
		     METRICS "\"P (0)\",\"a\",1,\"no_such_metric\",\"\",1,1,1\n"
			     "\"P (0)\",\"b\",1,\"flop_count_sp\",\"\",1,1,1\n"
			     "\"P (0)\",\"b\",1,\"no_such_metric\",\"\",1,1,1\n");
	assert_int_equal(c->unused_metrics, 1);
	rig_fini(&rig);
}

static void reads_units_inside_values(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	rig.options.all_metrics = true;
	c = rig_read(&rig, "nvprof",
		     METRICS
		     "\"P (0)\",\"k\",2,\"branch_efficiency\",\"\",45.6%,45.6%,45.6%\n"
		     "\"P (0)\",\"k\",2,\"gld_throughput\",\"\",1.5GB/s,1.5GB/s,1.5GB/s\n"
		     "\"P (0)\",\"k\",2,\"dram_utilization\",\"\",\"Idle (0)\",\"Low (2)\",\"Low "
		     "(2)\"\n"
		     "\"P (0)\",\"k\",2,\"ipc\",\"\",0.5,0.5,0.5\n"
		     "\"P (0)\",\"k\",2,\"flop_count_dp\",\"\",<OVERFLOW>,<OVERFLOW>,<OVERFLOW>\n");
	assert_metric(c, 0, "branch_efficiency", 45.6);
	assert_string_equal(metric_of(c, 0, "branch_efficiency")->unit, "%");
	assert_metric(c, 0, "gld_throughput", 1.5 * 1024 * 1024 * 1024);
	assert_metric(c, 0, "dram_utilization", 2);
	assert_metric(c, 0, "ipc", 0.5);
	assert_int_equal(metric_of(c, 0, "flop_count_dp")->validity, RFL_VALID_UNAVAILABLE);
	assert_unknown(c, FLOPS_FP64);
	rig_fini(&rig);
}

/* With --print-gpu-trace --metrics: a row per launch, a column per metric. */
static void reads_metrics_of_launches(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "nvprof",
		     "\"Device\",\"Context\",\"Stream\",\"Kernel\",\"Correlation_ID\",\"flop_count_"
		     "sp\",\"dram_read_transactions\",\"dram_write_transactions\"\n"
		     "\"P (0)\",\"1\",\"7\",\"k(int) [307]\",307,100,2,3\n"
		     "\"P (0)\",\"1\",\"7\",\"k(int) [309]\",309,50,2,3\n");
	assert_int_equal(c->nranges, 1);
	assert_string_equal(c->ranges[0].name, "k(int)");
	assert_int_equal(c->ranges[0].launches, 2);
	assert_total(c, FLOPS_FP32, 150);
	assert_total(c, DRAM, 10 * 32);
	rig_fini(&rig);
}

static void reads_the_trace(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "nvprof",
		     "==12== NVPROF is profiling process 12, command: ./a\n"
		     "sum \"1\"\n"
		     "==12== Profiling result:\n"
		     "\"Start\",\"Duration\",\"Grid X\",\"Grid Y\",\"Grid Z\",\"Block X\",\"Block "
		     "Y\",\"Block Z\",\"Registers Per Thread\",\"Static SMem\",\"Dynamic "
		     "SMem\",\"Size\",\"Throughput\",\"SrcMemType\",\"DstMemType\",\"Device\","
		     "\"Context\",\"Stream\",\"Name\"\n"
		     "ms,us,,,,,,,,KB,B,KB,GB/s,,,,,,\n"
		     "1.0,57.0,,,,,,,,,,400.0,6.7,\"Pageable\",\"Device\",\"P "
		     "(0)\",\"1\",\"7\",\"[CUDA memcpy HtoD]\"\n"
		     "2.0,3.5,2,1,1,64,1,1,16,0.0,0,,,,,\"P (0)\",\"1\",\"7\",\"k(int, char*) "
		     "[301]\"\n"
		     "3.0,4.5,2,1,1,64,1,1,16,0.0,0,,,,,\"P (0)\",\"1\",\"7\",\"k(int, char*) "
		     "[302]\"\n");
	assert_int_equal(c->nranges, 1);
	assert_string_equal(c->ranges[0].name, "k(int, char*)");
	assert_string_equal(c->ranges[0].block, "(64, 1, 1)");
	assert_string_equal(c->ranges[0].grid, "(2, 1, 1)");
	assert_int_equal(c->ranges[0].launches, 2);
	assert_total(c, TIME, 8e-6);
	/* 400 KB are 409,600 bytes */
	assert_string_equal(c->notes[0], "memory copies and fills are not part of any total: 1 "
					 "operation, 409,600 bytes, 5.7e-05 s");
	/* Of unified memory: a field more, or no duration. */
	c = rig_read(&rig, "nvprof",
		     "\"Start\",\"Duration\",\"Grid X\",\"Size\",\"Device\",\"Unified Memory\","
		     "\"Name\"\n"
		     "ms,us,,KB,,,\n"
		     "1.0,2.0,,,\"P (0)\",\"P (1)\",4096,\"[Unified Memory Memcpy DtoD]\"\n"
		     "1.0,-,,,,\"PC 0x7f\",\"[Unified Memory CPU page faults]\"\n"
		     "2.0,3.5,2,,\"P (0)\",,\"k\"\n");
	assert_total(c, TIME, 3.5e-6);
	assert_string_equal(
		c->notes[0],
		"memory copies and fills are not part of any total: 1 operation, 2e-06 s");
	rig_fini(&rig);
}

static void reads_the_summary(void **state)
{
	static const char *const texts[] = {
		"\"Type\",\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n"
		",%,ms,,us,us,us,\n"
		"\"GPU activities\",75.0,1.5,3,500.0,500.0,500.0,\"k\"\n"
		"\"GPU activities\",25.0,0.5,1,500.0,500.0,500.0,\"[CUDA memcpy DtoH]\"\n"
		"\"API calls\",99.0,300.0,1,1.0,1.0,1.0,\"cudaMalloc\"\n",
		"==9== Profiling result:\n"
		"\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n"
		"%,ms,,us,us,us,\n"
		"75.0,1.5,3,500.0,500.0,500.0,\"k\"\n"
		"\n"
		"==9== API calls:\n"
		"No API activities were profiled.\n",
		"==9== Profiling result:\n"
		"\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n"
		"%,ms,,us,us,us,\n"
		"75.0,1.5,3,500.0,500.0,500.0,\"k\"\n"
		"==9== API calls:\n"
		"\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n"
		"%,ms,,us,us,us,\n"
		"99.0,300.0,1,1.0,1.0,1.0,\"cudaMalloc\"\n",
		"\"Type\",\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n"
		",%,ms,,us,us,us,\n"
		"\"GPU activities\",75.0,1.5,3,500.0,500.0,500.0,\"k\"\n"
		"\"OpenACC (excl)\",75.0,1.5,3,500.0,500.0,500.0,\"acc_wait\"\n"
		"==9== NVTX result:\n"
		"==9==   Thread \"<unnamed>\" (id = 66653056)\n"
		"==9==     Domain \"<unnamed>\"\n"
		"==9==       Range \"forward\"\n"
		"\"Type\",\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n"
		",%,ms,,us,us,us,\n"
		"\"Range\",75.0,1.5,3,500.0,500.0,500.0,\"forward\"\n"
		"\"GPU activities\",75.0,1.5,3,500.0,500.0,500.0,\"k\"\n",
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		const struct rfl_capture *c = rig_read(&rig, "nvprof", texts[i]);

		assert_int_equal(c->nranges, 1);
		assert_int_equal(c->ranges[0].launches, 3);
		assert_total(c, TIME, 1.5e-3);
	}
	rig_fini(&rig);
}

/* Of 2013: no quotes around titles, no row of units, a unit after every time. */
static void reads_times_with_their_units(void **state)
{
	static const char head[] =
		"======== NVPROF is profiling ./app...\n======== Command: ./app\n"
		"======== Profiling result:\nTime(%),Time,Calls,Avg,Min,Max,Name\n";
	struct summary_rig rig;
	const struct rfl_capture *c;
	char text[1024];

	(void)state;
	rig_init(&rig);
	(void)snprintf(text, sizeof(text),
		       "%s47.79%%,542.36ms,100,5.42ms,5.40ms,5.50ms,\"gemm(float*, float*)\"\n"
		       "0.10%%,1.5us,2,750ns,700ns,800ns,\"tiny\"\n"
		       "12.21%%,138.57ms,10,13.86ms,13.80ms,13.90ms,[CUDA memcpy HtoD]\n",
		       head);
	c = rig_read(&rig, "nvprof", text);
	assert_int_equal(c->nranges, 2);
	assert_string_equal(c->ranges[0].name, "gemm(float*, float*)");
	assert_int_equal(c->ranges[0].launches, 100);
	assert_close(c->ranges[0].amount[RFL_QUANTITY_TIME].value, 0.54236, 1e-15);
	assert_int_equal(c->ranges[0].amount[RFL_QUANTITY_TIME].validity, RFL_VALID);
	/* 1.45 to 1.55 us */
	assert_int_equal(c->ranges[1].amount[RFL_QUANTITY_TIME].validity, RFL_VALID_ESTIMATE);
	(void)snprintf(text, sizeof(text), "%s47.79%%,542.36,100,5.42,5.40,5.50,\"gemm\"\n", head);
	rig_refuses(&rig, text,
		    ":5: a row of units must follow the header; '542.36' is not a time unit");
	rig_fini(&rig);
}

/* Complaints without the number of a process: nothing was profiled. */
static void reads_complaints_of_no_process(void **state)
{
	static const char *const texts[] = {
		"======== Warning: No CUDA application was profiled, exiting",
		"======== Error: unified memory profiling failed.",
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		const struct rfl_capture *c = rig_read(&rig, "nvprof", texts[i]);

		assert_int_equal(c->nrefusals, 1);
		assert_non_null(strstr(c->refusals[0].reason, texts[i]));
	}
	rig_fini(&rig);
}

/* Tables of two kinds in one file: each ends the one before. */
static void reads_tables_behind_each_other(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "nvprof",
		     METRICS "\"P (0)\",\"k\",1,\"flop_count_sp\",\"\",5,5,5\n"
			     "\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n"
			     "%,ms,,us,us,us,\n75.0,1.5,3,500.0,500.0,500.0,\"j\"\n");
	assert_int_equal(c->nranges, 2);
	assert_total(c, FLOPS_FP32, 5);
	assert_total(c, TIME, 1.5e-3);
	rig_fini(&rig);
}

static void refuses_what_is_broken(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ METRICS "\"P (0)\",\"k\",2,\"flop_count_sp\",\"\",1,1,1x\n",
		  ":2: column 'Avg': '1x' is not a value" },
		{ METRICS "\"P (0)\",\"k\",many,\"flop_count_sp\",\"\",1,1,1\n",
		  ":2: column 'Invocations': 'many' is not a launch count" },
		{ METRICS "\"P (0)\",\"k\",1,\"flop_count_sp\",\"\",1,1,1\n"
			  "\"P (0)\",\"k\",1,\"flop_count_sp\",\"\",2,2,2\n",
		  ":3: column 'Metric Name': 'flop_count_sp' has two different values for this "
		  "kernel" },
		{ METRICS "\"P (0)\",\"k\",1,\"flop_count_sp\",\"\"",
		  ":2: 5 fields, but the header has 8: the file is cut off" },
		{ METRICS "\"P (0)\",\"k\",1,\"gld_throughput\",\"\",1XB/s,1XB/s,1XB/s\n",
		  ":2: column 'Avg': '1XB/s' is not a value" },
		{ "==9== NVPROF is profiling process 9, command: ./a\n"
		  "==9== Profiling result:\n"
		  "            Type  Time(%)      Time     Calls       Avg       Min       Max  "
		  "Name\n GPU activities:  100.00%  1.5ms 3 0.5ms 0.5ms 0.5ms k\n",
		  ": an aligned nvprof table, not CSV; run nvprof with --csv" },
		{ "==9== NVPROF is profiling process 9, command: ./a\n"
		  "==9== Profiling result:\n"
		  "\"Start\",\"Duration\",\"Name\",\"Correlation_ID\"\n"
		  "us,us,,\n0.0,2.866,\"cuDeviceGetPCIBusId\",1\n",
		  ": API calls, but no kernels; run nvprof with --csv --print-gpu-trace" },
		{ "\"Device\",\"Kernel\",\"Invocations\",\"Event Name\",\"Min\",\"Max\",\"Avg\","
		  "\"Total\"\n\"P (0)\",\"k\",1,\"warps_launched\",1,1,1,1\n",
		  ": events, but no metrics; run nvprof with --csv --metrics "
		  "flop_count_sp,dram_read_transactions,dram_write_transactions" },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		rig_refuses(&rig, cases[i].text, cases[i].message);
	rig.options.keep_going = true;
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(rig_read(&rig, "nvprof", cases[i].text)->rows_left_out, 1);
	rig_fini(&rig);
}

static void takes_complaints_for_the_reason(void **state)
{
	const struct rfl_capture *c;
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "nvprof",
		     "==9== NVPROF is profiling process 9, command: ./a\n"
		     "==9== Warning: The user does not have permission to profile on the target "
		     "device.\n");
	assert_int_equal(c->nrefusals, 1);
	assert_unknown(c, FLOPS);
	assert_string_equal(c->total[RFL_QUANTITY_DRAM].reason,
			    "nvprof reports '==9== Warning: The user does not have permission to "
			    "profile on the target device.'; run nvprof as root, or set "
			    "NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module");
	rig_fini(&rig);
}

/* A file may hold what a terminal would obey. */
static void complaints_are_of_one_plain_line(void **state)
{
	const struct rfl_capture *c;
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "nvprof",
		     "==9== NVPROF is profiling process 9, command: ./a\n"
		     "==9== Error: no \033[31mkernel\tfound\n");
	assert_int_equal(c->nrefusals, 1);
	for (const char *at = c->total[RFL_QUANTITY_DRAM].reason; *at; at++)
		assert_true(*at >= ' ' && *at < 127);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_sample),
		cmocka_unit_test(keeps_a_counted_zero),
		cmocka_unit_test(multiplies_averages),
		cmocka_unit_test(counts_unused_metrics_once),
		cmocka_unit_test(reads_units_inside_values),
		cmocka_unit_test(reads_metrics_of_launches),
		cmocka_unit_test(reads_the_trace),
		cmocka_unit_test(reads_the_summary),
		cmocka_unit_test(reads_tables_behind_each_other),
		cmocka_unit_test(reads_times_with_their_units),
		cmocka_unit_test(reads_complaints_of_no_process),
		cmocka_unit_test(refuses_what_is_broken),
		cmocka_unit_test(takes_complaints_for_the_reason),
		cmocka_unit_test(complaints_are_of_one_plain_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
