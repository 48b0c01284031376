/* Totals over several captures: what is known of all of them, and why the rest is not. */
#include <math.h>

#include "tests/unit/rfl_test.h"

#include "profile/capture.h"

#define CAPTURES 2

/* Captures of one kernel each, of which nothing is known. */
struct rig {
	struct rfl_range ranges[CAPTURES];
	struct rfl_capture captures[CAPTURES];
	const struct rfl_capture *all[CAPTURES];
};

static struct rfl_amount *flops_of(struct rig *r, size_t i)
{
	return &r->captures[i].total[RFL_QUANTITY_FLOPS];
}

static void set_up(struct rig *r)
{
	*r = (struct rig){ .all = { NULL } };
	for (size_t i = 0; i < CAPTURES; i++) {
		r->ranges[i].kind = RFL_RANGE_KERNEL;
		r->ranges[i].launches = 10;
		r->captures[i].total_kind = RFL_RANGE_KERNEL;
		for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
			r->captures[i].total[q] = (struct rfl_amount){
				.value = NAN,
				.validity = RFL_VALID_UNAVAILABLE,
				.reason = i == 0 ? "first" : "second",
			};
	}
}

static struct rfl_amount flops_of_all(struct rig *r)
{
	struct rfl_captures captures = { .captures = r->all, .n = CAPTURES };
	struct rfl_amounts_sum sum;

	for (size_t i = 0; i < CAPTURES; i++) {
		r->captures[i].ranges = &r->ranges[i];
		r->captures[i].nranges = 1;
		r->all[i] = &r->captures[i];
	}
	rfl_captures_total(&captures, &sum);
	assert_int_equal(sum.launches, 20);
	return sum.amount[RFL_QUANTITY_FLOPS];
}

static void what_none_knows_has_the_first_reason(void **state)
{
	struct rig r;
	struct rfl_amount sum;

	(void)state;
	set_up(&r);
	sum = flops_of_all(&r);
	assert_true(isnan(sum.value));
	assert_int_equal(sum.validity, RFL_VALID_UNAVAILABLE);
	assert_string_equal(sum.reason, "first");
}

static void what_one_knows_is_a_lower_bound(void **state)
{
	(void)state;
	for (size_t i = 0; i < CAPTURES; i++) {
		struct rig r;
		struct rfl_amount sum;

		set_up(&r);
		*flops_of(&r, i) = (struct rfl_amount){ .value = 5, .launches = 10 };
		sum = flops_of_all(&r);
		assert_close(sum.value, 5, 0);
		assert_int_equal(sum.validity, RFL_VALID_PARTIAL);
		assert_string_equal(sum.reason, "a lower bound: unknown for some launches");
	}
}

static void what_all_know_is_as_good_as_the_worst(void **state)
{
	struct rig r;
	struct rfl_amount sum;

	(void)state;
	set_up(&r);
	*flops_of(&r, 0) = (struct rfl_amount){ .value = 5, .launches = 10 };
	*flops_of(&r, 1) = (struct rfl_amount){ .value = 7, .launches = 10 };
	sum = flops_of_all(&r);
	assert_close(sum.value, 12, 0);
	assert_int_equal(sum.launches, 20);
	assert_int_equal(sum.validity, RFL_VALID);
	flops_of(&r, 1)->validity = RFL_VALID_SCALED;
	flops_of(&r, 1)->reason = "scaled";
	sum = flops_of_all(&r);
	assert_int_equal(sum.validity, RFL_VALID_SCALED);
	assert_string_equal(sum.reason, "scaled");
}

/* One of two captures knows a scaled part of its launches: the reason says what the other lacks
 * too. */
static void a_scaled_part_is_a_lower_bound(void **state)
{
	static const enum rfl_validity cases[] = { RFL_VALID_SCALED, RFL_VALID_ESTIMATE };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rig r;

		set_up(&r);
		*flops_of(&r, 0) = (struct rfl_amount){
			.value = 5, .launches = 10, .validity = cases[i], .reason = "scaled"
		};
		assert_int_equal(flops_of_all(&r).validity, RFL_VALID_PARTIAL);
		r.ranges[0].amount[RFL_QUANTITY_FLOPS] = *flops_of(&r, 0);
		r.ranges[0].amount[RFL_QUANTITY_FLOPS].launches = 4;
		assert_close(rfl_range_share(&r.ranges[0], RFL_QUANTITY_FLOPS), 0.4, 1e-15);
	}
}

/* Of a GPU instructions are those of all SMs, and cycles those of one. */
static void processors_have_instructions_per_cycle(void **state)
{
	static const struct {
		const char *source;
		double cycles, ipc;
		int64_t launches;
		enum rfl_validity validity;
	} cases[] = {
		{ "perf", 2, 1.5, 4, RFL_VALID },         { "likwid", 2, 1.5, 4, RFL_VALID_SCALED },
		{ "time", 0, NAN, 4, RFL_VALID },         { "perf", 2, NAN, 3, RFL_VALID },
		{ "perf", 2, NAN, 4, RFL_VALID_PARTIAL }, { "cupti", 2, NAN, 4, RFL_VALID },
		{ "ncu", 2, NAN, 4, RFL_VALID },          { "nvprof", 2, NAN, 4, RFL_VALID },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_capture c = { .source = cases[i].source };

		c.total[RFL_QUANTITY_INSTRUCTIONS] =
			(struct rfl_amount){ .value = 3, .launches = 4 };
		c.total[RFL_QUANTITY_CYCLES] = (struct rfl_amount){ .value = cases[i].cycles,
								    .launches = cases[i].launches,
								    .validity = cases[i].validity };
		assert_close(rfl_capture_ipc(&c), cases[i].ipc, 1e-15);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_none_knows_has_the_first_reason),
		cmocka_unit_test(what_one_knows_is_a_lower_bound),
		cmocka_unit_test(what_all_know_is_as_good_as_the_worst),
		cmocka_unit_test(a_scaled_part_is_a_lower_bound),
		cmocka_unit_test(processors_have_instructions_per_cycle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
