/* Welch's interval and its quantiles, against values of mpmath with 30 digits. */
#include "tests/unit/rfl_test.h"

#include <math.h>

#include "base/stats.h"

/* The root of I(df/2, 1/2; df/(df+t^2)) = 0.05. */
static void quantiles_between_whole_degrees(void **state)
{
	static const struct {
		double df, t;
	} cases[] = {
		{ 1, 12.706204736174705 },       { 1.5, 6.0166631044279319 },
		{ 2, 4.3026527297494639 },       { 2.0001, 4.3024465868616519 },
		{ 2.7, 3.3921483831737523 },     { 3.999, 2.7767189387639532 },
		{ 4, 2.7764451051977944 },       { 7.25, 2.3481948491053722 },
		{ 12.5, 2.1691859427125411 },    { 29.5, 2.0437249667721233 },
		{ 99.9, 1.9839958380769389 },    { 150.25, 1.9758785952855726 },
		{ 199.999, 1.9718962836514288 }, { 200, 1.9718962236339094 },
		{ 200.5, 1.9718662903043783 },   { 1234.5, 1.9618874833313456 },
		{ 1e18, 1.959963984540054 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		assert_close(rfl_stats_t95(cases[i].df), cases[i].t, 1e-9);
	for (double df = 1; df < 400; df++) /* the methods for fractions and whole numbers agree */
		assert_close(rfl_stats_t95(df * (1 + 1e-12)), rfl_stats_t95(df), 1e-9);
	assert_true(isnan(rfl_stats_t95(0)));
	assert_true(isnan(rfl_stats_t95(-1)));
	assert_true(isnan(rfl_stats_t95(NAN)));
}

static struct rfl_stats describe(const double *x, size_t n)
{
	struct rfl_stats s;

	s = rfl_stats_of(x, n);
	return s;
}

static void welch(void **state)
{
	const double a[] = { 136.75, 132.35, 129.15 }, b[] = { 120.59, 120.86, 114.68 };
	const struct rfl_stats sa = describe(a, 3), sb = describe(b, 3);
	struct rfl_stats_difference d = rfl_stats_welch(&sa, &sb);

	(void)state;
	assert_close(d.value, -14.04, 1e-14);
	assert_close(d.df, 3.9690981776987527, 1e-12);
	assert_close(d.lo, -22.357585813231701, 1e-9);
	assert_close(d.hi, -5.7224141867682991, 1e-9);
}

/* Two sets of fifteen, of unequal spread. */
static void welch_of_fifteen(void **state)
{
	const double a[] = { 27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1,
			     21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4 };
	const double b[] = { 27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0,
			     24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.4 };
	const struct rfl_stats sa = describe(a, 15), sb = describe(b, 15);
	struct rfl_stats_difference d = rfl_stats_welch(&sa, &sb);

	(void)state;
	assert_close(d.df, 27.887303988420115, 1e-12);
	assert_close(d.lo, 0.79864392487469912, 1e-9);
	assert_close(d.hi, 4.8680227417919675, 1e-9);
}

static void what_cannot_be_said(void **state)
{
	const double one[] = { 3 }, same[] = { 4, 4, 4 }, tiny[] = { 1e-180, 2e-180, 3e-180 };
	const struct rfl_stats s1 = describe(one, 1), s3 = describe(same, 3),
			       st = describe(tiny, 3);
	struct rfl_stats_difference d = rfl_stats_welch(&s1, &s3);

	(void)state;
	assert_true(d.value == 1);
	assert_true(isnan(d.lo) && isnan(d.hi) && isnan(d.df));
	d = rfl_stats_welch(&s3, &s3);
	assert_true(d.value == 0 && d.lo == 0 && d.hi == 0 && isnan(d.df));
	d = rfl_stats_welch(&st, &st); /* variances that are 0 in a double */
	assert_true(d.value == 0 && !isnan(d.lo) && !isnan(d.hi));
}

/* numpy.polyfit(range(n), x, 1)[0] * (n - 1); its standard error by the formula, times t. */
static void trends(void **state)
{
	const double x[] = { 3, 1, 4, 1, 5 }, line[] = { 10, 12, 14 };

	(void)state;
	assert_close(rfl_stats_trend(x, 5).rise, 1.6, 1e-14);
	assert_close(rfl_stats_trend(x, 5).ci95, 7.77802724751741, 1e-12);
	assert_close(rfl_stats_trend(line, 3).rise, 4, 1e-14);
	assert_true(rfl_stats_trend(line, 3).ci95 < 1e-12);
	assert_close(rfl_stats_trend(line, 2).rise, 2, 1e-14);
	assert_true(isnan(rfl_stats_trend(line, 2).ci95));
	assert_true(isnan(rfl_stats_trend(line, 1).rise) && isnan(rfl_stats_trend(line, 0).rise));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_between_whole_degrees),
		cmocka_unit_test(welch),
		cmocka_unit_test(welch_of_fifteen),
		cmocka_unit_test(what_cannot_be_said),
		cmocka_unit_test(trends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
