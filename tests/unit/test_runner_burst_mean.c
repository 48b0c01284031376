/*
 * How well a mean is known: the error that is claimed against the one that is there, over many
 * series whose true mean is known.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>

#include "runner/burst.h"

static uint64_t state_of_random = 1;

/* xorshift64*; uniform in (0, 1). */
static double uniform(void)
{
	state_of_random ^= state_of_random >> 12;
	state_of_random ^= state_of_random << 25;
	state_of_random ^= state_of_random >> 27;
	return ((double)(state_of_random * 2685821657736338717U >> 11) + 0.5) * 0x1p-53;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * 3.14159265358979323846 * uniform());
}

/* Times around 1 with a spread of 2 %, of which a neighbour has the part rho. */
static struct rfl_burst__mean series(int64_t n, double rho)
{
	struct rfl_burst__mean m = { .n = 0 };
	double x = normal();

	for (int64_t i = 0; i < n; i++) {
		rfl_burst__mean_add(&m, 1 + 0.02 * x);
		x = rho * x + sqrt(1 - rho * rho) * normal();
	}
	return m;
}

/* How much of the true error is claimed: root mean squares of both over many series. */
static double claimed(int64_t n, double rho)
{
	enum { SERIES = 1000 };
	double claims = 0, errors = 0;

	for (int i = 0; i < SERIES; i++) {
		const struct rfl_burst__mean m = series(n, rho);
		const double error = rfl_burst__mean_error(&m), off = m.sum / (double)m.n - 1;

		claims += error * error;
		errors += off * off;
	}
	return sqrt(claims / errors);
}

/* The usual standard error would claim sqrt((1 - rho) / (1 + rho)) of it: 0.58, 0.33, 0.16. */
static void neighbours_that_are_alike_are_allowed_for(void **state)
{
	static const struct {
		int64_t n;
		double rho, least, most;
	} cases[] = {
		{ 100, 0, 0.95, 1.25 },   { 1000, 0, 0.95, 1.25 },   { 100, 0.5, 0.85, 1.3 },
		{ 1000, 0.5, 0.9, 1.25 }, { 100, 0.8, 0.75, 1.3 },   { 1000, 0.8, 0.9, 1.25 },
		{ 1000, 0.95, 0.8, 1.3 }, { 10000, 0.95, 0.9, 1.2 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const double part = claimed(cases[i].n, cases[i].rho);

		if (!(part >= cases[i].least && part <= cases[i].most))
			fail_msg("%g of the error is claimed of %lld steps, rho %g", part,
				 (long long)cases[i].n, cases[i].rho);
	}
}

static void few_steps_say_nothing(void **state)
{
	struct rfl_burst__mean m = { .n = 0 };

	(void)state;
	for (int i = 0; i < RFL_BURST__FEWEST; i++) {
		assert_true(isnan(rfl_burst__mean_error(&m)));
		rfl_burst__mean_add(&m, 2);
	}
	assert_close(rfl_burst__mean_error(&m), 0, 0); /* all alike */
	rfl_burst__mean_add(&m, 3);
	assert_true(rfl_burst__mean_error(&m) > 0);
}

/* Twenty values, each its own batch: the usual formula, and the neighbours by hand. */
static void it_is_the_usual_error_where_neighbours_differ(void **state)
{
	struct rfl_burst__mean m = { .n = 0 };

	(void)state;
	for (int i = 0; i < 20; i++)
		rfl_burst__mean_add(&m, i % 2 ? 3 : 1);
	assert_close(m.sum, 40, 0);
	assert_close(rfl_burst__mean_error(&m), sqrt(20.0 / 19 / 20) / 2, 1e-12);

	m = (struct rfl_burst__mean){ .n = 0 };
	for (int i = 0; i < 20; i++) /* in two halves: 18 of 20 neighbours are alike, one is not */
		rfl_burst__mean_add(&m, i < 10 ? 3 : 1);
	assert_close(rfl_burst__mean_error(&m),
		     sqrt(20.0 / 19 / 20 * (1 + 17.0 / 20) / (1 - 17.0 / 20)) / 2, 1e-12);
}

/* Nothing is lost where batches are joined, and there is no end to them. */
static void batches_grow(void **state)
{
	struct rfl_burst__mean m = { .n = 0 };

	(void)state;
	for (int64_t i = 0; i < 1000003; i++) {
		rfl_burst__mean_add(&m, (double)(i % 10));
		assert_true(m.nbatches <= RFL_BURST__BATCHES);
		assert_int_equal((int64_t)m.nbatches * m.per_batch + m.open_n, m.n);
	}
	assert_true(m.nbatches >= RFL_BURST__BATCHES / 2 - 1);
	assert_true(rfl_burst__mean_error(&m) < 1e-4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_that_are_alike_are_allowed_for),
		cmocka_unit_test(few_steps_say_nothing),
		cmocka_unit_test(it_is_the_usual_error_where_neighbours_differ),
		cmocka_unit_test(batches_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
