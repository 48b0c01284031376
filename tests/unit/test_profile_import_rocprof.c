/* AMD's profilers: rocprofv3, rocprof, rocprof-compute. Totals of real files were computed by a
 * script from their columns, with the formulas that the comments repeat. */
#include "tests/unit/summary_rig.h"

static const struct rfl_range *range_of(const struct rfl_capture *c, const char *name)
{
	for (size_t i = 0; i < c->nranges; i++)
		if (strcmp(c->ranges[i].name, name) == 0)
			return &c->ranges[i];
	fail_msg("no range '%s'", name);
	return NULL;
}

#define assert_amount(range, quantity, expected) \
	assert_close((range)->amount[RFL_QUANTITY_##quantity].value, (expected), 1e-15)

/* MI300A: FLOPs = 64 (ADD + MUL + 2 FMA); read = 128 BUBBLE + 32 RDREQ_32B + 64 (RDREQ - BUBBLE -
 * RDREQ_32B); written = 64 WRREQ_64B + 32 (WRREQ - WRREQ_64B). Its ADD_F32 and FMA_F32 are one
 * instruction a wave, TRANS_F32 is not counted. */
static void reads_flops_and_bytes_of_mi300(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;
	const struct rfl_range *r;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "rocprof", "rocprof/mi300a_pmc_perf.csv");
	assert_string_equal(c->family, "cdna3");
	assert_int_equal(c->nranges, 3);
	assert_total(c, TIME, 437786404e-9);
	assert_total(c, FLOPS_FP64, 10200547328);
	assert_total(c, FLOPS_FP32, 1400832);
	assert_total(c, FLOPS_TENSOR_FP32, 0);
	assert_total(c, FLOPS, 10200547328.0 + 1400832);
	assert_total(c, DRAM_READ, 16690976768);
	assert_total(c, DRAM_WRITE, 6587117664);
	assert_total(c, L1, 125356197120);
	assert_unknown(c, L2);                /* requests of 64 or 128 bytes */
	assert_unknown(c, FLOPS_TENSOR_TF32); /* XF32 is not in the file */
	assert_unknown(c, CYCLES);            /* GRBM_GUI_ACTIVE is the sum of six XCDs */
	r = range_of(c, "__omp_offloading_32_6b6b__QQmain_l61");
	assert_int_equal(r->launches, 2);
	assert_string_equal(r->block, "256");
	assert_string_equal(r->grid, "912"); /* 233472 threads */
	assert_amount(r, TIME, 3489811e-9);
	assert_amount(r, FLOPS_FP64, 5100273664);
	assert_amount(r, DRAM, 8382837184.0 + 2187952352.0);
	assert_true(strstr(c->notes[0], "one kernel at a time") != NULL);
	rig_fini(&rig);
}

/* MI200: three copies of 8 MiB. With sums, and with a column per channel of another pass. */
static void adds_up_channels(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "rocprof", "rocprof/mi200_pmc_perf.csv");
	assert_string_equal(c->family, "cdna2");
	assert_string_equal(c->ranges[0].name, "vecCopy(double*, double*, double*, int, int)");
	assert_int_equal(c->ranges[0].launches, 3);
	assert_total(c, DRAM_READ, 25168576);
	assert_total(c, DRAM_WRITE, 20048448);
	assert_total(c, L2, 50331648); /* 3 x (8 MiB read + 8 MiB written) */
	assert_int_equal(c->total[RFL_QUANTITY_L2].validity, RFL_VALID);
	assert_total(c, TIME, 52320e-9);
	assert_total(c, FLOPS, 0); /* counted, and 0 */
	assert_int_equal(c->total[RFL_QUANTITY_FLOPS_TENSOR_TF32].validity, RFL_VALID_UNAVAILABLE);
	c = rig_file(&rig, "rocprof", "rocprof/mi200_channels.csv");
	assert_total(c, DRAM_READ, 25167488);
	assert_total(c, DRAM_WRITE, 20065024);
	assert_unknown(c, FLOPS);
	assert_unknown(c, TIME);
	/* a sum wins over its channels */
	c = rig_read(&rig, "rocprof",
		     "Index,KernelName,gpu-id,TCC_EA_WRREQ[0],TCC_EA_WRREQ[1],TCC_EA_WRREQ_sum,"
		     "TCC_EA_WRREQ_64B_sum\n0,\"k.kd\",0,1,2,4,4\n");
	assert_string_equal(c->ranges[0].name, "k");
	assert_total(c, DRAM_WRITE, 4 * 64);
	/* a channel that is repeated counts once; a number may be cut off with the file */
	c = rig_read(&rig, "rocprof",
		     "Index,KernelName,gpu-id,TCC_EA_WRREQ[0],TCC_EA_WRREQ[0],"
		     "TCC_EA_WRREQ_64B_sum\n0,\"k\",0,4,4,4");
	assert_total(c, DRAM_WRITE, 4 * 64);
	assert_string_equal(rig.warned, "file:2: no line break follows; if the file is cut off "
					"here, the last figure is wrong\n");
	/* a channel without a value makes the sum unknown */
	c = rig_read(
		&rig, "rocprof",
		"Index,KernelName,gpu-id,TCC_EA_WRREQ[0],TCC_EA_WRREQ[1],TCC_EA_WRREQ_64B_sum\n"
		"0,\"k\",0,1,,4\n");
	assert_unknown(c, DRAM_WRITE);
	assert_string_equal(c->total[RFL_QUANTITY_DRAM_WRITE].reason,
			    "TCC_EA_WRREQ: rocprof wrote no value");
	rig_fini(&rig);
}

/* Both timestamps are "8.1097E+14" there. */
static void rounded_timestamps_are_no_times(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "rocprof", "rocprof/mi300x_pmc_perf.csv");
	assert_total(c, DRAM_WRITE, 3 * 131072 * 64);
	assert_unknown(c, TIME);
	assert_true(strstr(c->total[RFL_QUANTITY_TIME].reason, "spreadsheet") != NULL);
	rig_fini(&rig);
}

/* FETCH_SIZE and WRITE_SIZE are KiB. */
static void reads_rocprof(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;
	const struct rfl_range *r;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "rocprof", "rocprof/v1_data_movement.csv");
	assert_string_equal(c->family, "amd");
	r = range_of(c, "laplacian_kernel");
	assert_int_equal(r->launches, 5);
	assert_amount(r, DRAM_READ, 10158557440);
	assert_int_equal(r->amount[RFL_QUANTITY_DRAM_READ].validity, RFL_VALID_ESTIMATE);
	assert_amount(r, DRAM_WRITE, 5325506048);
	assert_unknown(c, TIME);
	c = rig_file(&rig, "rocprof", "rocprof/v1_results.csv");
	assert_total(c, TIME, 15390678e-9);
	assert_amount(range_of(c, "laplacian_kernel"), TIME, 13212581e-9);
	assert_unknown(c, DRAM);
	c = rig_file(&rig, "rocprof", "rocprof/v1_results.stats.csv");
	r = range_of(c, "laplacian_kernel");
	assert_int_equal(r->launches, 1001);
	assert_amount(r, TIME, 2646378558e-9);
	rig_fini(&rig);
}

static void reads_rocprofv3(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;
	const struct rfl_range *r;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "rocprof", "rocprof/v3_kernel_trace.csv");
	assert_int_equal(c->nranges, 3);
	assert_total(c, TIME, 795453e-9);
	r = range_of(c,
		     "void addition_kernel<float>(float*, float const*, float const*, int, int)");
	assert_int_equal(r->launches, 4);
	assert_string_equal(r->block, "64");
	assert_string_equal(r->grid, "16384"); /* 1024 x 1024 threads */
	rig.options.all_metrics = true;
	c = rig_file(&rig, "rocprof", "rocprof/v3_counter_collection.csv");
	r = range_of(c,
		     "void addition_kernel<float>(float*, float const*, float const*, int, int)");
	assert_string_equal(r->grid, "16384");
	assert_close(find_metric(r, "SQ_WAVES")->value, 4 * 16384, 0);
	assert_unknown(c, FLOPS);
	assert_unknown(c, TIME);
	/* a channel that is repeated counts once in its dispatch */
	c = rig_read(&rig, "rocprof",
		     "Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n"
		     "1,k,TCC_HIT[0],4\n1,k,TCC_HIT[1],8\n1,k,TCC_HIT[0],4\n2,k,TCC_HIT[0],4\n");
	assert_close(find_metric(&c->ranges[0], "TCC_HIT")->value, 4 + 8 + 4, 0);
	rig_fini(&rig);
}

/* Sums are rounded to six digits there: "GCEA_ALWAYS_COUNT" is exact. */
static void prefers_exact_counts(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	rig.options.all_metrics = true;
	c = rig_file(&rig, "rocprof", "rocprof/rdna35_results_pmc_perf.csv");
	assert_string_equal(c->family, "rdna");
	assert_int_equal(c->ranges[0].launches, 3);
	assert_total(c, TIME, (241276 + 228050 + 221877) * 1e-9);
	assert_close(find_metric(&c->ranges[0], "GCEA_ALWAYS_COUNT")->value,
		     2697917 + 2643205 + 2473637, 0);
	assert_close(find_metric(&c->ranges[0], "GL2C_BUSY")->value, 2475310 + 2462540 + 2393900,
		     0);
	assert_unknown(c, FLOPS);
	rig_fini(&rig);
}

#define LONG                                                                                    \
	"\"Correlation_Id\",\"Dispatch_Id\",\"Agent_Id\",\"Queue_Id\",\"Process_Id\",\"Thread_" \
	"Id\","                                                                                 \
	"\"Grid_Size\",\"Kernel_Name\",\"Workgroup_Size\",\"Counter_Name\",\"Counter_Value\","  \
	"\"Start_Timestamp\",\"End_Timestamp\"\n"

/* A dispatch is a process and a number. The matrix counters are in units of 512 FLOPs. */
static void joins_the_rows_of_a_dispatch(void **state)
{
	static const char text[] =
		LONG "1,1,\"Agent 4\",1,7,7,256,\"gemm(int, int)\",64,"
		     "\"SQ_INSTS_VALU_MFMA_MOPS_F16\",10,1727600000000000100,1727600000000000300\n"
		     "1,1,\"Agent 4\",1,7,7,256,\"gemm(int, int)\",64,"
		     "\"SQ_INSTS_VALU_MFMA_MOPS_F32\",3.0,1727600000000000100,1727600000000000300\n"
		     "2,1,\"Agent 5\",1,8,8,256,\"gemm(int, int)\",64,"
		     "\"SQ_INSTS_VALU_MFMA_MOPS_F16\",20,1000,1500\n"
		     "3,2,\"Agent 5\",1,8,8,100,\"gemm(int, int)\",64,"
		     "\"SQ_INSTS_VALU_FMA_F32\",1,0,0\n";
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "rocprof", text);
	assert_int_equal(c->nranges, 2);
	assert_int_equal(c->ranges[0].launches, 2);
	assert_string_equal(c->ranges[0].grid, "4");
	assert_string_equal(c->ranges[1].grid, "2"); /* rounded up */
	assert_amount(&c->ranges[0], FLOPS_TENSOR_FP16, 30 * 512);
	/* not counted in the second launch: not 0, but a lower bound */
	assert_amount(&c->ranges[0], FLOPS_TENSOR_FP32, 3 * 512);
	assert_int_equal(c->ranges[0].amount[RFL_QUANTITY_FLOPS_TENSOR_FP32].validity,
			 RFL_VALID_PARTIAL);
	assert_amount(&c->ranges[0], TIME, 700e-9);
	assert_amount(&c->ranges[1], FLOPS_FP32, 128);
	assert_int_equal(c->ranges[1].amount[RFL_QUANTITY_FLOPS_FP32].validity, RFL_VALID_PARTIAL);
	assert_true(isnan(c->ranges[1].amount[RFL_QUANTITY_TIME].value)); /* 0 to 0 */
	assert_string_equal(c->notes[0], "the kernels of several GPUs are added up");
	rig_fini(&rig);
}

/* Reads of 128 bytes: by size on CDNA4, by TCC_BUBBLE on CDNA3; without it a lower bound. */
static void the_generation_chooses_the_formulas(void **state)
{
	static const struct {
		const char *counters, *family;
		double read;
		enum rfl_validity validity;
	} files[] = {
		{ "TCC_EA_RDREQ_sum,TCC_EA_RDREQ_32B_sum\n0,k,0,10,4\n", "cdna2", 512, RFL_VALID },
		{ "TCC_EA0_RDREQ_sum,TCC_EA0_RDREQ_32B_sum,TCC_BUBBLE_sum\n0,k,0,10,4,1\n", "cdna3",
		  576, RFL_VALID },
		{ "TCC_EA0_RDREQ_sum,TCC_EA0_RDREQ_32B_sum\n0,k,0,10,4\n", "cdna3", 512,
		  RFL_VALID_PARTIAL },
		{ "TCC_EA0_RDREQ_32B,TCC_EA0_RDREQ_64B,TCC_EA0_RDREQ_128B\n0,k,0,1,2,3\n", "cdna4",
		  544, RFL_VALID },
		{ "GL2C_EA_RDREQ_32B_sum,GL2C_EA_RDREQ_64B_sum,GL2C_EA_RDREQ_96B_sum,"
		  "GL2C_EA_RDREQ_128B_sum\n0,k,0,1,2,3,4\n",
		  "rdna", 960, RFL_VALID },
		{ "GL2C_EA_RDREQ_32B_sum,GL2C_EA_RDREQ_64B_sum,GL2C_EA_RDREQ_128B_sum\n0,k,0,1,2,"
		  "4\n",
		  "rdna", 672, RFL_VALID_PARTIAL },
		{ "FetchSize\n0,k,0,1.5\n", "amd", 1536, RFL_VALID_ESTIMATE },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(files); i++) {
		char text[512];
		const struct rfl_capture *c;

		(void)snprintf(text, sizeof(text), "Index,KernelName,gpu-id,%s", files[i].counters);
		c = rig_read(&rig, "rocprof", text);
		assert_string_equal(c->family, files[i].family);
		assert_total(c, DRAM_READ, files[i].read);
		assert_int_equal(c->total[RFL_QUANTITY_DRAM_READ].validity, files[i].validity);
	}
	rig_fini(&rig);
}

/* Passes of one run, of which each is a text: they are joined kernel by kernel before the formulas.
 */
static const struct rfl_capture *join(struct summary_rig *rig, const char *const *texts)
{
	rig_again(rig);
	for (; *texts; texts++)
		assert_ok(rfl_import_text(*texts, strlen(*texts), "run.csv", &rig->options,
					  &rig->captures, &rig->err),
			  &rig->err);
	assert_ok(rfl_import_join_passes(&rig->captures, &rig->options, &rig->err), &rig->err);
	return rig->captures.captures[0];
}

#define FIRST "Index,KernelName,gpu-id,grd,wgr,"
#define SECOND                                                                             \
	"\"Dispatch_Id\",\"Process_Id\",\"Grid_Size\",\"Kernel_Name\",\"Workgroup_Size\"," \
	"\"Counter_Name\",\"Counter_Value\"\n"

static void joins_passes(void **state)
{
	/* FLOPs need both; the generation is known from the second file alone */
	static const char *const passes[] = {
		FIRST "SQ_INSTS_VALU_ADD_F32,SQ_INSTS_VALU_MUL_F32,SQ_WAVES,BeginNs,EndNs\n"
		      "0,k.kd,0,256,64,1,2,4,100,200\n"
		      "1,k.kd,0,256,64,1,2,4,300,450\n"
		      "2,only,0,64,64,0,0,1,500,600\n",
		SECOND "1,17,256,\"k\",64,\"SQ_INSTS_VALU_FMA_F32\",10\n"
		       "1,17,256,\"k\",64,\"TCC_EA_RDREQ_sum\",5\n"
		       "2,17,256,\"k\",64,\"SQ_INSTS_VALU_FMA_F32\",10\n"
		       "2,17,256,\"k\",64,\"TCC_EA_RDREQ_sum\",6\n",
		FIRST "TCC_EA_RDREQ_32B_sum,BeginNs,EndNs\n"
		      "0,k.kd,0,256,64,1,1,9000\n"
		      "1,k.kd,0,256,64,2,1,9000\n",
		NULL
	};
	/* the same kernels, but not as often; the same counters; another generation */
	static const char *const others[][3] = {
		{ FIRST "SQ_INSTS_VALU_ADD_F32\n0,k,0,256,64,1\n",
		  FIRST "SQ_INSTS_VALU_FMA_F32\n0,k,0,256,64,1\n1,k,0,256,64,1\n" },
		{ FIRST "SQ_INSTS_VALU_ADD_F32\n0,k,0,256,64,1\n",
		  FIRST "SQ_INSTS_VALU_ADD_F32\n0,k,0,256,64,1\n" },
		{ FIRST "TCC_EA_RDREQ_sum\n0,k,0,256,64,1\n",
		  FIRST "TCC_EA0_RDREQ_32B_sum\n0,k,0,256,64,1\n" },
		{ FIRST "SQ_INSTS_VALU_ADD_F32\n0,k,0,256,64,1\n",
		  FIRST "SQ_INSTS_VALU_FMA_F32\n0,k,0,256,32,1\n" },
	};
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = join(&rig, passes);
	assert_int_equal(rig.captures.n, 1);
	assert_string_equal(c->family, "cdna2");
	assert_int_equal(c->passes, 3);
	assert_int_equal(c->nranges, 2);
	assert_int_equal(c->ranges[0].launches, 2);
	assert_amount(&c->ranges[0], FLOPS_FP32, 64 * (2 * 1 + 2 * 2 + 2 * 20));
	assert_int_equal(c->ranges[0].amount[RFL_QUANTITY_FLOPS_FP32].validity, RFL_VALID);
	assert_amount(&c->ranges[0], DRAM_READ, 64 * 11 - 32 * 3);
	assert_amount(&c->ranges[0], TIME, 250e-9); /* of the first pass */
	assert_string_equal(c->ranges[1].name, "only");
	assert_true(isnan(c->ranges[1].amount[RFL_QUANTITY_FLOPS_FP32].value)); /* FMA unknown */
	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++) {
		(void)join(&rig, others[i]);
		assert_int_equal(rig.captures.n, 2);
		assert_string_equal(rig.warned,
				    i > 0 ? ""
					  : "run.csv and run.csv are not joined, because their "
					    "launch counts of 'k' differ; profile the same "
					    "work in each pass\n");
	}
	rig_fini(&rig);
}

static void refuses_what_is_not_sound(void **state)
{
	static const struct {
		const char *text, *message;
	} files[] = {
		{ LONG, ": no kernels; run rocprofv3 with --kernel-trace or --pmc, and "
			"--output-format csv" },
		{ LONG "1,1,4,1,7,7,64,\"k\",64,\"SQ_WAVES\",x,1,2\n",
		  ":2: column 'Counter_Value': 'x' is not a number" },
		{ LONG "1,a,4,1,7,7,64,\"k\",64,\"SQ_WAVES\",1,1,2\n",
		  ":2: column 'Dispatch_Id': 'a' is not a number" },
		{ LONG "1,1,4,1,7,7,64,\"k\",64,\"SQ_INSTS\",1,1,2\n"
		       "1,1,4,1,7,7,64,\"k\",64,\"SQ_INSTS\",2,1,2\n",
		  ":3: column 'Counter_Name': 'SQ_INSTS' has two different values for this "
		  "dispatch" },
		{ LONG "1,1,4,1,7,7,64,\"k\",64,\"TCC_EA_WRREQ[0]\",1,1,2\n"
		       "1,1,4,1,7,7,64,\"k\",64,\"TCC_EA_WRREQ[0]\",2,1,2\n",
		  ":3: column 'Counter_Name': 'TCC_EA_WRREQ[0]' has two different values for this "
		  "dispatch" },
		{ LONG "1,1,4,1,7,7,64,\"k\",64,\"SQ_INSTS\",1,1,2\n"
		       "2,2,4,1,7,7,64,\"k\",64,\"SQ_INSTS\",1,1,2\n"
		       "1,1,4,1,7,7,64,\"k\",64,\"SQ_WAVES\",1,1,2\n",
		  ":4: column 'Dispatch_Id': dispatch 1 was already read; keep its rows together, "
		  "and one run per file" },
		{ LONG "1,1,4,1,7,7,64,\"k\",64,\"SQ_WAVES\",1\n",
		  ":2: 11 fields, but the header has 13" },
		{ "Index,KernelName,gpu-id,FETCH_SIZE\n0,k,0,1..2\n",
		  ":2: '1..2' is not a number" },
		{ "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\"\n\"hipMemcpy\",3,30,10\n",
		  ":2: statistics of 'hipMemcpy', not of kernels; import the file "
		  "*_kernel_stats.csv" },
		{ "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\"\n\"k\",0,30,10\n",
		  ":2: column 'Calls': '0' is not a launch count" },
		{ "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\"\n\"k\",1,-30,10\n",
		  ":2: column 'TotalDurationNs': '-30' is not a time" },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(files); i++)
		rig_refuses(&rig, files[i].text, files[i].message);
	/* a bad row of a table with columns of counters leaves no launch behind */
	rig.options.keep_going = true;
	assert_ok(rig_text(&rig, "Index,KernelName,gpu-id,FETCH_SIZE\n0,k,0,1\n1,k,0,x\n"),
		  &rig.err);
	assert_int_equal(rig.captures.captures[0]->ranges[0].launches, 1);
	assert_int_equal(rig.captures.captures[0]->rows_left_out, 1);
	rig_refuses(&rig, "Index,KernelName,gpu-id,FETCH_SIZE\n0,k,0,x\n", files[0].message);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_flops_and_bytes_of_mi300),
		cmocka_unit_test(adds_up_channels),
		cmocka_unit_test(rounded_timestamps_are_no_times),
		cmocka_unit_test(reads_rocprof),
		cmocka_unit_test(reads_rocprofv3),
		cmocka_unit_test(prefers_exact_counts),
		cmocka_unit_test(joins_the_rows_of_a_dispatch),
		cmocka_unit_test(the_generation_chooses_the_formulas),
		cmocka_unit_test(joins_passes),
		cmocka_unit_test(refuses_what_is_not_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
