/* likwid-perfctr -O: raw events by formula, likwid's own metrics where there is no formula. */
#include "tests/unit/summary_rig.h"

/* 16 + 2 x 25e6 x 8 FLOPs; 150e6 CAS of 64 bytes; the longest of two threads. */
static void reads_a_region(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "likwid", "likwid_mem_dp.csv");
	assert_string_equal(c->device, "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz");
	assert_int_equal(c->nranges, 1);
	assert_int_equal(c->ranges[0].kind, RFL_RANGE_PROCESS);
	assert_string_equal(c->ranges[0].name, "triad");
	assert_total(c, TIME, 0.25);
	assert_total(c, FLOPS_FP64, 400000016);
	assert_total(c, DRAM_READ, 100e6 * 64);
	assert_total(c, DRAM, 150e6 * 64);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM].validity, RFL_VALID);
	assert_total(c, INSTRUCTIONS, 290e6);
	assert_total(c, CYCLES, 1180e6);
	assert_int_equal(c->nnotes, 1);
	rig_fini(&rig);
}

/* AMD's event is of all precisions: SP [MFLOP/s] is not taken for fp32 beside it. */
static void prefers_raw_events(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "likwid", "likwid_flops_sp_amd.csv");
	assert_string_equal(c->ranges[0].name, "FLOPS_SP");
	assert_total(c, FLOPS, 64e9);
	assert_unknown(c, FLOPS_FP32);
	assert_unknown(c, DRAM);
	assert_total(c, TIME, 2);
	rig_fini(&rig);
}

#define INFO "STRUCT,Info,3\nCPU name:,X\nCPU type:,Y\nCPU clock:,1 GHz\n"

static void takes_metrics_where_events_have_no_formula(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "likwid",
		     INFO "TABLE,Group 1 Raw,MEM_DP,1\nEvent,Counter,Core 0,Core 1\n"
			  "FP_OPS_NEW,PMC0,5,5\n"
			  "TABLE,Group 1 Metric,MEM_DP,3\nMetric,Core 0,Core 1\n"
			  "Runtime (RDTSC) [s],2.0000,2.0000\nDP [MFLOP/s],10.0000,20.0000\n"
			  "Memory data volume [GBytes],1.5000,0\n");
	assert_total(c, FLOPS_FP64, 60e6);
	assert_total(c, DRAM, 1.5e9);
	assert_int_equal(c->total[RFL_QUANTITY_FLOPS_FP64].validity, RFL_VALID_ESTIMATE);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM].validity, RFL_VALID_ESTIMATE);
	/* likwid 4; threads of unlike times: 10e6 x 2 s + 20e6 x 0.5 s */
	c = rig_read(&rig, "likwid",
		     INFO "TABLE,Region r,Group 1 Raw,MEM_DP,1\nRegion Info,Core 0,Core 1\n"
			  "RDTSC Runtime [s],2.000000,0.500000\ncall count,1,1\n"
			  "Event,Counter,Core 0,Core 1\nFP_OPS_NEW,PMC0,5,5\n"
			  "TABLE,Region r,Group 1 Metric,MEM_DP,3\nMetric,Core 0,Core 1\n"
			  "Runtime (RDTSC) [s],2.0000,0.5000\nDP MFLOP/s,10.0000,20.0000\n"
			  "Memory load data volume [GBytes],1.5000,0\n");
	assert_total(c, TIME, 2);
	assert_total(c, FLOPS_FP64, 30e6);
	assert_total(c, DRAM_READ, 1.5e9);
	/* Half precision of AVX512-FP16; memory of client CPUs. */
	c = rig_read(&rig, "likwid",
		     INFO "TABLE,Group 1 Raw,MEM_HP,6\nEvent,Counter,HWThread 0\n"
			  "FP_ARITH_INST_RETIRED2_128B_PACKED_HALF,PMC0,1\n"
			  "FP_ARITH_INST_RETIRED2_SCALAR_HALF,PMC1,1\n"
			  "FP_ARITH_INST_RETIRED2_256B_PACKED_HALF,PMC2,1\n"
			  "FP_ARITH_INST_RETIRED2_512B_PACKED_HALF,PMC3,2\n"
			  "DRAM_READS,MBOX0C1,3\nDRAM_WRITES,MBOX0C2,1\n");
	assert_total(c, FLOPS_FP16, 1 + 8 + 16 + 2 * 32);
	assert_total(c, DRAM_READ, 192);
	assert_total(c, DRAM, 256);
	rig_fini(&rig);
}

/* A custom set has no table of metrics; its time is a row of the raw table. */
static void reads_custom_sets_and_groups(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "likwid",
		     INFO "TABLE,Group 1 Raw,Custom,3\nEvent,Counter,HWThread 0\n"
			  "Runtime (RDTSC) [s],TSC,1.500000e+00\nINSTR_RETIRED_ANY,FIXC0,7\n"
			  "CAS_COUNT_RD,MBOX0C0,nan\n" INFO
			  "TABLE,Group 2 Raw,MEM,2\nEvent,Counter,HWThread 0\n"
			  "Runtime (RDTSC) [s],TSC,0.5\nCAS_COUNT_RD,MBOX0C0,2\n"
			  "CAS_COUNT_WR,MBOX0C1,2\n");
	assert_int_equal(c->nranges, 2);
	assert_string_equal(c->ranges[0].name, "Custom");
	assert_string_equal(c->ranges[1].name, "MEM");
	assert_close(c->ranges[0].amount[RFL_QUANTITY_TIME].value, 1.5, 1e-15);
	assert_true(isnan(c->ranges[0].amount[RFL_QUANTITY_DRAM].value));
	assert_close(c->ranges[1].amount[RFL_QUANTITY_DRAM].value, 256, 1e-15);
	assert_total(c, TIME, 2);
	assert_int_equal(metric_of(c, 0, "uncore_imc/cas_count_read/")->validity,
			 RFL_VALID_UNAVAILABLE);
	rig_fini(&rig);
}

/* A region's time has six decimals in its table, and six digits among the metrics. */
static void takes_the_time_with_more_digits(void **state)
{
	static const char coarse[] = INFO "TABLE,Region triad,Group 1 Raw,MEM,2\n"
					  "Region Info,HWThread 0,HWThread 1\n"
					  "RDTSC Runtime [s],0.000010,0.000009\n"
					  "call count,1,1\n"
					  "Event,Counter,HWThread 0,HWThread 1\n"
					  "CAS_COUNT_RD,MBOX0C0,4,0\nCAS_COUNT_WR,MBOX0C1,2,0\n";
	char text[2048];
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	(void)snprintf(text, sizeof(text),
		       "%sTABLE,Region triad,Group 1 Metric,MEM,1\nMetric,HWThread 0,HWThread 1\n"
		       "Runtime (RDTSC) [s],1.039903e-05,9.1e-06\n",
		       coarse);
	c = rig_read(&rig, "likwid", text);
	assert_total(c, TIME, 1.039903e-05);
	assert_int_equal(c->total[RFL_QUANTITY_TIME].validity, RFL_VALID);
	/* the same with fewer digits than the region: 5e-07 are 5 % of it */
	(void)snprintf(text, sizeof(text),
		       "%sTABLE,Region triad,Group 1 Metric,MEM,1\nMetric,HWThread 0,HWThread 1\n"
		       "Runtime (RDTSC) [s],1.1e-05,9.1e-06\n",
		       coarse);
	c = rig_read(&rig, "likwid", text);
	assert_total(c, TIME, 1e-05);
	assert_int_equal(c->total[RFL_QUANTITY_TIME].validity, RFL_VALID_ESTIMATE);
	assert_string_equal(c->total[RFL_QUANTITY_TIME].reason, "rounded to the printed decimals");
	assert_string_equal(c->notes[0], "likwid rounds the time of triad to within 5e-07 s");
	rig_fini(&rig);
}

static void refuses_what_is_broken(void **state)
{
	static const char raw[] = INFO "TABLE,Group 1 Raw,MEM,1\nEvent,Counter,HWThread 0,HWThread "
				       "1\n";
	static const struct {
		const char *rows, *message;
	} cases[] = {
		{ "CAS_COUNT_RD,MBOX0C0,12x,0\n", ":7: '12x' of CAS_COUNT_RD is not a number" },
		{ "CAS_COUNT_RD,MBOX0C0,12\n",
		  ":7: 'CAS_COUNT_RD' has values for 1 of 2 hardware threads" },
		{ "CAS_COUNT_RD,MBOX0", ":7: 'CAS_COUNT_RD' has values for 0 of 2 hardware "
					"threads: the file is cut off" },
	};
	struct summary_rig rig;
	char text[512];

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		(void)snprintf(text, sizeof(text), "%s%s", raw, cases[i].rows);
		rig_refuses(&rig, text, cases[i].message);
	}
	rig.options.keep_going = true;
	assert_int_equal(rig_read(&rig, "likwid", text)->rows_left_out, 1);
	rig_refuses(
		&rig,
		"Group 1: MEM\n| Event | Counter | HWThread 0 |\n| CAS_COUNT_RD | MBOX0C0 | 1 |\n",
		": no likwid tables; run likwid-perfctr with -O, or with -o FILE.csv");
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_region),
		cmocka_unit_test(prefers_raw_events),
		cmocka_unit_test(takes_metrics_where_events_have_no_formula),
		cmocka_unit_test(reads_custom_sets_and_groups),
		cmocka_unit_test(takes_the_time_with_more_digits),
		cmocka_unit_test(refuses_what_is_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
