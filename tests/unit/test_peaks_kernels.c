/* The loops: every one that can run here computes what it says, on as many numbers as it says. */
#include "tests/unit/ieee_unpack.h"
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ieee.h"
#include "machine/isa.h"
#include "peaks/kernels.h"
#include "peaks/measure.h"
#include "peaks/peaks.h"

enum { GUARD = 8, STEPS = 5 };

/* Print why a loop that was built is not executed. */
static bool usable(const struct rfl_peak_kernel *k)
{
	struct rfl_err err = RFL_ERR_INIT;
	const bool can = rfl_peak_kernel_probe(k, &err) == RFL_OK;

	if (!can && !k->missing)
		print_message("cannot run: %s\n", err.msg);
	return can;
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

/* --- chains --- */

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static size_t bytes_of(const char *type)
{
	const char *digits = type + strcspn(type, "0123456789");

	return (size_t)(is(digits, "64") ? 8 : is(digits, "32") ? 4 : is(digits, "16") ? 2 : 1);
}

static const struct rfl_ieee *format_of(const char *type)
{
	return is(type, "fp32")   ? &rfl_ieee_fp32
	       : is(type, "fp16") ? &rfl_ieee_fp16
	       : is(type, "bf16") ? &rfl_ieee_bf16
				  : NULL;
}

static double get(const char *type, const unsigned char *array, size_t i)
{
	const struct rfl_ieee *format = format_of(type);
	uint64_t bits = 0;
	double value;

	memcpy(&bits, array + i * bytes_of(type), bytes_of(type));
	if (format)
		return ieee_unpack(format, (uint32_t)bits);
	if (is(type, "int32"))
		return (double)(int32_t)(uint32_t)bits;
	if (is(type, "int8"))
		return (double)(int8_t)(uint8_t)bits;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void put(const char *type, unsigned char *array, size_t i, double value)
{
	const struct rfl_ieee *format = format_of(type);
	uint64_t bits = (uint64_t)(int64_t)(is(type, "fp64") || format ? 0 : value);

	if (format)
		bits = rfl_ieee_pack(format, value);
	else if (is(type, "fp64"))
		memcpy(&bits, &value, sizeof(bits));
	memcpy(array + i * bytes_of(type), &bits, bytes_of(type));
}

/* One step of a chain of multiply-adds. */
static double multiply_add(const struct rfl_peak_kernel *k, double x, double a, double b)
{
	if (is(k->isa, "neon") && is(k->unit, "vector") && k->fused) { /* fmla */
		const double addend = x;

		x = a;
		a = b;
		b = addend;
	}
	if (is(k->dtype, "fp16")) /* exact in double but for the last rounding */
		return rfl_ieee_round(&rfl_ieee_fp16, fma(x, a, b));
	if (is(k->dtype, "fp64"))
		return k->fused ? fma(x, a, b) : x * a + b;
	if (k->fused)
		return (double)fmaf((float)x, (float)a, (float)b);
	const float product = (float)x * (float)a;

	return (double)(product + (float)b);
}

/* The bf16 instructions read and write no denormal numbers. */
static float flush(double x)
{
	return fabs(x) < 0x1p-126 ? 0 : (float)x;
}

/* Rounded to odd: towards zero, and the last bit set if that is not exact. */
static float add_to_odd(float a, float b)
{
	const double sum = (double)a + (double)b, part = sum - (double)a;
	const double error = ((double)a - (sum - part)) + ((double)b - part);
	float result = (float)sum;
	uint32_t bits;

	if ((double)result == sum && error == 0)
		return flush((double)result);
	if (fabs((double)result) > fabs(sum) ||
	    ((double)result == sum && signbit(error) != signbit(sum)))
		result = nextafterf(result, 0);
	memcpy(&bits, &result, sizeof(bits));
	bits |= 1;
	memcpy(&result, &bits, sizeof(bits));
	return flush((double)result);
}

/* x + a0 * b0 + a1 * b1 as the instruction does it. The products are exact in fp32. */
static float add_pair(const struct rfl_peak_kernel *k, float x, const float a[2], const float b[2])
{
	if (is(k->isa, "avx512")) {
		x = flush((double)fmaf(a[1], b[1], flush((double)x)));
		return flush((double)fmaf(a[0], b[0], x));
	}
	return add_to_odd(flush((double)x), add_to_odd(flush((double)a[0] * (double)b[0]),
						       flush((double)a[1] * (double)b[1])));
}

/* Where element i of an accumulator takes its j-th factors from. */
static size_t place(const struct rfl_peak_kernel *k, bool second, size_t i, size_t j)
{
	const size_t n = (size_t)k->products;

	if (is(k->isa, "amx")) { /* 16 rows and columns; b has n/16 rows of each column together */
		const size_t group = n / 16;

		return second ? j / group * n + i % 16 * group + j % group : i / 16 * n + j;
	}
	if (is(k->unit, "matrix")) /* two rows of a, two columns of b */
		return (second ? i % 2 : i / 2) * n + j;
	return i * n + j;
}

static float dot_bf16(const struct rfl_peak_kernel *k, const struct rfl_kernel_chains *c, float x,
		      size_t i, double *flops)
{
	float sums[2] = { 0, 0 };

	for (size_t j = 0; j < (size_t)k->products; j += 2) {
		float a[2], b[2];

		for (size_t p = 0; p < 2; p++) {
			a[p] = flush(get("bf16", c->a, place(k, false, i, j + p)));
			b[p] = flush(get("bf16", c->b, place(k, true, i, j + p)));
			sums[p] = flush((double)fmaf(a[p], b[p], sums[p]));
			*flops += 2;
		}
		if (!is(k->isa, "amx"))
			x = add_pair(k, x, a, b);
	}
	if (is(k->isa, "amx")) /* even and odd factors are summed apart */
		x = flush((double)(flush((double)x) + flush((double)(sums[0] + sums[1]))));
	return x;
}

static double dot_int8(const struct rfl_peak_kernel *k, const struct rfl_kernel_chains *c, double x,
		       size_t i, double *flops)
{
	const bool unsigned_a = is(k->unit, "vector") && !is(k->isa, "neon"); /* VNNI */
	uint32_t sum = (uint32_t)(int32_t)x;

	for (size_t j = 0; j < (size_t)k->products; j++) {
		const uint8_t byte = c->a[place(k, false, i, j)];
		const int a = unsigned_a ? byte : (int8_t)byte;
		const int b = (int8_t)c->b[place(k, true, i, j)];

		sum += (uint32_t)(a * b); /* does not saturate */
		*flops += 2;
	}
	return (double)(int32_t)sum;
}

static void iterate_plainly(const struct rfl_peak_kernel *k, struct rfl_kernel_chains *c,
			    double *flops)
{
	for (size_t at = 0; at < (size_t)k->accumulators * (size_t)k->step; at++) {
		const size_t i = at % (size_t)k->step;
		double x = get(k->accumulate, c->x, at);

		if (is(k->dtype, "int8")) {
			x = dot_int8(k, c, x, i, flops);
		} else if (is(k->dtype, "bf16")) {
			x = (double)dot_bf16(k, c, (float)x, i, flops);
		} else {
			x = multiply_add(k, x, get(k->dtype, c->a, i), get(k->dtype, c->b, i));
			*flops += 2;
		}
		put(k->accumulate, c->x, at, x);
	}
	for (size_t at = 0; k->adds && at < (size_t)k->accumulators * (size_t)k->step; at++) {
		const size_t i = at % (size_t)k->step; /* all to the register after them */
		const double a = get(k->dtype, c->a, i), b = get(k->dtype, c->b, i);
		const double sum = is(k->dtype, "fp32") ? (double)((float)a + (float)b) : a + b;

		put(k->accumulate, c->x, (size_t)k->accumulators * (size_t)k->step + i, sum);
		*flops += 1;
	}
}

enum { TINY = 1, DENORMAL, ZERO };

/* Factors and sums that show whether denormal numbers are flushed: as results, as factors, as
 * addends. With matrices, only the first row and column have tiny factors. */
static int special(const struct rfl_peak_kernel *k, bool second, size_t i)
{
	static const int kinds[11] = { [3] = DENORMAL, [5] = TINY, [7] = ZERO };

	if (!is(k->dtype, "bf16"))
		return 0;
	if (is(k->isa, "amx"))
		return (second ? i % 32 < 2 : i < 32) ? TINY : 0;
	if (is(k->unit, "matrix"))
		return i < 4 ? TINY : 0;
	return kinds[i / 2 % 11];
}

static double factor(const struct rfl_peak_kernel *k, bool second, size_t i)
{
	const double steps = (double)(i * 37 % 128);

	if (is(k->dtype, "int8"))
		return (double)(int8_t)(uint8_t)(i * 37 + (second ? 128 : 255));
	switch (special(k, second, i)) {
	case TINY:
		return 0x1p-70;
	case DENORMAL:
		return second ? 0x1p100 : 0x1p-130;
	case ZERO:
		return second ? 1 : 0;
	}
	if (is(k->dtype, "bf16"))
		return (i % 3 ? 1 : -1) * ldexp(1 + steps / 128, (int)((i + second) % 5) - 2);
	if (is(k->dtype, "fp16") && second && i % 8 == 5)
		return 0; /* x86: these become denormal, and stay so */
	return (second ? 0.125 : 0.75) + ldexp(steps, is(k->dtype, "fp16") ? -10 : -20);
}

static double addend(const struct rfl_peak_kernel *k, size_t at)
{
	const size_t i = at % (size_t)k->step;
	/* the numbers of a vector have the same place as their factors */
	const int kind = is(k->unit, "vector") ? special(k, false, 2 * i)
			 : i == 0              ? special(k, false, 0)
					       : 0;

	if (is(k->accumulate, "int32"))
		return at % 5 ? (double)at : (double)(INT32_MAX - 100); /* overflows */
	if (is(k->accumulate, "fp16"))
		return i % 8 == 5 ? 0x1p-14 : (double)(1 + at % 16) / 16;
	return kind == ZERO ? 0x1p-130 : kind ? 0 : (double)(1 + at) / 7;
}

static void check_chains(const struct rfl_peak_kernel *k, uint64_t iters)
{
	static struct rfl_kernel_chains work, expected;
	double flops = 0;

	assert_true((size_t)k->step * (size_t)(k->accumulators + k->adds) *
			    bytes_of(k->accumulate) <=
		    sizeof(work.x));
	memset(&work, 0, sizeof(work));
	for (size_t i = 0; i < sizeof(work.a) / bytes_of(k->dtype); i++) {
		put(k->dtype, work.a, i, factor(k, false, i));
		put(k->dtype, work.b, i, factor(k, true, i));
	}
	for (size_t i = 0; i < sizeof(work.x) / bytes_of(k->accumulate); i++)
		put(k->accumulate, work.x, i, addend(k, i));
	work.iters = iters;
	expected = work;
	for (uint64_t j = 0; j < iters; j++)
		iterate_plainly(k, &expected, &flops);
	k->chains(&work);
	for (size_t i = 0; i < sizeof(work.x); i++) /* with the memory after the accumulators */
		if (work.x[i] != expected.x[i]) {
			i /= bytes_of(k->accumulate);
			fail_msg("%s: %llu iterations: number %zu is %a instead of %a", k->name,
				 (unsigned long long)iters, i, get(k->accumulate, work.x, i),
				 get(k->accumulate, expected.x, i));
		}
	assert_memory_equal(work.a, expected.a, sizeof(work.a));
	assert_memory_equal(work.b, expected.b, sizeof(work.b));
	assert_close(k->flops_per_iter * (double)iters, flops, 0);
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

/* Overflow or denormal numbers would change the speed of some CPUs. */
static void measured_chains_keep_their_numbers(void **state)
{
	static struct rfl_kernel_chains c;
	const struct rfl_peak_kernel *k;
	int n = 0;

	(void)state;
	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		if (k->kind != RFL_LOOP_CHAIN || !usable(k))
			continue;
		rfl_peak_kernel_prepare(k, &c);
		assert_true(get(k->dtype, c.a, 0) != 0 && get(k->dtype, c.b, 0) != 0);
		c.iters = 100000;
		k->chains(&c);
		for (size_t j = 0; j < (size_t)k->step * (size_t)(k->accumulators + k->adds); j++) {
			const double x = get(k->accumulate, c.x, j);

			if (!is(k->accumulate, "int32"))
				assert_true(x >= 1 && x < 1e4);
		}
		n++;
	}
	if (n == 0)
		skip();
}

static const struct rfl_peak_kernel *find(const char *name)
{
	const struct rfl_peak_kernel *k;

	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++)
		if (is(k->name, name))
			return k;
	fail_msg("there is no loop '%s'", name);
	return NULL;
}

/* The stores that are to pass by the caches differ from the others only in that. */
static void every_family_has_its_loops(void **state)
{
	static const char *const families[] = { "avx512", "avx2", "sse2", "neon" };
	static const char *const loops[] = { "read", "copy", "copy_nt", "triad", "triad_nt" };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(families); i++) {
		for (size_t j = 0; j < RFL_ARRAY_LEN(loops); j++) {
			char name[64];

			snprintf(name, sizeof(name), "%s_%s", loops[j], families[i]);
			assert_string_equal(find(name)->isa, families[i]);
			assert_int_equal(find(name)->nt_stores, strstr(loops[j], "_nt") != NULL);
		}
	}
}

static void every_ceiling_has_its_loops(void **state)
{
	/* FLOPs per iteration: 2 * numbers in a register * products of each * registers */
	static const struct {
		const char *name, *key;
		double flops;
	} rows[] = {
		{ "fp32_avx512", "fp32.vector", 2 * 16 * 24 },
		{ "fp64_avx512", "fp64.vector.1core", 2 * 8 * 24 },
		{ "bf16_avx512", "bf16.vector", 2 * 16 * 2 * 24 },
		{ "fp16_avx512", "fp16.vector", 2 * 32 * 24 },
		{ "int8_avx512", "int8.vector", 2 * 16 * 4 * 24 },
		{ "bf16_amx", "bf16.matrix", 2 * 16 * 16 * 32 * 6 },
		{ "int8_amx", "int8.matrix.1core", 2 * 16 * 16 * 64 * 6 },
		{ "fp32_nofma_avx512", "fp32.vector.nofma", 2 * 16 * 24 },
		{ "fp32_fmaadd_avx512", "fp32.vector.fmaadd", 3 * 16 * 24 },
		{ "fp64_fmaadd_avx2", "fp64.vector.fmaadd", 3 * 4 * 12 },
		{ "fp64_fmaadd_neon", "fp64.vector.fmaadd", 3 * 2 * 24 },
		{ "fp32_avx2", "fp32.vector", 2 * 8 * 12 },
		{ "int8_avx2", "int8.vector", 2 * 8 * 4 * 12 },
		{ "fp32_avx", "fp32.vector", 2 * 8 * 12 },
		{ "fp64_avx", "fp64.vector.nofma", 2 * 4 * 12 },
		{ "fp32_sse2", "fp32.vector", 2 * 4 * 12 },
		{ "fp64_sse2", "fp64.vector.nofma", 2 * 2 * 12 },
		{ "fp32_scalar_fma", "fp32.scalar", 2 * 12 },
		{ "fp64_scalar_sse2", "fp64.scalar", 2 * 12 },
		{ "fp64_neon", "fp64.vector", 2 * 2 * 24 },
		{ "bf16_neon", "bf16.vector", 2 * 4 * 2 * 24 },
		{ "fp16_neon", "fp16.vector", 2 * 8 * 24 },
		{ "int8_neon", "int8.vector", 2 * 4 * 4 * 24 },
		{ "bf16_mmla", "bf16.matrix", 2 * 2 * 2 * 4 * 24 },
		{ "int8_mmla", "int8.matrix", 2 * 2 * 2 * 8 * 24 },
		{ "fp64_nofma_neon", "fp64.vector.nofma", 2 * 2 * 24 },
		{ "fp32_scalar_neon", "fp32.scalar", 2 * 24 },
	};
	const struct rfl_peak_kernel *k;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		k = find(rows[i].name);
		assert_true(rfl_peak_kernel_measures(k, rows[i].key));
		assert_close(k->flops_per_iter, rows[i].flops, 0);
	}
	/* a loop without fused operations is not the ceiling where there is another */
	assert_false(rfl_peak_kernel_measures(find("fp32_nofma_avx512"), "fp32.vector"));
	assert_false(rfl_peak_kernel_measures(find("fp32_avx512"), "fp32.vector.nofma"));
	assert_false(rfl_peak_kernel_measures(find("fp32_avx512"), "fp32.vectors"));
	assert_false(rfl_peak_kernel_measures(find("fp32_avx512"), "fp32.vector.fmaadd"));
	assert_false(rfl_peak_kernel_measures(find("fp32_fmaadd_avx512"), "fp32.vector.1core"));
	assert_false(rfl_peak_kernel_measures(find("bf16_amx"), "bf16.vector"));
	assert_false(rfl_peak_kernel_measures(find("triad_avx512"), "fp64.vector"));

	/* what can be named with --only follows from the loops */
	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		bool named = k->kind != RFL_LOOP_CHAIN;

		for (size_t j = 0; !named && rfl_measure_keys[j]; j++)
			named = rfl_peak_kernel_measures(k, rfl_measure_keys[j]);
		assert_true(named);
	}
	for (size_t j = 0; rfl_measure_keys[j]; j++) {
		const char *key = rfl_measure_keys[j];
		const bool level = !strchr(key, '.') || strncmp(key, "DRAM.", 5) == 0;
		bool measured = level || rfl_peaks_is_gemm(key);

		for (size_t i = 0; !measured && (k = rfl_peak_kernel_at(i)); i++)
			measured = rfl_peak_kernel_measures(k, key);
		assert_true(measured);
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
		assert_int_equal(k->kind == RFL_LOOP_CHAIN, k->products > 0);
		assert_int_equal(k->kind == RFL_LOOP_CHAIN, k->accumulate && k->unit);
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
	char lacking[RFL_PEAK_LACKING_MAX];

	(void)state;
	/* no CPU has both */
	assert_int_equal(rfl_peak_kernel_probe(&k, &err), RFL_EUNAVAILABLE);
	assert_says(&err, "fp32_future");
	assert_true(*rfl_peak_kernel_lacking(&k, lacking));
	assert_says(&err, "which this CPU or its operating system");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_over_arrays_compute_and_count),
		cmocka_unit_test(chains_compute_and_count),
		cmocka_unit_test(measured_chains_keep_their_numbers),
		cmocka_unit_test(every_family_has_its_loops),
		cmocka_unit_test(every_ceiling_has_its_loops),
		cmocka_unit_test(rows_are_sound),
		cmocka_unit_test(a_processor_without_the_instructions_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
