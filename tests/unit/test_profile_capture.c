/* Captures launch by launch: ranges, sums, what is partial, what is missing and why, totals. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/capture.h"
#include "profile/formula.h"

static struct rfl_capture_builder *builder(const char *formulas, bool all_metrics)
{
	const struct rfl_capture_spec spec = {
		.source = "ncu",
		.label = "a100_resnet50_fp32_bs64_prof",
		.path = "file.csv",
		.formulas = formulas,
		.all_metrics = all_metrics,
	};

	return rfl_capture_builder_new(&spec);
}

/* Metric, value; ends at a NULL. */
struct value {
	const char *name;
	double value;
};

static void give(struct rfl_capture_builder *b, const struct value *values)
{
	for (; values && values->name; values++) {
		int id = rfl_capture_metric_id(b, values->name, strlen(values->name), "");

		assert_true(id >= -1);
		assert_int_equal(rfl_capture_metric(b, id, values->value, RFL_VALID, -1,
						    isnan(values->value) ? "printed as n/a" : NULL),
				 RFL_GIVEN_NEW);
	}
}

static void launch_of(struct rfl_capture_builder *b, enum rfl_range_kind kind, const char *name,
		      const char *grid, int64_t n, const struct value *values)
{
	rfl_capture_begin(b, kind, name, "(32, 1, 1)", grid);
	rfl_capture_launches(b, n);
	give(b, values);
}

static void launch(struct rfl_capture_builder *b, const char *name, const struct value *values)
{
	launch_of(b, RFL_RANGE_KERNEL, name, "(1, 1, 1)", 1, values);
}

static const struct rfl_capture *finish(struct rfl_capture_builder *b, struct rfl_captures *to)
{
	rfl_captures_init(to);
	assert_int_equal(rfl_capture_finish(b, to, NULL), RFL_OK);
	assert_int_equal(to->n, 1);
	return to->captures[0];
}

static void assert_amount(const struct rfl_amount *a, double value, enum rfl_validity validity,
			  int64_t launches, const char *reason)
{
	assert_close(a->value, value, 0);
	assert_int_equal(a->validity, validity);
	assert_int_equal(a->launches, launches);
	if (reason)
		assert_string_equal(a->reason, reason);
	else
		assert_null(a->reason);
}

#define SASS(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum"

static const struct value gemm[] = {
	{ "gpu__time_duration.sum", 0.5 },
	{ "dram__bytes_read.sum", 60 },
	{ "dram__bytes_write.sum", 40 },
	{ SASS("fadd"), 100 },
	{ SASS("fmul"), 100 },
	{ SASS("ffma"), 400 },
	{ NULL, 0 },
};

/* --- ranges ---------------------------------------------------------------------------------- */

static void gathers_launches_by_kernel_block_and_grid(void **state)
{
	struct rfl_capture_builder *b = builder("GA100", false);
	struct rfl_captures captures;
	const struct rfl_capture *c;
	const struct rfl_range *r;

	(void)state;
	launch(b, "gemm", gemm);
	launch_of(b, RFL_RANGE_KERNEL, "gemm", "(2, 1, 1)", 1, gemm);
	launch(b, "gemm", gemm);
	launch_of(b, RFL_RANGE_KERNEL, "gemm", NULL, 1, gemm);
	c = finish(b, &captures);
	assert_string_equal(c->family, "ampere-100");
	assert_int_equal(c->nranges, 3);
	r = &c->ranges[0];
	assert_string_equal(r->name, "gemm");
	assert_string_equal(r->grid, "(1, 1, 1)");
	assert_null(c->ranges[2].grid);
	assert_int_equal(r->launches, 2);
	assert_amount(&r->amount[RFL_QUANTITY_TIME], 1, RFL_VALID, 2, NULL);
	assert_amount(&r->amount[RFL_QUANTITY_FLOPS_FP32], 2000, RFL_VALID, 2, NULL);
	assert_amount(&r->amount[RFL_QUANTITY_DRAM], 200, RFL_VALID, 2, NULL);
	assert_string_equal(r->amount[RFL_QUANTITY_DRAM].rule,
			    "dram_read_bytes + dram_write_bytes");
	assert_string_equal(r->amount[RFL_QUANTITY_TIME].rule, "gpu__time_duration.sum");
	assert_close(rfl_amounts_ai(r->amount), 10, 0);
	assert_amount(&c->total[RFL_QUANTITY_TIME], 2, RFL_VALID, 4, NULL);
	assert_amount(&c->total[RFL_QUANTITY_FLOPS_FP32], 4000, RFL_VALID, 4, NULL);
	assert_int_equal(c->total_kind, RFL_RANGE_KERNEL);
	assert_close(rfl_capture_coverage(c, RFL_QUANTITY_FLOPS), 1, 0);
	rfl_captures_fini(&captures);
}

/* Metrics over launches: by the suffix of the name. */
static void rolls_metrics_up_by_their_suffix(void **state)
{
	static const struct value one[] = {
		{ "sm__cycles_elapsed.max", 10 },
		{ "sm__inst_executed.sum", 7 },
		{ "x__y.min", 3 },
		{ "x__y.avg", 10 },
		{ "x__y.sum.per_second", 100 },
		{ NULL, 0 },
	};
	static const struct value two[] = {
		{ "sm__cycles_elapsed.max", 30 },
		{ "sm__inst_executed.sum", 5 },
		{ "x__y.min", 4 },
		{ "x__y.avg", 40 },
		{ "x__y.sum.per_second", 400 },
		{ NULL, 0 },
	};
	static const struct {
		const char *name;
		enum rfl_rollup rollup;
		double value;
	} expected[] = {
		{ "sm__cycles_elapsed.max", RFL_ROLLUP_MAX, 30 },
		{ "sm__inst_executed.sum", RFL_ROLLUP_SUM, 12 },
		{ "x__y.min", RFL_ROLLUP_MIN, 3 },
		{ "x__y.avg", RFL_ROLLUP_MEAN, 30 }, /* the second stands for two launches */
		{ "x__y.sum.per_second", RFL_ROLLUP_MEAN, 300 },
	};
	struct rfl_capture_builder *b = builder("any", true);
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	launch(b, "k", one);
	launch_of(b, RFL_RANGE_KERNEL, "k", "(1, 1, 1)", 2, two);
	c = finish(b, &captures);
	assert_int_equal(c->ranges[0].nmetrics, RFL_ARRAY_LEN(expected));
	for (size_t i = 0; i < RFL_ARRAY_LEN(expected); i++) {
		const struct rfl_metric *m = &c->ranges[0].metrics[i];

		assert_string_equal(m->name, expected[i].name);
		assert_int_equal(m->rollup, expected[i].rollup);
		assert_close(m->value, expected[i].value, 0);
		assert_int_equal(m->launches, 3);
	}
	/* cycles of launches add up, though the metric's own rollup is the largest */
	assert_amount(&c->total[RFL_QUANTITY_CYCLES], 40, RFL_VALID, 3, NULL);
	assert_int_equal(c->unused_metrics, 0);
	rfl_captures_fini(&captures);
}

static void metrics_that_no_formula_names_are_counted(void **state)
{
	struct rfl_capture_builder *b = builder(NULL, false);
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	assert_int_equal(rfl_capture_metric_id(b, "launch__grid_size", 17, ""), -1);
	assert_int_equal(rfl_capture_metric_id(b, "launch__grid_size", 17, NULL), -1);
	assert_int_equal(rfl_capture_metric_id(b, "Memory Throughput", 17, NULL), -1);
	/* of those with this name, only the one in bytes per second is used by a formula */
	assert_int_equal(rfl_capture_metric_id(b, "Memory Throughput", 17, "%"), -1);
	assert_true(rfl_capture_metric_id(b, "Memory Throughput", 17, "byte/s") >= 0);
	c = finish(b, &captures);
	assert_int_equal(c->unused_metrics, 3);
	assert_string_equal(c->family, "any");
	assert_int_equal(c->nranges, 0);
	assert_string_equal(c->total[RFL_QUANTITY_TIME].reason,
			    "the capture has no kernels or ranges");
	rfl_captures_fini(&captures);
}

static void a_metric_twice_is_told(void **state)
{
	struct rfl_capture_builder *b = builder(NULL, false);
	struct rfl_captures captures;
	int id = rfl_capture_metric_id(b, "Duration", 8, "s");

	(void)state;
	rfl_capture_begin(b, RFL_RANGE_KERNEL, "k", NULL, NULL);
	assert_int_equal(rfl_capture_metric(b, id, NAN, RFL_VALID, -1, "n/a"), RFL_GIVEN_NEW);
	assert_int_equal(rfl_capture_metric(b, id, 2, RFL_VALID, -1, NULL), RFL_GIVEN_NEW);
	assert_int_equal(rfl_capture_metric(b, id, 2, RFL_VALID, -1, NULL), RFL_GIVEN_AGAIN);
	assert_int_equal(rfl_capture_metric(b, id, NAN, RFL_VALID, -1, NULL), RFL_GIVEN_AGAIN);
	assert_int_equal(rfl_capture_metric(b, id, 3, RFL_VALID, -1, NULL), RFL_GIVEN_DIFFERS);
	/* a range without launches leaves nothing */
	rfl_capture_begin(b, RFL_RANGE_KERNEL, "other", NULL, NULL);
	rfl_capture_launches(b, 0);
	assert_close(finish(b, &captures)->total[RFL_QUANTITY_TIME].value, 2, 0);
	assert_int_equal(captures.captures[0]->nranges, 1);
	rfl_captures_fini(&captures);
}

static void the_chip_is_told_before_the_metrics(void **state)
{
	struct rfl_capture_builder *b = builder(NULL, false);
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	rfl_capture_chip(b, "GX999", "a device of tomorrow");
	rfl_capture_chip(b, "GH100", NULL);
	launch(b, "gemm", gemm);
	rfl_capture_chip(b, "GA100", "another"); /* too late */
	c = finish(b, &captures);
	assert_string_equal(c->family, "hopper");
	assert_string_equal(c->chip, "GH100");
	assert_string_equal(c->device, "a device of tomorrow");
	rfl_captures_fini(&captures);
}

/* --- what is missing ------------------------------------------------------------------------- */

static void what_some_launches_lack_is_a_lower_bound(void **state)
{
	static const struct value no_ffma[] = {
		{ "gpu__time_duration.sum", 0.5 },
		{ "dram__bytes.sum", 100 },
		{ SASS("fadd"), 100 },
		{ SASS("fmul"), 100 },
		{ SASS("ffma"), NAN },
		{ NULL, 0 },
	};
	struct rfl_capture_builder *b = builder("GA100", false);
	struct rfl_captures captures;
	const struct rfl_capture *c;
	const struct rfl_metric *m;

	(void)state;
	launch(b, "gemm", gemm);
	launch(b, "gemm", gemm);
	launch(b, "gemm", no_ffma);
	launch(b, "other", no_ffma);
	c = finish(b, &captures);
	assert_amount(&c->ranges[0].amount[RFL_QUANTITY_FLOPS_FP32], 2000, RFL_VALID_PARTIAL, 2,
		      "a lower bound: known for 2 of 3 launches");
	assert_amount(&c->ranges[1].amount[RFL_QUANTITY_FLOPS_FP32], NAN, RFL_VALID_UNAVAILABLE, 0,
		      SASS("ffma") ": printed as n/a");
	assert_amount(&c->total[RFL_QUANTITY_FLOPS_FP32], 2000, RFL_VALID_PARTIAL, 2,
		      "a lower bound: known for 2 of 4 launches; for others: " SASS(
			      "ffma") ": printed as n/a");
	assert_amount(&c->total[RFL_QUANTITY_DRAM], 400, RFL_VALID, 4, NULL);
	/* the FLOPs of two launches over the bytes of four are no intensity */
	assert_true(isnan(rfl_amounts_ai(c->total)));
	assert_close(rfl_capture_coverage(c, RFL_QUANTITY_FLOPS), 0.5, 1e-15);
	m = &c->ranges[0].metrics[5];
	assert_string_equal(m->name, SASS("ffma"));
	assert_int_equal(m->validity, RFL_VALID_PARTIAL);
	assert_int_equal(m->launches, 2);
	assert_string_equal(m->reason, "covers 2 of 3 launches: printed as n/a");
	rfl_captures_fini(&captures);
}

static void nothing_counted_is_unavailable_and_never_zero(void **state)
{
	static const struct value time_only[] = { { "Duration", 0.25 }, { NULL, 0 } };
	struct rfl_capture_builder *b = builder("any", false);
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	launch(b, "copy", time_only);
	c = finish(b, &captures);
	assert_amount(&c->total[RFL_QUANTITY_TIME], 0.25, RFL_VALID, 1, NULL);
	assert_amount(&c->total[RFL_QUANTITY_FLOPS], NAN, RFL_VALID_UNAVAILABLE, 0,
		      "none of its parts is known");
	assert_true(isnan(c->total[RFL_QUANTITY_DRAM].value));
	assert_close(rfl_capture_coverage(c, RFL_QUANTITY_FLOPS), 0, 0);
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		assert_int_equal(isnan(c->total[q].value),
				 c->total[q].validity == RFL_VALID_UNAVAILABLE &&
					 c->total[q].reason != NULL);
	rfl_captures_fini(&captures);
}

/* Multiply-adds alone bound FP32 and the sum from below, and 0 of them says nothing; their launches
 * count, so that the sum over all is one of the same launches as the bytes. */
static void a_lower_bound_of_0_says_nothing(void **state)
{
	static const struct value some[] = { { SASS("ffma"), 100 },
					     { "dram__bytes.sum", 50 },
					     { NULL, 0 } };
	static const struct value none[] = { { SASS("ffma"), 0 },
					     { "dram__bytes.sum", 30 },
					     { NULL, 0 } };
	static const char *const fma =
		"fused multiply-adds only: additions and multiplications were not counted";
	struct rfl_capture_builder *b = builder("GA102", false);
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	launch(b, "some", some);
	launch(b, "none", none);
	c = finish(b, &captures);
	assert_amount(&c->total[RFL_QUANTITY_FLOPS_FP32], 200, RFL_VALID_PARTIAL, 2, fma);
	assert_int_equal(c->total[RFL_QUANTITY_FLOPS].validity, RFL_VALID_PARTIAL);
	assert_non_null(strstr(c->total[RFL_QUANTITY_FLOPS].reason, fma));
	assert_close(rfl_amounts_ai(c->total), 200 / 80.0, 0);
	assert_true(isnan(c->ranges[1].amount[RFL_QUANTITY_FLOPS_FP32].value));
	assert_non_null(strstr(c->ranges[1].amount[RFL_QUANTITY_FLOPS_FP32].reason, fma));
	assert_true(isnan(c->ranges[1].amount[RFL_QUANTITY_FLOPS].value));
	rfl_captures_fini(&captures);

	b = builder("GA102", false);
	launch(b, "none", none);
	c = finish(b, &captures);
	assert_true(isnan(c->total[RFL_QUANTITY_FLOPS].value));
	assert_true(isnan(rfl_amounts_ai(c->total)));
	rfl_captures_fini(&captures);
}

/* What is made of an estimate is one. */
static void an_estimate_is_inherited(void **state)
{
	static const struct value values[] = {
		{ "Elapsed Cycles", 1000 },
		{ "SM Frequency", 1e9 },
		{ "dram__bytes_read.sum.per_second", 2e6 },
		{ "dram__bytes_write.sum.per_second", 1e6 },
		{ SASS("fadd"), 1 },
		{ SASS("fmul"), 2 },
		{ SASS("ffma") ".per_cycle_elapsed", 2 },
		{ SASS("fadd") ".per_cycle_elapsed", 0 },
		{ SASS("fmul") ".per_cycle_elapsed", 0 },
		{ NULL, 0 },
	};
	struct rfl_capture_builder *b = builder("GA102", false);
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	launch(b, "k", values);
	c = finish(b, &captures);
	assert_close(c->total[RFL_QUANTITY_TIME].value, 1e-6, 1e-15);
	assert_int_equal(c->total[RFL_QUANTITY_TIME].validity, RFL_VALID_ESTIMATE);
	assert_close(c->total[RFL_QUANTITY_DRAM].value, 3, 1e-15);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM_READ].validity, RFL_VALID_ESTIMATE);
	assert_int_equal(c->total[RFL_QUANTITY_DRAM].validity, RFL_VALID_ESTIMATE);
	assert_close(c->total[RFL_QUANTITY_FLOPS].value, 4000, 0);
	assert_int_equal(c->total[RFL_QUANTITY_FLOPS].validity, RFL_VALID_ESTIMATE);
	rfl_captures_fini(&captures);
}

/* One count of all FLOPs is not a sum of parts: none of them is missing in it. */
static void a_total_that_was_counted_lacks_nothing(void **state)
{
	static const struct value values[] = { { "fp_ret_sse_avx_ops.all", 1000 }, { NULL, 0 } };
	struct rfl_capture_builder *b = builder("cpu", false);
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	launch(b, "process", values);
	c = finish(b, &captures);
	assert_amount(&c->total[RFL_QUANTITY_FLOPS], 1000, RFL_VALID, 1, "all precisions together");
	assert_string_equal(c->total[RFL_QUANTITY_FLOPS].rule, "fp_ret_sse_avx_ops.all");
	rfl_captures_fini(&captures);
}

/* A sum of FLOPs of which some ranges lack a part is too small; one of which no range has a part
 * says so. */
static void a_sum_of_flops_tells_what_it_lacks(void **state)
{
	static const struct value fp32[] = {
		{ SASS("fadd"), 1 },
		{ SASS("fmul"), 1 },
		{ SASS("ffma"), 4 },
		{ NULL, 0 },
	};
	static const struct value both[] = {
		{ SASS("fadd"), 1 }, { SASS("fmul"), 1 },
		{ SASS("ffma"), 4 }, { "sm__ops_path_tensor_src_tf32_dst_fp32.sum", 1000 },
		{ NULL, 0 },
	};
	struct rfl_captures captures;
	struct rfl_capture_builder *b = builder("GA100", false);
	const struct rfl_capture *c;

	(void)state;
	launch(b, "one", fp32);
	c = finish(b, &captures);
	assert_string_equal(c->total[RFL_QUANTITY_FLOPS].rule, "flops.fp32");
	assert_amount(&c->total[RFL_QUANTITY_FLOPS], 10, RFL_VALID, 1,
		      "without flops.fp16, flops.fp64, flops.tensor_fp16, flops.tensor_bf16, "
		      "flops.tensor_tf32, flops.tensor_fp64, which were not counted");
	rfl_captures_fini(&captures);

	b = builder("GA100", false);
	launch(b, "one", fp32);
	launch(b, "two", both);
	c = finish(b, &captures);
	assert_string_equal(c->total[RFL_QUANTITY_FLOPS].rule, "flops.fp32 + flops.tensor_tf32");
	assert_amount(&c->total[RFL_QUANTITY_FLOPS], 1020, RFL_VALID_PARTIAL, 2,
		      "a lower bound: one of its parts is unknown for some launches; without "
		      "flops.fp16, flops.fp64, flops.tensor_fp16, flops.tensor_bf16, "
		      "flops.tensor_fp64, which were not counted");
	rfl_captures_fini(&captures);

	b = builder("GA100", false);
	launch(b, "one", fp32);
	launch(b, "one", both);
	c = finish(b, &captures);
	assert_int_equal(c->ranges[0].amount[RFL_QUANTITY_FLOPS].validity, RFL_VALID_PARTIAL);
	rfl_captures_fini(&captures);
}

/* As validity goes from metrics into what is made of them, the worst with its reason. */
static void doubts_are_handed_on(void **state)
{
	struct rfl_capture_builder *b = builder("GA100", false);
	struct rfl_captures captures;
	const struct rfl_capture *c;
	static const struct {
		const char *name;
		enum rfl_validity validity;
		const char *reason;
	} metrics[] = {
		{ "dram__bytes_read.sum", RFL_VALID_SCALED, "counted in 60 % of the time" },
		{ "dram__bytes_write.sum", RFL_VALID_ESTIMATE, "rounded to Mbyte" },
		{ "gpu__time_duration.sum", RFL_VALID, NULL },
	};

	(void)state;
	rfl_capture_begin(b, RFL_RANGE_STEP, "step", NULL, NULL);
	for (size_t i = 0; i < RFL_ARRAY_LEN(metrics); i++)
		(void)rfl_capture_metric(
			b, rfl_capture_metric_id(b, metrics[i].name, strlen(metrics[i].name), ""),
			8, metrics[i].validity, 1, metrics[i].reason);
	c = finish(b, &captures);
	assert_int_equal(c->total_kind, RFL_RANGE_STEP);
	assert_amount(&c->total[RFL_QUANTITY_DRAM_READ], 8, RFL_VALID_SCALED, 1,
		      "counted in 60 % of the time");
	assert_amount(&c->total[RFL_QUANTITY_DRAM], 16, RFL_VALID_ESTIMATE, 1, "rounded to Mbyte");
	assert_amount(&c->total[RFL_QUANTITY_TIME], 8, RFL_VALID, 1, NULL);
	assert_int_equal(c->ranges[0].metrics[0].pass, 1);
	rfl_captures_fini(&captures);
}

/* How well a value is known hides in no total how much of it is known, nor the other way about. */
static void a_part_is_a_bound_however_well_it_is_known(void **state)
{
	static const struct {
		enum rfl_validity has, expected;
		const char *reason;
	} cases[] = {
		{ RFL_VALID, RFL_VALID_PARTIAL, NULL },
		{ RFL_VALID_SCALED, RFL_VALID_PARTIAL, "scaled by perf" },
		{ RFL_VALID_ESTIMATE, RFL_VALID_PARTIAL, "rounded to Mbyte" },
		{ RFL_VALID_PARTIAL, RFL_VALID_PARTIAL, "P-cores only" },
		{ RFL_VALID_MARKED, RFL_VALID_MARKED, "the self-test was off" },
	};
	static const enum rfl_quantity of[] = { RFL_QUANTITY_CYCLES, RFL_QUANTITY_DRAM_READ };
	static const char *const metrics[] = { "sm__cycles_elapsed.max", "dram__bytes_read.sum" };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		for (int same = 0; same < 2; same++) { /* range or two ranges */
			struct rfl_capture_builder *b = builder("GA100", false);
			struct rfl_captures captures;
			const struct rfl_capture *c;
			char reason[200];

			for (int n = 0; n < 2; n++) {
				const char *name = n == 0 || same ? "a" : "b";

				rfl_capture_begin(b, RFL_RANGE_KERNEL, name, NULL, NULL);
				for (size_t m = 0; m < RFL_ARRAY_LEN(metrics); m++)
					(void)rfl_capture_metric(
						b,
						rfl_capture_metric_id(b, metrics[m],
								      strlen(metrics[m]), ""),
						n == 0 ? 8 : NAN,
						n == 0 ? cases[i].has : RFL_VALID_UNAVAILABLE, -1,
						n == 0 ? cases[i].reason : "n/a");
			}
			c = finish(b, &captures);
			assert_int_equal(rfl_capture_launches_of_total(c), 2);
			for (size_t q = 0; q < RFL_ARRAY_LEN(of); q++) {
				(void)snprintf(reason, sizeof(reason),
					       "%s%sa lower bound: known for 1 of 2 launches%s",
					       cases[i].reason ? cases[i].reason : "",
					       cases[i].reason ? "; " : "",
					       same ? "" : "; for others: n/a");
				assert_amount(&c->total[of[q]], 8, cases[i].expected, 1, reason);
			}
			if (same) {
				assert_int_equal(c->ranges[0].metrics[0].validity,
						 cases[i].expected);
				assert_non_null(strstr(c->ranges[0].metrics[0].reason,
						       "covers 1 of 2 launches"));
			}
			assert_close(rfl_capture_coverage(c, RFL_QUANTITY_CYCLES), NAN, 0);
			rfl_captures_fini(&captures);
		}
}

/* --- totals ---------------------------------------------------------------------------------- */

/* Phases hold the kernels; idle and self-test are in no total. */
static void totals_are_of_the_widest_ranges(void **state)
{
	static const struct value time_only[] = { { "gpu__time_duration.sum", 0.1 }, { NULL, 0 } };
	struct rfl_capture_builder *b = builder("GA100", false);
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	launch(b, "gemm", time_only);
	launch_of(b, RFL_RANGE_IDLE, "idle", NULL, 1, gemm);
	launch_of(b, RFL_RANGE_SELF_TEST, "copy", NULL, 1, gemm);
	launch_of(b, RFL_RANGE_PHASE, "fwd", NULL, 1, gemm);
	launch_of(b, RFL_RANGE_PHASE, "bwd", NULL, 1, gemm);
	rfl_capture_steps(b, 1, 2);
	c = finish(b, &captures);
	assert_int_equal(c->total_kind, RFL_RANGE_PHASE);
	assert_close(c->total[RFL_QUANTITY_TIME].value, 1, 0);
	assert_close(c->total[RFL_QUANTITY_DRAM].value, 200, 0);
	assert_int_equal(c->steps, 1);
	assert_int_equal(c->passes, 2);
	rfl_captures_fini(&captures);
}

static void notes_are_kept_once(void **state)
{
	struct rfl_capture_builder *b = builder(NULL, false);
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	rfl_capture_note(b, "kernel %d failed", 3);
	rfl_capture_note(b, "kernel %d failed", 4);
	rfl_capture_note(b, "kernel %d failed", 3);
	rfl_capture_left_out(b, 5);
	c = finish(b, &captures);
	assert_int_equal(c->nnotes, 2);
	assert_string_equal(c->notes[1], "kernel 4 failed");
	assert_int_equal(c->rows_left_out, 5);
	rfl_captures_fini(&captures);
}

/* --- HFMA2.MMA ------------------------------------------------------------------------------- */

/* As many HFMA as 32 x tensor instructions: registers are moved, nothing is computed. */
static void moves_by_hfma2_are_left_out(void **state)
{
	static const struct value trap[] = {
		{ "dram__bytes.sum", 10 },
		{ SASS("fadd"), 0 },
		{ SASS("fmul"), 0 },
		{ SASS("ffma"), 50 },
		{ SASS("hadd"), 0 },
		{ SASS("hmul"), 0 },
		{ SASS("hfma"), 3200 },
		{ "smsp__inst_executed_pipe_tensor.sum", 100 },
		{ NULL, 0 },
	};
	static const struct value half[] = {
		{ "dram__bytes.sum", 10 },
		{ SASS("fadd"), 0 },
		{ SASS("fmul"), 0 },
		{ SASS("ffma"), 50 },
		{ SASS("hadd"), 0 },
		{ SASS("hmul"), 0 },
		{ SASS("hfma"), 3201 },
		{ "smsp__inst_executed_pipe_tensor.sum", 100 },
		{ NULL, 0 },
	};
	static const char why[] = "looks like HFMA2.MMA, which moves registers: as many "
				  "HFMA threads as 32 x tensor instructions";
	struct rfl_capture_builder *b = builder("any", false);
	struct rfl_captures captures;
	const struct rfl_capture *c;
	char text[512];

	(void)state;
	launch(b, "gemm", trap);
	launch(b, "gemm", trap);
	launch(b, "half", half);
	c = finish(b, &captures);
	(void)snprintf(text, sizeof(text), "25,600 FLOP omitted: %s", why);
	assert_amount(&c->ranges[0].amount[RFL_QUANTITY_FLOPS_FP16], NAN, RFL_VALID_UNAVAILABLE, 0,
		      text);
	assert_close(c->ranges[0].amount[RFL_QUANTITY_FLOPS].value, 200, 0);
	assert_close(rfl_amounts_ai(c->ranges[0].amount), 10, 0);
	assert_close(c->ranges[1].amount[RFL_QUANTITY_FLOPS_FP16].value, 4 * 3201, 0);
	assert_close(c->total[RFL_QUANTITY_FLOPS].value, 200 + 100 + 4 * 3201, 0);
	/* nothing is missing: the sum is no lower bound */
	assert_int_equal(c->total[RFL_QUANTITY_FLOPS].validity, RFL_VALID);
	assert_int_equal(c->nnotes, 1);
	(void)snprintf(text, sizeof(text), "flops.fp16: skipped in 1 of 2 ranges, 25,600 FLOP: %s",
		       why);
	assert_string_equal(c->notes[0], text);
	rfl_captures_fini(&captures);
}

/* Where the moves were counted by themselves they are taken out, and no trap is looked for. */
static void moves_that_were_counted_are_subtracted(void **state)
{
	static const struct value counted[] = {
		{ SASS("hadd"), 10 },
		{ SASS("hmul"), 0 },
		{ SASS("hfma"), 3200 },
		{ "sm__inst_executed_pipe_tensor.sum", 100 },
		{ "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum", 100 },
		{ NULL, 0 },
	};
	struct rfl_capture_builder *b = builder("GH100", false);
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	launch(b, "k", counted);
	c = finish(b, &captures);
	assert_close(c->total[RFL_QUANTITY_FLOPS_FP16].value, 20, 0);
	assert_non_null(strstr(c->total[RFL_QUANTITY_FLOPS_FP16].rule,
			       " - 128 x sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"));
	assert_int_equal(c->nnotes, 0);
	rfl_captures_fini(&captures);
}

/* --- size ------------------------------------------------------------------------------------ */

/* Many kernels, many launches: each is found again, and none is mixed up with another. */
static void finds_each_of_many_kernels_again(void **state)
{
	struct rfl_capture_builder *b = builder("any", false);
	struct rfl_captures captures;
	const struct rfl_capture *c;
	char name[32];

	(void)state;
	for (int round = 0; round < 3; round++)
		for (int k = 0; k < 1000; k++) {
			const struct value values[] = { { "Duration", k }, { NULL, 0 } };

			(void)snprintf(name, sizeof(name), "kernel %d", k);
			launch(b, name, values);
		}
	c = finish(b, &captures);
	assert_int_equal(c->nranges, 1000);
	for (int k = 0; k < 1000; k++) {
		(void)snprintf(name, sizeof(name), "kernel %d", k);
		assert_string_equal(c->ranges[k].name, name);
		assert_int_equal(c->ranges[k].launches, 3);
		assert_close(c->ranges[k].amount[RFL_QUANTITY_TIME].value, 3.0 * k, 0);
	}
	rfl_captures_fini(&captures);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gathers_launches_by_kernel_block_and_grid),
		cmocka_unit_test(rolls_metrics_up_by_their_suffix),
		cmocka_unit_test(metrics_that_no_formula_names_are_counted),
		cmocka_unit_test(a_metric_twice_is_told),
		cmocka_unit_test(the_chip_is_told_before_the_metrics),
		cmocka_unit_test(what_some_launches_lack_is_a_lower_bound),
		cmocka_unit_test(nothing_counted_is_unavailable_and_never_zero),
		cmocka_unit_test(a_sum_of_flops_tells_what_it_lacks),
		cmocka_unit_test(a_lower_bound_of_0_says_nothing),
		cmocka_unit_test(an_estimate_is_inherited),
		cmocka_unit_test(a_total_that_was_counted_lacks_nothing),
		cmocka_unit_test(doubts_are_handed_on),
		cmocka_unit_test(a_part_is_a_bound_however_well_it_is_known),
		cmocka_unit_test(totals_are_of_the_widest_ranges),
		cmocka_unit_test(notes_are_kept_once),
		cmocka_unit_test(moves_by_hfma2_are_left_out),
		cmocka_unit_test(moves_that_were_counted_are_subtracted),
		cmocka_unit_test(finds_each_of_many_kernels_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
