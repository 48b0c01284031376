/*
 * Statistics of a window: against numpy's numbers, against hand-made windows, and how often each
 * flag is raised by noise alone.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/repeats/run_stats.h"

#define N 100

/* Knuth's 64-bit linear congruential generator: the same numbers everywhere, in [0, 1). */
static double uniform(uint64_t *x)
{
	*x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(*x >> 11) * 0x1p-53;
}

/* Sum of twelve: mean 0, standard deviation 1, near enough to normal. */
static double normal(uint64_t *x)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform(x);
	return sum;
}

static struct rfl_run_stats stats_of(const double *times, size_t n)
{
	struct rfl_run_stats s;

	s = rfl_run_stats_of(times, n);
	return s;
}

/* numpy 2 on the same numbers: mean, std(ddof=1), median, percentile, and the definitions of the
 * header written out with them. */
static void agrees_with_numpy(void **state)
{
	struct rfl_run_stats s;
	double x[N];
	uint64_t g = 7;

	(void)state;
	for (size_t i = 0; i < N; i++)
		x[i] = 100 + 4 * uniform(&g);
	x[40] = 160;
	x[70] = 90;
	s = stats_of(x, N);
	assert_close(s.time.mean, 102.38070590680512, 1e-14);
	assert_close(s.time.std, 6.051307012570255, 1e-13);
	assert_close(s.time.median, 101.86899989167705, 1e-15);
	assert_close(s.time.mad, 1.0148401385430859, 1e-13);
	assert_close(s.time.p10, 100.2764733547529, 1e-14);
	assert_close(s.time.p90, 103.62995306773091, 1e-14);
	assert_close(s.time.min, 90, 0);
	assert_close(s.time.max, 160, 0);
	assert_close(s.relative_iqr, 0.020180066022608363, 1e-12);
	assert_close(s.drift, 0.00390611850080691, 1e-11);
	assert_close(s.lag1, -0.018645332355300744, 1e-12);
	assert_int_equal(s.outliers, 2);
	assert_int_equal(s.cold_steps, 0);
}

static void small_windows_by_hand(void **state)
{
	const double one[] = { 4 }, two[] = { 1, 3 }, up[] = { 1, 2, 3, 4, 5, 6 };
	const double same[] = { 2, 2, 2, 2 }, swing[] = { 1, 3, 1, 3 };
	struct rfl_run_stats s = stats_of(one, 1);

	(void)state;
	assert_true(isnan(s.time.std) && isnan(s.drift) && isnan(s.lag1));
	assert_close(s.relative_iqr, 0, 0);
	s = stats_of(two, 2);
	assert_true(isnan(s.drift) && isnan(s.lag1));
	assert_close(s.relative_iqr, 0.5, 1e-15); /* (2.5 - 1.5) / 2 */
	s = stats_of(up, 6);
	assert_close(s.drift, 5.5 / 1.5 - 1, 1e-15);
	/* deviations -2.5 ... 2.5: neighbours 3.75+.75-.25+.75+3.75, squares 17.5 */
	assert_close(s.lag1, 8.75 / 17.5, 1e-15);
	s = stats_of(same, 4);
	assert_true(isnan(s.lag1)); /* no spread */
	assert_close(s.drift, 0, 0);
	assert_int_equal(s.outliers, 0);
	assert_close(stats_of(swing, 4).lag1, -0.75, 1e-15);
}

static void outliers_lie_beyond_the_limit(void **state)
{
	/* median 10, MAD 1: the limit is 10 +- 7.413 */
	const double x[] = { 9, 9, 9, 10, 11, 11, 11, 17.41, 17.42, 2.58 };
	struct rfl_run_stats s = stats_of(x, 10);

	(void)state;
	assert_close(s.time.median, 10.5, 0);
	assert_close(s.time.mad, 1.5, 0); /* so the limit is 10.5 +- 11.1 */
	assert_int_equal(s.outliers, 0);
	s = stats_of((const double[]){ 9, 9, 9, 10, 10, 10, 11, 11, 11, 17.42, 2.58, 17.41 }, 12);
	assert_close(s.time.median, 10, 0);
	assert_close(s.time.mad, 1, 0);
	assert_int_equal(s.outliers, 2);
}

/* A window whose first `cold` steps take `factor` times as long as the others. */
static int64_t cold_steps(size_t n, size_t cold, double factor, uint64_t seed)
{
	double *x = calloc(n, sizeof(*x));
	struct rfl_run_stats stats;

	assert_non_null(x);
	for (size_t i = 0; i < n; i++)
		x[i] = (i < cold ? factor : 1) * (100 + normal(&seed));
	stats = rfl_run_stats_of(x, n);
	free(x);
	return stats.cold_steps;
}

static void a_cold_start_is_seen_and_measured(void **state)
{
	static const struct {
		size_t n, cold;
		double factor;
	} cases[] = { { N, 6, 1.2 }, { N, 12, 1.5 }, { N, 12, 0.8 }, { 40, 8, 1.2 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t too_many = 0;

		for (uint64_t seed = 1; seed <= 50; seed++) {
			int64_t found =
				cold_steps(cases[i].n, cases[i].cold, cases[i].factor, seed);

			assert_in_range(found, cases[i].cold, RFL_RUN_WARM_STEPS - 1);
			too_many += found - (int64_t)cases[i].cold;
		}
		assert_in_range(too_many, 0, 2 * 50);
	}
	assert_int_equal(cold_steps(N, 50, 0.9, 1), 0);   /* later: drift */
	assert_int_equal(cold_steps(N, 1, 10, 1), 0);     /* one hiccup */
	assert_int_equal(cold_steps(8, 4, 10, 1), 0);     /* too few to decide */
	assert_int_equal(cold_steps(N, 12, 1.005, 1), 0); /* too little to matter */
}

/* How many of a thousand windows of independent noise raise each flag. */
struct alarms {
	int unstable, drift, not_warm;
};

static struct alarms noise(size_t n, double std, bool skewed)
{
	const struct rfl_run_signs signs = { .data_wait_mean = (double)NAN };
	struct alarms a = { 0 };
	double x[1000];
	uint64_t g = 12345;

	for (int window = 0; window < 1000; window++) {
		struct rfl_run_stats s;
		char flags[RFL_RUN_FLAGS_MAX];

		for (size_t i = 0; i < n; i++)
			x[i] = 100 * (1 + std * (skewed ? -log(1 - uniform(&g)) : normal(&g)));
		s = stats_of(x, n);
		rfl_run_flags(&s, &signs, flags);
		a.unstable += strstr(flags, "unstable") != NULL;
		a.drift += strstr(flags, "drift") != NULL;
		a.not_warm += strstr(flags, "not_warm") != NULL;
	}
	return a;
}

/* docs/internals/measuring.md states these rates; the generator is fixed, so that they are the same
 * everywhere. */
static void false_alarms_on_white_noise_are_rare(void **state)
{
	static const struct {
		size_t n;
		double std;
		bool skewed;
		struct alarms most;
	} cases[] = {
		{ 100, 0.01, false, { 0, 0, 7 } },   { 100, 0.02, false, { 0, 0, 12 } },
		{ 100, 0.02, true, { 0, 0, 10 } },   { 40, 0.02, false, { 3, 3, 2 } },
		{ 1000, 0.02, false, { 0, 0, 20 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct alarms a = noise(cases[i].n, cases[i].std, cases[i].skewed);

		print_message("n %zu, std %g%s: unstable %d, drift %d, not_warm %d of 1000\n",
			      cases[i].n, cases[i].std, cases[i].skewed ? " (skewed)" : "",
			      a.unstable, a.drift, a.not_warm);
		assert_true(a.unstable <= cases[i].most.unstable);
		assert_true(a.drift <= cases[i].most.drift);
		assert_true(a.not_warm <= cases[i].most.not_warm);
	}
}

static void flags_and_their_limits(void **state)
{
	struct rfl_run_stats s = { .time = { .n = 100, .mean = 100 },
				   .relative_iqr = 0.05,
				   .drift = -0.03 };
	struct rfl_run_signs signs = { .data_wait_mean = 5 };
	char out[RFL_RUN_FLAGS_MAX];

	(void)state;
	assert_string_equal(rfl_run_flags(&s, &signs, out), "");
	s.relative_iqr = 0.0501;
	assert_string_equal(rfl_run_flags(&s, &signs, out), "unstable");
	s.relative_iqr = 0.01;
	s.drift = -0.0301;
	assert_string_equal(rfl_run_flags(&s, &signs, out), "unstable drift");
	s.drift = (double)NAN;
	s.cold_steps = 3;
	s.time.n = 9;
	signs = (struct rfl_run_signs){ .data_wait_mean = 5.01, .throttled = true };
	assert_string_equal(rfl_run_flags(&s, &signs, out),
			    "not_warm throttled loader_bound few_steps");
	signs.data_wait_mean = (double)NAN;
	s.relative_iqr = s.drift = 1;
	signs.data_wait_mean = 50;
	signs.until_missed = signs.busy = true;
	assert_string_equal(rfl_run_flags(&s, &signs, out), /* all of them fit */
			    "unstable drift busy not_warm throttled loader_bound few_steps "
			    "until_missed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_numpy),
		cmocka_unit_test(small_windows_by_hand),
		cmocka_unit_test(outliers_lie_beyond_the_limit),
		cmocka_unit_test(a_cold_start_is_seen_and_measured),
		cmocka_unit_test(false_alarms_on_white_noise_are_rare),
		cmocka_unit_test(flags_and_their_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
