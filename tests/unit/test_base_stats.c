/* Statistics against values that were computed elsewhere. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdlib.h>

#include "base/stats.h"

/* The root of I(df/2, 1/2; df/(df+t^2)) = 0.05, by mpmath with 30 digits. */
static void quantiles_of_t(void **state)
{
	static const struct {
		double df;
		double t;
	} cases[] = {
		{ 1, 12.706204736174705 },    { 2, 4.3026527297494639 },
		{ 3, 3.1824463052837096 },    { 4, 2.7764451051977944 },
		{ 5, 2.5705818356363155 },    { 7, 2.3646242515927853 },
		{ 9, 2.2621571627982055 },    { 10, 2.2281388519862747 },
		{ 19, 2.0930240544083098 },   { 29, 2.0452296421327043 },
		{ 30, 2.0422724563012383 },   { 50, 2.0085591121007611 },
		{ 99, 1.9842169515864175 },   { 100, 1.9839715185235523 },
		{ 199, 1.9719565442517538 },  { 200, 1.9718962236339094 },
		{ 201, 1.9718365067798593 },  { 500, 1.9647198374673678 },
		{ 1000, 1.9623390808264085 }, { 1000000, 1.959966356814107 },
		{ 1e19, 1.959963984540054 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		assert_close(rfl_stats_t95(cases[i].df), cases[i].t, 1e-9);
	assert_true(isnan(rfl_stats_t95(0)));
	for (double df = 1; df < 5000; df++) /* also where the two methods meet */
		assert_true(rfl_stats_t95(df) > rfl_stats_t95(df + 1));
}

static void percentiles(void **state)
{
	const double x[] = { 1, 2, 4, 8, 16 };
	const double edge[] = { 1, INFINITY };

	(void)state;
	assert_close(rfl_stats_percentile(x, 5, 0), 1, 0);
	assert_close(rfl_stats_percentile(x, 5, 100), 16, 0);
	assert_close(rfl_stats_percentile(x, 5, 50), 4, 0);
	assert_close(rfl_stats_percentile(x, 5, 10), 1.4, 1e-15);
	assert_close(rfl_stats_percentile(x, 5, 90), 12.8, 1e-15);
	assert_close(rfl_stats_percentile(x, 4, 50), 3, 0);
	assert_close(rfl_stats_percentile(x, 1, 37), 1, 0);
	assert_close(rfl_stats_percentile(edge, 2, 0), 1, 0);
	assert_true(isnan(rfl_stats_percentile(x, 0, 50)));
	assert_true(isnan(rfl_stats_percentile(x, 5, 101)));
	assert_true(isnan(rfl_stats_percentile(x, 5, NAN)));
}

/* NumAcc1 of NIST's Statistical Reference Datasets: mean 10000002, std 1. */
static void large_offsets_keep_their_digits(void **state)
{
	const double x[] = { 10000001, 10000003, 10000002 };
	struct rfl_stats s;

	(void)state;
	s = rfl_stats_of(x, 3);
	assert_close(s.mean, 10000002, 1e-15);
	assert_close(s.std, 1, 1e-15);
}

/* NumAcc4: mean 10000000.2, std 0.1, 1001 values. */
static void many_values_at_a_large_offset(void **state)
{
	struct rfl_stats s;
	double x[1001];

	(void)state;
	x[0] = 10000000.2;
	for (size_t i = 1; i < 1001; i++)
		x[i] = i % 2 ? 10000000.1 : 10000000.3;
	s = rfl_stats_of(x, 1001);
	assert_close(s.mean, 10000000.2, 1e-15);
	assert_close(s.std, 0.1, 1e-8); /* the inputs themselves are rounded to 2e-9 */
}

static void describes(void **state)
{
	const double x[] = { 5, 1, 2, 4, 3, 60 };
	struct rfl_stats s;

	(void)state;
	s = rfl_stats_of(x, 6);
	assert_int_equal(s.n, 6);
	assert_close(s.mean, 12.5, 0);
	assert_close(s.std, 23.3130864537, 1e-11);
	assert_close(s.median, 3.5, 0);
	assert_close(s.mad, 1.5, 0);
	assert_close(s.p10, 1.5, 1e-15);
	assert_close(s.p90, 32.5, 1e-15);
	assert_close(s.min, 1, 0);
	assert_close(s.max, 60, 0);
	assert_close(s.ci95, 2.5705818356363155 * 23.3130864537 / sqrt(6), 1e-11);
	assert_true(x[0] == 5); /* the samples are left as they were */
}

static void one_sample(void **state)
{
	const double x = 7;
	struct rfl_stats s;

	(void)state;
	s = rfl_stats_of(&x, 1);
	assert_true(s.mean == 7 && s.median == 7 && s.mad == 0 && s.min == 7 && s.max == 7);
	assert_true(isnan(s.std) && isnan(s.ci95));
}

static void equal_samples(void **state)
{
	double x[7];
	struct rfl_stats s;

	(void)state;
	for (size_t i = 0; i < 7; i++)
		x[i] = 0.1;
	s = rfl_stats_of(x, 7);
	assert_true(s.mean == 0.1 && s.std == 0 && s.ci95 == 0 && s.mad == 0);
}

static void unknown_samples_have_unknown_statistics(void **state)
{
	const double x[] = { 1, NAN, 3 };

	(void)state;
	for (size_t n = 0; n <= 3; n += 3) {
		const struct rfl_stats s = rfl_stats_of(x, n);
		const double all[] = { s.mean, s.std, s.median, s.mad, s.p10,
				       s.p90,  s.min, s.max,    s.ci95 };

		assert_int_equal(s.n, n);
		for (size_t i = 0; i < RFL_ARRAY_LEN(all); i++)
			assert_true(isnan(all[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_of_t),
		cmocka_unit_test(percentiles),
		cmocka_unit_test(large_offsets_keep_their_digits),
		cmocka_unit_test(many_values_at_a_large_offset),
		cmocka_unit_test(describes),
		cmocka_unit_test(one_sample),
		cmocka_unit_test(equal_samples),
		cmocka_unit_test(unknown_samples_have_unknown_statistics),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
