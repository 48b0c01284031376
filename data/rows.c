/*
 * rows.c - one body per loop, plain C that the compiler vectorises, compiled for several
 * instruction sets.
 */
#include "data/rows.h"

#include <stdbool.h>

#include "base/compiler.h"

#define HALF  (1 << (RFL_WEIGHT_BITS - 1))
#define BLOCK 64 /* sums that are kept in registers */

/* Sums of 64 neighbours over all weighted rows. */
#define SUM_BLOCK(in, step, weights, count, out)                            \
	do {                                                                \
		int32_t sums_[BLOCK];                                       \
                                                                            \
		for (int x_ = 0; x_ < BLOCK; x_++)                          \
			sums_[x_] = HALF;                                   \
		for (int i_ = 0; i_ < (count); i_++) {                      \
			const uint8_t *row_ = (in) + (size_t)i_ * (step);   \
			const int32_t weight_ = (weights)[i_];              \
                                                                            \
			for (int x_ = 0; x_ < BLOCK; x_++)                  \
				sums_[x_] += row_[x_] * weight_;            \
		}                                                           \
		for (int x_ = 0; x_ < BLOCK; x_++) {                        \
			int32_t value_ = sums_[x_] >> RFL_WEIGHT_BITS;      \
                                                                            \
			(out)[x_] = (uint8_t)(value_ > 255 ? 255 : value_); \
		}                                                           \
	} while (0)

/* Fewer than a block. */
static void sum_few(const uint8_t *in, size_t step, const int32_t *weights, int count, size_t n,
		    uint8_t *out)
{
	for (size_t x = 0; x < n; x++) {
		int32_t sum = HALF;

		for (int i = 0; i < count; i++)
			sum += in[(size_t)i * step + x] * weights[i];
		sum >>= RFL_WEIGHT_BITS;
		out[x] = (uint8_t)(sum > 255 ? 255 : sum);
	}
}

/* The last block of a row begins earlier if needed: some sums are computed twice. */
#define ROWS_BODY(isa, attributes)                                                                 \
	attributes static void sum_##isa(const uint8_t *in, size_t step, const int32_t *weights,   \
					 int count, size_t n, uint8_t *restrict out)               \
	{                                                                                          \
		size_t x = 0;                                                                      \
                                                                                                   \
		if (n < BLOCK) {                                                                   \
			sum_few(in, step, weights, count, n, out);                                 \
			return;                                                                    \
		}                                                                                  \
		while (x < n) {                                                                    \
			if (x > n - BLOCK)                                                         \
				x = n - BLOCK;                                                     \
			SUM_BLOCK(in + x, step, weights, count, out + x);                          \
			x += BLOCK;                                                                \
		}                                                                                  \
	}                                                                                          \
	attributes static void split_##isa(const uint8_t *restrict pixels, size_t n, size_t plane, \
					   uint8_t *restrict out)                                  \
	{                                                                                          \
		uint8_t *restrict second = out + plane, *restrict third = second + plane;          \
                                                                                                   \
		for (size_t i = 0; i < n; i++) {                                                   \
			out[i] = pixels[3 * i];                                                    \
			second[i] = pixels[3 * i + 1];                                             \
			third[i] = pixels[3 * i + 2];                                              \
		}                                                                                  \
	}

ROWS_BODY(portable, )

static bool have_portable(void)
{
	return true;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
ROWS_BODY(avx2, RFL_TARGET("avx2"))
ROWS_BODY(avx512, RFL_TARGET("avx512f,avx512bw,avx512vl"))

static bool have_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

static bool have_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl");
}
#endif

/* Fastest first. */
static const struct {
	struct rfl_rows rows;
	bool (*usable)(void);
} variants[] = {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
	{ { "avx512", sum_avx512, split_avx512 }, have_avx512 },
	{ { "avx2", sum_avx2, split_avx2 }, have_avx2 },
#endif
	{ { "portable", sum_portable, split_portable }, have_portable },
};

const struct rfl_rows *rfl_rows__at(size_t i)
{
	for (size_t v = 0; v < RFL_ARRAY_LEN(variants); v++) {
		if (variants[v].usable() && i-- == 0)
			return &variants[v].rows;
	}
	return NULL;
}

const struct rfl_rows *rfl_rows_best(void)
{
	return rfl_rows__at(0);
}
