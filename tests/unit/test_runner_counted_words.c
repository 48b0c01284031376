/*
 * What a capture says in the ledger: the words of counters_status, FLOPs of a step that are whole
 * or not there, ratios of self-tests.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "runner/burst/counted.h"

#define ASKED_FOR "only some were requested: add core and flops to --counter-sets"

static const char *status_of(const struct rfl_capture *c, unsigned sets, const char *precision,
			     struct rfl_buf *text)
{
	const struct rfl_counted_asked wants = { sets, precision };

	rfl_buf_reset(text);
	rfl_counted_status(c, &wants, text);
	return rfl_buf_str(text);
}

static void the_status_says_what_lacks(void **state)
{
	const struct rfl_amount absent = { (double)NAN, RFL_VALID_UNAVAILABLE, 0, NULL, "rc 35" };
	const struct rfl_amount other = { (double)NAN, RFL_VALID_UNAVAILABLE, 0, NULL, "no IMC" };
	const struct rfl_amount some = { 5, RFL_VALID_PARTIAL, 1, NULL, "2 of 3 ranges" };
	const struct rfl_amount off = { 5, RFL_VALID_MARKED, 1, NULL, "the self-test was off" };
	const struct rfl_amount rough = { 5, RFL_VALID_ESTIMATE, 1, NULL, "misses x 64" };
	const struct rfl_amount good = { 5, RFL_VALID, 1, NULL, NULL };
	const struct {
		struct rfl_amount flops, dram, cycles;
		unsigned sets;
		const char *expected;
	} cases[] = {
		{ good, good, good, 0, "ok" },
		{ good, good, absent, RFL_SET_CORE | RFL_SET_FLOPS, "ok" },
		{ absent, absent, absent, 0, "unavailable: rc 35" },
		{ absent, absent, absent, RFL_SET_CORE | RFL_SET_KERNELS, "unavailable: rc 35" },
		{ absent, absent, absent, RFL_SET_KERNELS, "ok" },
		{ absent, absent, good, 0, "partial: flops.total: rc 35; dram_bytes: the same" },
		{ good, other, good, 0, "partial: dram_bytes: no IMC" },
		{ absent, other, good, 0, "partial: flops.total: rc 35; dram_bytes: no IMC" },
		{ good, other, good, RFL_SET_FLOPS, "ok" }, /* not asked for */
		{ some, good, good, 0, "partial: flops.total: 2 of 3 ranges" },
		{ some, other, good, 0, "partial: dram_bytes: no IMC; flops.total: 2 of 3 ranges" },
		{ good, rough, good, 0, "partial: dram_bytes: misses x 64" },
		{ off, good, good, 0, "marked: flops.total: the self-test was off" },
		{ off, absent, good, 0, "partial: dram_bytes: rc 35" },
	};
	struct rfl_buf text;

	(void)state;
	rfl_buf_init(&text, 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_capture c = { .source = "fake" };

		for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
			c.total[q] = absent;
		c.total[RFL_QUANTITY_FLOPS_FP32] = c.total[RFL_QUANTITY_FLOPS] = cases[i].flops;
		c.total[RFL_QUANTITY_DRAM] = cases[i].dram;
		c.total[RFL_QUANTITY_CYCLES] = cases[i].cycles;
		assert_string_equal(status_of(&c, cases[i].sets, "fp32", &text), cases[i].expected);
	}
	rfl_buf_fini(&text);
}

/* What was estimated is in counters.csv, with its caveat; the row has what was counted. */
static void an_estimate_is_no_count(void **state)
{
	const struct rfl_counted_asked wants = { 0, "fp32" };
	struct rfl_capture c = { .source = "fake", .steps = 2 };

	(void)state;
	c.total[RFL_QUANTITY_DRAM] = (struct rfl_amount){ .value = 10 };
	assert_close(rfl_counted_per_step(&c, &wants, RFL_QUANTITY_DRAM), 5, 0);
	c.total[RFL_QUANTITY_DRAM].validity = RFL_VALID_ESTIMATE;
	assert_true(isnan(rfl_counted_per_step(&c, &wants, RFL_QUANTITY_DRAM)));
}

/* A count that the self-test doubts and that one of two phases lacks does not count a step. */
static void a_marked_part_is_no_count(void **state)
{
	static const struct rfl_range phases[] = { { .kind = RFL_RANGE_PHASE, .launches = 1 },
						   { .kind = RFL_RANGE_PHASE, .launches = 1 } };
	const struct rfl_counted_asked wants = { 0, "fp32" };
	struct rfl_capture c = { .source = "fake",
				 .steps = 2,
				 .ranges = phases,
				 .nranges = 2,
				 .total_kind = RFL_RANGE_PHASE };

	(void)state;
	c.total[RFL_QUANTITY_DRAM] =
		(struct rfl_amount){ .value = 10, .launches = 2, .validity = RFL_VALID_MARKED };
	assert_close(rfl_counted_per_step(&c, &wants, RFL_QUANTITY_DRAM), 5, 0);
	c.total[RFL_QUANTITY_DRAM].launches = 1;
	assert_true(isnan(rfl_counted_per_step(&c, &wants, RFL_QUANTITY_DRAM)));
}

/* The FLOPs of a GPU's step are those outside and inside the Tensor Cores: with one of the two they
 * are a lower bound, which is no count. */
static void half_of_the_flops_are_no_flops(void **state)
{
	static const struct {
		const char *precision;
		unsigned sets;
		double fp32, tf32;
		const char *expected;
		double per_step;
	} cases[] = {
		{ "fp32", RFL_SET_CORE | RFL_SET_FLOPS, 40, (double)NAN, "ok", 20 },
		{ "fp32", RFL_SET_FLOPS, 40, (double)NAN, "ok", 20 },
		{ "fp32", RFL_SET_CORE, (double)NAN, 0, "partial: flops.total: " ASKED_FOR,
		  (double)NAN },
		{ "fp32", RFL_SET_CORE | RFL_SET_FLOPS, (double)NAN, 7,
		  "partial: flops.total: no value", (double)NAN },
		{ "tf32", RFL_SET_CORE | RFL_SET_FLOPS, 40, 60, "ok", 50 },
		{ "tf32", RFL_SET_FLOPS, 40, (double)NAN, "partial: flops.total: " ASKED_FOR,
		  (double)NAN },
		{ "tf32", RFL_SET_CORE, (double)NAN, 60, "partial: flops.total: " ASKED_FOR,
		  (double)NAN },
		{ "amp", RFL_SET_CORE | RFL_SET_FLOPS, 40, 60, "partial: flops.total: no value",
		  (double)NAN },
		{ "fp32", 0, (double)NAN, 60, "ok", 30 }, /* a CPU has its own parts */
	};
	const struct rfl_amount absent = { (double)NAN, RFL_VALID_UNAVAILABLE, 0, NULL,
					   "no value" };
	const struct rfl_amount good = { 5, RFL_VALID, 1, NULL, NULL };
	struct rfl_buf text;

	(void)state;
	rfl_buf_init(&text, 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_counted_asked wants = { cases[i].sets, cases[i].precision };
		struct rfl_capture c = { .source = "fake", .steps = 2 };
		double flops;

		for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
			c.total[q] = absent;
		c.total[RFL_QUANTITY_DRAM] = good;
		if (!isnan(cases[i].fp32))
			c.total[RFL_QUANTITY_FLOPS_FP32] =
				(struct rfl_amount){ .value = cases[i].fp32, .launches = 1 };
		if (!isnan(cases[i].tf32))
			c.total[RFL_QUANTITY_FLOPS_TENSOR_TF32] =
				(struct rfl_amount){ .value = cases[i].tf32, .launches = 1 };
		c.total[RFL_QUANTITY_FLOPS] = (struct rfl_amount){
			.value = (isnan(cases[i].fp32) ? 0 : cases[i].fp32) +
				 (isnan(cases[i].tf32) ? 0 : cases[i].tf32),
			.launches = 1,
		};
		assert_string_equal(status_of(&c, wants.sets, wants.precision, &text),
				    cases[i].expected);
		flops = rfl_counted_per_step(&c, &wants, RFL_QUANTITY_FLOPS);
		if (isnan(cases[i].per_step))
			assert_true(isnan(flops));
		else
			assert_close(flops, cases[i].per_step, 0);
	}
	rfl_buf_fini(&text);
}

/* A refused set is nearer to the cause than what follows from it; one reason is said once. */
static void the_status_quotes_the_source(void **state)
{
	static const struct {
		double dram;
		struct rfl_refusal refusals[3];
		size_t n;
		const char *expected;
	} cases[] = {
		{ (double)NAN, { { "core", "rc 35" } }, 1, "unavailable: rc 35" },
		{ (double)NAN,
		  { { "core", "rc 35" }, { "flops", "rc 35" }, { "self-test", "rc 35" } },
		  3,
		  "unavailable: rc 35" },
		{ (double)NAN,
		  { { "core", "rc 35" }, { "flops", "rc 35" }, { "kernels", "rc 39" } },
		  3,
		  "unavailable: core, flops: rc 35; kernels: rc 39" },
		{ 5, { { "flops", "2 ranges dropped" } }, 1, "partial: flops: 2 ranges dropped" },
		{ 5, { { NULL, NULL } }, 0, "ok" },
		{ 5, { { "self-test", "no memory" } }, 1, "partial: self-test: no memory" },
		{ 5,
		  { { "links", "rc 39" }, { "kernels", "rc 39" } },
		  2,
		  "partial: links, kernels: rc 39" },
	};
	struct rfl_buf text;

	(void)state;
	rfl_buf_init(&text, 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const bool absent = isnan(cases[i].dram);
		const struct rfl_capture like = { .source = "fake",
						  .refusals = cases[i].refusals,
						  .nrefusals = cases[i].n };
		struct rfl_capture c = like;

		for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
			c.total[q] = (struct rfl_amount){
				.value = cases[i].dram,
				.validity = absent ? RFL_VALID_UNAVAILABLE : RFL_VALID,
				.reason = absent ? "not counted: ncu --metrics x" : NULL,
			};
		assert_string_equal(
			status_of(&c, RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_LINKS, "fp32", &text),
			cases[i].expected);
	}
	/* what follows from a refused set is not said again; what else lacks is */
	{
		const struct rfl_refusal flops = { "flops", "rc 35" };
		struct rfl_capture c = { .refusals = &flops, .nrefusals = 1 };

		for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
			c.total[q] = (struct rfl_amount){ .value = 5 };
		c.total[RFL_QUANTITY_FLOPS_FP32] = c.total[RFL_QUANTITY_FLOPS] =
			(struct rfl_amount){ .value = (double)NAN,
					     .validity = RFL_VALID_UNAVAILABLE,
					     .reason = "smsp__sass_x: rc 35" };
		assert_string_equal(status_of(&c, RFL_SET_CORE | RFL_SET_FLOPS, "fp32", &text),
				    "partial: flops: rc 35");
	}
	{
		const struct rfl_refusal kernels = { "kernels", "rc 39" };
		struct rfl_capture c = { .refusals = &kernels, .nrefusals = 1 };

		for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
			c.total[q] = (struct rfl_amount){ .value = 5 };
		c.total[RFL_QUANTITY_DRAM] = (struct rfl_amount){ .value = (double)NAN,
								  .validity = RFL_VALID_UNAVAILABLE,
								  .reason = "MIG" };
		assert_string_equal(status_of(&c, RFL_SET_CORE | RFL_SET_FLOPS, "fp32", &text),
				    "partial: kernels: rc 39; dram_bytes: MIG");
	}
	rfl_buf_fini(&text);
}

static void add(struct rfl_capture_builder *b, enum rfl_range_kind kind, const char *range,
		const char *metric, double value)
{
	int id;

	rfl_capture_begin(b, kind, range, NULL, NULL);
	id = rfl_capture_metric_id(b, metric, strlen(metric), "");
	assert_true(id >= 0);
	(void)rfl_capture_metric(b, id, value, isnan(value) ? RFL_VALID_UNAVAILABLE : RFL_VALID, 0,
				 NULL);
}

/* Of several self-tests the worst is kept; a step beside them is none. */
static void self_tests_become_ratios(void **state)
{
	const struct rfl_capture_spec spec = {
		.source = "fake",
		.formulas = "any",
		.all_metrics = true,
	};
	struct rfl_capture_builder *b = NULL;
	struct rfl_captures captures;
	const struct rfl_capture *c;

	(void)state;
	rfl_captures_init(&captures);
	b = rfl_capture_builder_new(&spec);
	add(b, RFL_RANGE_SELF_TEST, "copy", "selftest.dram_read_bytes.ratio", 1.001);
	add(b, RFL_RANGE_SELF_TEST, "copy 2", "selftest.dram_write_bytes.ratio", 0.99);
	add(b, RFL_RANGE_SELF_TEST, "copy 3", "selftest.dram_bytes.measured", 5);
	add(b, RFL_RANGE_SELF_TEST, "a", "selftest.flops.fp32.ratio", 0.95);
	add(b, RFL_RANGE_SELF_TEST, "b", "selftest.flops.tensor_tf32.ratio", 1.01);
	add(b, RFL_RANGE_SELF_TEST, "c", "selftest.flops.fp16.ratio", (double)NAN);
	add(b, RFL_RANGE_STEP, "step", "selftest.flops.fp64.ratio", 7);
	assert_int_equal(rfl_capture_finish(b, &captures, NULL), RFL_OK);
	c = captures.captures[0];
	assert_close(rfl_counted_self_test(c, "dram"), 0.99, 0);
	assert_close(rfl_counted_self_test(c, "flops"), 0.95, 0);
	assert_true(isnan(rfl_counted_self_test(c, "l2")));
	rfl_captures_fini(&captures);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_status_says_what_lacks),
		cmocka_unit_test(an_estimate_is_no_count),
		cmocka_unit_test(a_marked_part_is_no_count),
		cmocka_unit_test(half_of_the_flops_are_no_flops),
		cmocka_unit_test(the_status_quotes_the_source),
		cmocka_unit_test(self_tests_become_ratios),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
