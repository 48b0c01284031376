/* The formulas of the model against numbers worked out by hand, and their properties. */
#include "rfl_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "roofline/roofline.h"

/* 420 GFLOP/s over 92 GB/s: ridge point 420 / 92 = 4.565217... */
static const struct rfl_roof small = { .compute_flop_per_s = 420e9, .bandwidth_byte_per_s = 92e9 };

static void formulas(void **state)
{
	(void)state;
	assert_close(rfl_roof_knee(&small), 4.565217391304348, 1e-15);
	assert_close(rfl_roof_attainable(&small, 1), 92e9, 0);   /* 1 x 92 */
	assert_close(rfl_roof_attainable(&small, 0.5), 46e9, 0); /* 0.5 x 92 */
	assert_close(rfl_roof_attainable(&small, 4.5), 414e9, 1e-15);
	assert_close(rfl_roof_attainable(&small, 5), 420e9, 0); /* 5 x 92 = 460 > 420 */
	assert_close(rfl_roof_attainable(&small, 1e6), 420e9, 0);
	assert_close(rfl_roof_attainable(&small, 0), 0, 0);
	assert_true(isnan(rfl_roof_attainable(&small, NAN)));
}

static void bounds(void **state)
{
	(void)state;
	/* the band: ridge point / 1.1 = 4.1502 to ridge point x 1.1 = 5.0217 */
	assert_int_equal(rfl_roof_bound(&small, 4.14, NAN, NAN), RFL_BOUND_MEMORY);
	assert_int_equal(rfl_roof_bound(&small, 4.16, NAN, NAN), RFL_BOUND_KNEE);
	assert_int_equal(rfl_roof_bound(&small, 5.02, NAN, NAN), RFL_BOUND_KNEE);
	assert_int_equal(rfl_roof_bound(&small, 5.03, NAN, NAN), RFL_BOUND_COMPUTE);
	/* an uncertainty that reaches over the ridge point */
	assert_int_equal(rfl_roof_bound(&small, 3, 2, 4.5), RFL_BOUND_MEMORY);
	assert_int_equal(rfl_roof_bound(&small, 3, 2, 4.6), RFL_BOUND_KNEE);
	assert_int_equal(rfl_roof_bound(&small, 9, 4.5, 12), RFL_BOUND_KNEE);
	assert_int_equal(rfl_roof_bound(&small, 9, 4.6, 12), RFL_BOUND_COMPUTE);
}

/* Achieved rates and intensities of a public report of a laptop, whose intensities were estimated
 * as achieved / bandwidth: its CPU against 105 GB/s, its GPU against 92 GB/s. */
static void lower_bound_reproduces_a_published_table(void **state)
{
	static const struct {
		double gbps, attained_gflops, ai; /* ai with the two digits that were printed */
	} rows[] = {
		{ 105, 2.09, 0.02 },    { 105, 3.35, 0.03 },    { 105, 10.23, 0.10 },
		{ 105, 77.95, 0.74 },   { 105, 98.51, 0.94 },   { 105, 238.94, 2.28 },
		{ 92, 168.62, 1.83 },   { 92, 220.30, 2.39 },   { 92, 211.11, 2.29 },
		{ 92, 1598.31, 17.37 }, { 92, 1677.55, 18.23 }, { 92, 4901.75, 53.28 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		const struct rfl_roof roof = { .compute_flop_per_s = 14000e9,
					       .bandwidth_byte_per_s = rows[i].gbps * 1e9 };
		double ai = rfl_roof_lower_bound_ai(&roof, rows[i].attained_gflops * 1e9);

		assert_true(fabs(ai - rows[i].ai) <= 0.005 + 1e-12);
	}
}

static void lower_bound_moves_to_the_knee(void **state)
{
	(void)state;
	/* 377 / 420 = 0.8976: left alone; 379 / 420 = 0.9024: moved */
	assert_close(rfl_roof_lower_bound_ai(&small, 377e9), 377.0 / 92, 1e-15);
	assert_close(rfl_roof_lower_bound_ai(&small, 379e9), 420.0 / 92, 1e-15);
	/* above the compute roof it is already right of the ridge point: still a lower bound */
	assert_close(rfl_roof_lower_bound_ai(&small, 460e9), 5, 1e-15);
	assert_true(isnan(rfl_roof_lower_bound_ai(&small, NAN)));
}

/* Monotone, continuous at the ridge point, scaled with both ceilings: for many roofs. */
static void properties(void **state)
{
	(void)state;
	srand(7);
	for (int i = 0; i < 2000; i++) {
		const struct rfl_roof roof = {
			.compute_flop_per_s = exp(20 + 16.0 * rand() / RAND_MAX),
			.bandwidth_byte_per_s = exp(18 + 12.0 * rand() / RAND_MAX),
		};
		double knee = rfl_roof_knee(&roof), a = knee * exp(10.0 * rand() / RAND_MAX - 5);
		double b = a * (1 + 3.0 * rand() / RAND_MAX), rate;

		assert_true(rfl_roof_attainable(&roof, a) <= rfl_roof_attainable(&roof, b));
		assert_true(rfl_roof_attainable(&roof, a) <= roof.compute_flop_per_s);
		assert_true(rfl_roof_attainable(&roof, a) <= a * roof.bandwidth_byte_per_s);
		assert_close(rfl_roof_attainable(&roof, knee), roof.compute_flop_per_s, 1e-14);
		assert_close(rfl_roof_attainable(&roof, knee * (1 - 1e-9)),
			     rfl_roof_attainable(&roof, knee * (1 + 1e-9)), 3e-9);
		/* a rate under the roof stays on or under it at its lower bound */
		rate = roof.compute_flop_per_s * rand() / RAND_MAX;
		assert_true(rate <=
			    (1 + 1e-14) * rfl_roof_attainable(
						  &roof, rfl_roof_lower_bound_ai(&roof, rate)));
	}
}

static struct rfl_peak peak(enum rfl_peak_status status, double value)
{
	return (struct rfl_peak){ .status = status, .value = value };
}

static void ceiling_table(void **state)
{
	const struct rfl_ceiling *c, *d;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (size_t i = 0; (c = rfl_ceiling_at(i)); i++) {
		assert_non_null(c->key);
		assert_null(strstr(c->key, "fp16acc"));
		/* each pair is found as the row that it is */
		assert_ok(rfl_ceiling_find(c->backend, c->precision, &d, &err), &err);
		assert_ptr_equal(c, d);
		assert_non_null(strstr(c->elementwise, ".vector"));
		/* the faster unit is of the same precision */
		if (c->faster)
			assert_int_equal(strcspn(c->key, "."), strcspn(c->faster, "."));
	}
	/* no CPU adds or multiplies in bf16: its instructions are dot products */
	assert_ok(rfl_ceiling_find("cpu", "bf16", &d, &err), &err);
	assert_string_equal(d->elementwise, "fp32.vector");
	assert_int_equal(rfl_ceiling_find("cpu", "tf32", &d, &err), RFL_ENOTFOUND);
	assert_says(&err, "'tf32' on backend 'cpu'");
}

static void ceiling_choice(void **state)
{
	struct rfl_peak_compute compute[] = {
		{ .key = "fp32.vector", .peak = peak(RFL_PEAK_MEASURED, 5e11) },
		{ .key = "fp32.matrix", .peak = peak(RFL_PEAK_UNKNOWN, NAN) },
	};
	struct rfl_peaks_env env = { .name = "lab", .ncompute = 2, .compute = compute };
	struct rfl_peaks_env matrix_only = { .name = "m", .ncompute = 1, .compute = &compute[1] };
	const struct rfl_ceiling *c = NULL;

	(void)state;
	assert_ok(rfl_ceiling_find("cpu", "fp32", &c, NULL), NULL);
	assert_string_equal(rfl_ceiling_key(c, &env), "fp32.vector");
	/* alone and unknown: the one to measure */
	assert_string_equal(rfl_ceiling_key(c, &matrix_only), "fp32.matrix");
	compute[1].peak = peak(RFL_PEAK_UNSUPPORTED, NAN);
	assert_string_equal(rfl_ceiling_key(c, &matrix_only), "fp32.vector");
	compute[1].peak = peak(RFL_PEAK_MEASURED, 2e12);
	assert_string_equal(rfl_ceiling_key(c, &env), "fp32.matrix");
	/* a CPU without instructions for bf16 computes in fp32 */
	compute[1] = (struct rfl_peak_compute){ .key = "bf16.vector",
						.peak = peak(RFL_PEAK_UNSUPPORTED, NAN) };
	assert_ok(rfl_ceiling_find("cpu", "bf16", &c, NULL), NULL);
	assert_string_equal(rfl_ceiling_key(c, &env), "fp32.vector");
	compute[1].peak = peak(RFL_PEAK_UNKNOWN, NAN);
	assert_string_equal(rfl_ceiling_key(c, &env), "bf16.vector");
	/* fp32 on CUDA never takes another unit's ceiling */
	assert_ok(rfl_ceiling_find("cuda", "fp32", &c, NULL), NULL);
	assert_string_equal(rfl_ceiling_key(c, &env), "fp32.vector");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formulas),
		cmocka_unit_test(bounds),
		cmocka_unit_test(lower_bound_reproduces_a_published_table),
		cmocka_unit_test(lower_bound_moves_to_the_knee),
		cmocka_unit_test(properties),
		cmocka_unit_test(ceiling_table),
		cmocka_unit_test(ceiling_choice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
