/* nsys stats: old and new headers, traces, several reports in one output. */
#include <stdlib.h>

#include "tests/unit/summary_rig.h"

static void reads_the_sample(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "nsys", "s04_nsys_cuda_gpu_kern_sum.csv");
	assert_int_equal(c->nranges, 2);
	assert_int_equal(c->ranges[0].kind, RFL_RANGE_KERNEL);
	assert_string_equal(c->ranges[0].name,
			    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_"
			    "32x32_64x1_tn_align8>(T1::Params)");
	assert_total(c, TIME, 35488e-9);
	assert_unknown(c, FLOPS);
	assert_unknown(c, DRAM);
	rig_fini(&rig);
}

struct layout {
	const char *text;
	double time_s;
	int launches;
};

static void reads_headers_of_all_versions(void **state)
{
	static const struct layout layouts[] = {
		/* 2020 */
		{ "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n"
		  "100.0,3000,3,1000.0,900,1100,k(int)\n",
		  3e-6, 3 },
		/* 2021, other unit, groups */
		{ "Time(%),Total Time (us),Instances,Avg (us),Min (us),Max (us),StdDev (us),Name\n"
		  "100.0,\"3,000.5\",3,1.0,1.0,1.0,0.0,\"k(int, float)\"\n",
		  3000.5e-6, 3 },
		/* by block and grid */
		{ "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev "
		  "(ns),GridXYZ,BlockXYZ,Name\n"
		  "60.0,600,2,300.0,300.0,300,300,0.0,   1    1    1, 128    1    1,NVTX/k\n",
		  600e-9, 2 },
		/* launches and executions: the average of the kernel */
		{ "PID,TID,DevId,Count,QCount,TAvg (ns),KAvg (ns),API Name,Kernel Name\n"
		  "1,1,0,4,4,9.0,2.5,cudaLaunchKernel,k\n",
		  10e-9, 4 },
		/* with copies by category */
		{ "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev "
		  "(ns),Category,Operation\n"
		  "50.0,500,1,500.0,500.0,500,500,0.0,CUDA_KERNEL,k\n"
		  "50.0,500,1,500.0,500.0,500,500,0.0,MEMORY_OPER,[CUDA memcpy HtoD]\n",
		  500e-9, 1 },
		/* a trace */
		{ "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem "
		  "(MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,"
		  "GreenCtx,Strm,Name\n"
		  "1,700,11,,,,,,,,,,4.0,5.0,Pageable,Device,GPU (0),1,,7,[CUDA memcpy "
		  "Host-to-Device]\n"
		  "2,800,12,1,2,3,32,1,1,16,0.0,0.0,,,,,GPU (0),1,,7,k\n"
		  "3,900,13,1,2,3,32,1,1,16,0.0,0.0,,,,,GPU (0),1,,7,k\n",
		  1700e-9, 2 },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(layouts); i++) {
		const struct rfl_capture *c = rig_read(&rig, "nsys", layouts[i].text);

		assert_int_equal(c->nranges, 1);
		assert_total(c, TIME, layouts[i].time_s);
		assert_int_equal(c->ranges[0].launches, layouts[i].launches);
		if (i == 2)
			assert_string_equal(c->ranges[0].name, "NVTX/k");
		if (i == 2)
			assert_string_equal(c->ranges[0].grid, "1    1    1");
		if (i == 3)
			assert_int_equal(c->total[RFL_QUANTITY_TIME].validity, RFL_VALID_ESTIMATE);
		if (i == 5)
			assert_string_equal(c->ranges[0].grid, "(1, 2, 3)");
		if (i == 5)
			assert_string_equal(c->notes[0], "memory copies and fills are not part of "
							 "any total: 1 operation, 4,000,000 bytes");
	}
	rig.options.strict = true;
	rig_refuses(&rig, layouts[3].text,
		    ":2: column 'KAvg': is a rounded average; leave out --strict, or use the "
		    "report cuda_gpu_kern_sum");
	rig_fini(&rig);
}

/* What `nsys stats` prints without --report: progress, several tables, one of them of kernels. */
static void takes_the_kernels_of_several_reports(void **state)
{
	static const char text[] =
		"Generating SQLite file a.sqlite from a.nsys-rep\n"
		"Processing [a.sqlite] with [/opt/reports/cuda_api_sum.py]...\n"
		"Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev "
		"(ns),Name\n"
		"99.0,123456,7,1.0,1.0,1,1,0.0,cudaLaunchKernel\n"
		"\n"
		"Processing [a.sqlite] with [/opt/reports/cuda_gpu_kern_sum.py]...\n"
		"Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev "
		"(ns),Name\n"
		"100.0,250,2,125.0,125.0,100,150,0.0,k\n"
		"\n"
		"Processing [a.sqlite] with [/opt/reports/cuda_gpu_mem_size_sum.py]...\n"
		"Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation\n"
		"1.500,3,0.5,0.5,0.5,0.5,0.0,[CUDA memcpy Host-to-Device]\n"
		"\n"
		"Processing [a.sqlite] with [/opt/reports/cuda_gpu_kern_gb_sum.py]...\n"
		"Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev "
		"(ns),GridXYZ,BlockXYZ,Name\n"
		"100.0,250,2,125.0,125.0,100,150,0.0,1,1,k\n";
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "nsys", text);
	assert_int_equal(c->nranges, 1);
	assert_total(c, TIME, 250e-9);
	assert_int_equal(c->nnotes, 1);
	assert_string_equal(
		c->notes[0],
		"memory copies and fills are not part of any total: 3 operations, 1,500,000 bytes");
	assert_string_equal(rig.warned, "file:15: a second table of kernels is skipped, as it may "
					"contain the same launches; keep one report per file\n");
	/* Before 2021: calls under another title, sizes in KiB. */
	c = rig_read(&rig, "nsys",
		     "Time(%),Total Time,Calls,Average,Minimum,Maximum,Name\n"
		     "50.3,1709124966,195,8764743.4,2450,1707272594,cudaMalloc\n"
		     "\n"
		     "Time(%),Total Time,Instances,Average,Minimum,Maximum,Name\n"
		     "100.0,250,2,125.0,100,150,k\n"
		     "\n"
		     "Total,Operations,Average,Minimum,Maximum,Operation\n"
		     "400.0,3,133.3,0.5,390.0,[CUDA memcpy HtoD]\n");
	assert_int_equal(c->nranges, 1);
	assert_total(c, TIME, 250e-9);
	assert_string_equal(
		c->notes[0],
		"memory copies and fills are not part of any total: 3 operations, 409,600 bytes");
	rig_fini(&rig);
}

static void refuses_what_is_broken(void **state)
{
	static const char head[] =
		"Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),"
		"StdDev (ns),Name\n";
	static const struct {
		const char *rows, *message;
	} cases[] = {
		{ "1.0,abc,1,1,1,1,1,0,k\n", ":2: column 'time': 'abc' is not a time" },
		{ "1.0,5,0,1,1,1,1,0,k\n", ":2: column 'instances': '0' is not a launch count" },
		{ "1.0,5,1,1,1,1,1,0,k\n1.0,5,1,1,1",
		  ":3: 5 fields, but the header has 9: the file is cut off" },
		{ "1.0,5,1,1,1,1,1,0,k,more\n", ":2: 10 fields, but the header has 9" },
	};
	struct summary_rig rig;
	char text[1024];

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		(void)snprintf(text, sizeof(text), "%s%s", head, cases[i].rows);
		rig_refuses(&rig, text, cases[i].message);
	}
	rig.options.keep_going = true;
	(void)snprintf(text, sizeof(text), "%s%s", head, cases[2].rows);
	assert_int_equal(rig_read(&rig, "nsys", text)->rows_left_out, 1);
	rig.options.from = "nsys";
	rig_refuses(&rig, "Time (%),Total Time (parsecs),Instances,Name\n1,1,1,k\n",
		    ":1: unknown time unit 'parsecs' in the header");
	rig_refuses(&rig,
		    "Processing [a]...\nSKIPPED: a.sqlite does not contain CUDA kernel data.\n",
		    ": no kernels: nsys reports 'SKIPPED: a.sqlite does not contain CUDA kernel "
		    "data.'");
	rig_refuses(&rig, " Time (%)  Total Time (ns)  Instances   Name\n --------  ----\n",
		    ": an aligned nsys table, not CSV; create the file with 'nsys stats --report "
		    "cuda_gpu_kern_sum --format csv'");
	rig_fini(&rig);
}

#define STEP "step 1234 loss 2.3456 1234.5 images/s, real 12, user time, total 3 h, 1,,x,2,3.00\n"

/* A log of so many bytes, with this at its end. malloc'ed. */
static char *log_with(size_t size, const char *end)
{
	size_t n = size / strlen(STEP);
	char *text = malloc(n * strlen(STEP) + strlen(end) + 1), *at = text;

	assert_non_null(text);
	for (size_t i = 0; i < n; i++, at += strlen(STEP))
		memcpy(at, STEP, strlen(STEP));
	memcpy(at, end, strlen(end) + 1);
	return text;
}

/* Past what detection reads first, wherever that is cut. */
static void finds_tables_far_down_in_a_log(void **state)
{
	static const char csv[] = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min "
				  "(ns),Max (ns),StdDev (ns),Name\n"
				  "100.0,5000,2,2500.0,2500.0,1,2,0.0,k\n";
	static const char people[] = " Time (%)  Total Time (ns)  Instances   Name\n --------  "
				     "----\n    95.0   1  1  k\n";
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t size = 60 << 10; size < 140 << 10; size += 1009) {
		char *text = log_with(size, csv);
		const struct rfl_capture *c = rig_read(&rig, "nsys", text);

		assert_total(c, TIME, 5e-6);
		assert_int_equal(c->ranges[0].launches, 2);
		assert_string_equal(rig.warned, "");
		free(text);
		text = log_with(size, people);
		rig_refuses(&rig, text,
			    ": an aligned nsys table, not CSV; create the file with 'nsys stats "
			    "--report cuda_gpu_kern_sum --format csv'");
		free(text);
	}
	rig_fini(&rig);
}

/* Lines of which others are made are no table: what is far down has to be certain. */
static void takes_no_log_for_a_table(void **state)
{
	static const char *const ends[] = {
		"",
		"12,,cycles,34,100.00,,\n",      /* a row of perf stat -x, and of others */
		"real 1.0\nuser 1.0\nsys 0.1\n", /* of whatever the log timed */
		"==WARNING== something\n",
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(ends); i++) {
		char *text = log_with(200 << 10, ends[i]);

		assert_int_equal(rig_text(&rig, text), RFL_EFORMAT);
		assert_says(&rig.err, "unknown file format");
		assert_says(&rig.err, "beginning with 'step 1234 loss 2.3456");
		free(text);
	}
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_sample),
		cmocka_unit_test(reads_headers_of_all_versions),
		cmocka_unit_test(takes_the_kernels_of_several_reports),
		cmocka_unit_test(refuses_what_is_broken),
		cmocka_unit_test(finds_tables_far_down_in_a_log),
		cmocka_unit_test(takes_no_log_for_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
