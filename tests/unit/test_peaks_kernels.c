/* The loops: every one that can run here computes what it says, on as many numbers as it says. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/isa.h"
#include "peaks/kernels.h"

enum { GUARD = 8, STEPS = 5 };

static bool usable(const struct rfl_peak_kernel *k)
{
	return rfl_peak_kernel_probe(k, NULL) == RFL_OK;
}

static double *aligned(size_t n)
{
	const size_t bytes = (n * sizeof(double) + 63) / 64 * 64;
	double *p = aligned_alloc(64, bytes);

	assert_non_null(p);
	memset(p, 0, bytes);
	return p;
}

static uint64_t word_of(double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	return word;
}

/* What the loop should do, written plainly; counts its work as it goes. */
static uint64_t plainly(const struct rfl_peak_kernel *k, struct rfl_kernel_arrays *w, double *bytes,
			double *flops)
{
	uint64_t result = 0;

	*bytes = *flops = 0;
	for (size_t pass = 0; pass < w->passes; pass++) {
		for (size_t i = 0; i < w->n; i++) {
			switch (k->kind) {
			case RFL_LOOP_READ:
				result ^= word_of(w->b[i]);
				*bytes += 8;
				break;
			case RFL_LOOP_COPY:
				w->a[i] = w->b[i];
				*bytes += 16;
				break;
			case RFL_LOOP_TRIAD:
				w->a[i] = k->fused ? fma(w->scale, w->c[i], w->b[i])
						   : w->b[i] + w->scale * w->c[i];
				*bytes += 24;
				*flops += 2;
				break;
			case RFL_LOOP_CHAIN:
				fail();
			}
		}
	}
	return result;
}

/* Doubles with many bits set, so that fused and unfused results differ. */
static double odd_number(size_t i)
{
	return 1.0 / (double)(3 + i) + (double)(i % 7);
}

static void check_arrays(const struct rfl_peak_kernel *k, size_t steps, size_t passes)
{
	const size_t n = (size_t)k->step * steps;
	double *a = aligned(n + GUARD), *b = aligned(n), *c = aligned(n), *expected = aligned(n);
	struct rfl_kernel_arrays work = {
		.a = a, .b = b, .c = c, .scale = 1.0 / 3, .n = n, .passes = passes
	};
	struct rfl_kernel_arrays reference = work;
	double bytes, flops;

	for (size_t i = 0; i < n; i++) {
		b[i] = odd_number(i);
		c[i] = odd_number(i + 1000);
	}
	for (size_t i = 0; i < GUARD; i++)
		a[n + i] = -7;
	reference.a = expected;
	const uint64_t result = plainly(k, &reference, &bytes, &flops);

	k->arrays(&work);
	if (k->kind == RFL_LOOP_READ)
		assert_int_equal(work.result, result);
	else
		assert_memory_equal(a, expected, n * sizeof(double));
	for (size_t i = 0; i < GUARD; i++)
		assert_close(a[n + i], -7, 0);
	for (size_t i = 0; i < n; i++)
		assert_close(b[i], odd_number(i), 0);
	assert_close(k->bytes_per_iter * (double)(steps * passes), bytes, 0);
	assert_close(k->flops_per_iter * (double)(steps * passes), flops, 0);
	free(a);
	free(b);
	free(c);
	free(expected);
}

static void loops_over_arrays_compute_and_count(void **state)
{
	const struct rfl_peak_kernel *k;
	int n = 0;

	(void)state;
	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		if (k->kind == RFL_LOOP_CHAIN || !usable(k))
			continue;
		for (size_t steps = 1; steps <= STEPS; steps++) {
			check_arrays(k, steps, 1);
			check_arrays(k, steps, 3);
		}
		n++;
	}
	if (n == 0)
		skip();
}

/* One step of a chain as the instruction does it, and its FLOPs. */
static double step_plainly(const struct rfl_peak_kernel *k, double x, double mul, double add,
			   double *flops)
{
	const bool single = strcmp(k->dtype, "fp32") == 0;

	*flops += 2;
	if (strcmp(k->isa, "neon") == 0) /* fmla: the accumulator is the addend */
		return single ? (double)fmaf((float)mul, (float)add, (float)x) : fma(mul, add, x);
	if (k->fused)
		return single ? (double)fmaf((float)x, (float)mul, (float)add) : fma(x, mul, add);
	if (!single)
		return x * mul + add;
	const float product = (float)x * (float)mul;

	return (double)(product + (float)add);
}

static double get(const struct rfl_peak_kernel *k, const void *x, size_t i)
{
	return strcmp(k->dtype, "fp32") == 0 ? (double)((const float *)x)[i]
					     : ((const double *)x)[i];
}

static void check_chains(const struct rfl_peak_kernel *k, uint64_t iters)
{
	const size_t n = (size_t)k->step * (size_t)k->accumulators;
	const bool single = strcmp(k->dtype, "fp32") == 0;
	const double mul = 0.75 + 0x1p-20, add = 0.125 + 0x1p-21; /* exact in both types */
	double *x = aligned(n + GUARD);
	struct rfl_kernel_chains work = { .x = x, .mul = mul, .add = add, .iters = iters };
	double flops = 0;

	for (size_t i = 0; i < n; i++) {
		if (single)
			((float *)(void *)x)[i] = (float)(1 + i) / 7.0f;
		else
			x[i] = (double)(1 + i) / 7.0;
	}
	k->chains(&work);
	for (size_t i = 0; i < n; i++) {
		double expected = single ? (double)((float)(1 + i) / 7.0f) : (double)(1 + i) / 7.0;

		for (uint64_t j = 0; j < iters; j++)
			expected = step_plainly(k, expected, mul, add, &flops);
		assert_close(get(k, x, i), expected, 0);
	}
	assert_close(k->flops_per_iter * (double)iters, flops, 0);
	free(x);
}

static void chains_compute_and_count(void **state)
{
	const struct rfl_peak_kernel *k;
	int n = 0;

	(void)state;
	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		if (k->kind != RFL_LOOP_CHAIN || !usable(k))
			continue;
		check_chains(k, 1);
		check_chains(k, 2);
		check_chains(k, 37);
		n++;
	}
	if (n == 0)
		skip();
}

/* The stores that are to pass by the caches differ from the others only in that. */
static void every_family_has_its_loops(void **state)
{
	static const char *const families[] = { "avx512", "avx2", "sse2", "neon" };
	static const char *const loops[] = { "read",     "copy", "copy_nt", "triad",
					     "triad_nt", "fp32", "fp64" };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		for (size_t j = 0; j < 7; j++) {
			const struct rfl_peak_kernel *k, *found = NULL;
			char name[64];

			snprintf(name, sizeof(name), "%s_%s", loops[j], families[i]);
			for (size_t r = 0; (k = rfl_peak_kernel_at(r)); r++)
				found = strcmp(k->name, name) == 0 ? k : found;
			assert_non_null(found);
			assert_string_equal(found->isa, families[i]);
			assert_int_equal(found->nt_stores, strstr(loops[j], "_nt") != NULL);
		}
	}
}

static void rows_are_sound(void **state)
{
	const struct rfl_peak_kernel *k, *other;

	(void)state;
	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		const enum rfl_rc rc = rfl_peak_kernel_probe(k, &err);

		for (size_t j = 0; j < i && (other = rfl_peak_kernel_at(j)); j++)
			assert_string_not_equal(k->name, other->name);
		assert_true(k->step > 0);
		assert_true(k->summary[0] != '\0');
		assert_int_equal(k->kind == RFL_LOOP_CHAIN, k->accumulators > 0);
		assert_true(k->bytes_per_iter + k->flops_per_iter > 0);
		if (k->missing) {
			assert_null(k->arrays);
			assert_null(k->chains);
			assert_int_equal(rc, RFL_EUNAVAILABLE);
			assert_says(&err, k->missing);
		} else {
			assert_int_equal(k->kind == RFL_LOOP_CHAIN, k->chains != NULL);
			assert_int_equal(k->kind != RFL_LOOP_CHAIN, k->arrays != NULL);
			assert_int_equal(rc == RFL_OK, (k->needs & ~rfl_isa_detect()) == 0);
		}
	}
}

static void a_processor_without_the_instructions_says_so(void **state)
{
	struct rfl_peak_kernel k = { .name = "fp32_future",
				     .needs = RFL_ISA_BIT(SVE2) | RFL_ISA_BIT(AMX_TILE) };
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	/* no processor has both */
	assert_int_equal(rfl_peak_kernel_probe(&k, &err), RFL_EUNAVAILABLE);
	assert_says(&err, "fp32_future");
	assert_says(&err, "which this processor or its operating system");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_over_arrays_compute_and_count),
		cmocka_unit_test(chains_compute_and_count),
		cmocka_unit_test(every_family_has_its_loops),
		cmocka_unit_test(rows_are_sound),
		cmocka_unit_test(a_processor_without_the_instructions_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
