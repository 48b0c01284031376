/* kernel_rows.h - copies and products of rows and columns, and dropout. */
#ifndef RFL_RUNNER_PLANNED_CUDA_KERNEL_ROWS_H
#define RFL_RUNNER_PLANNED_CUDA_KERNEL_ROWS_H

#ifndef __CUDACC_RTC__
#include "runner/planned/cuda/kernel_values.h"
#endif

/* ---- rows and columns ---- */

INLINE void scale_rows_at(const struct rfl_k_scale_rows *k, int64_t i, int width)
{
	const int64_t factors = i / k->columns / k->rows * k->columns + i % k->columns;
	const struct pack factor = load(TYPE(k), k->factor, factors, width);
	struct pack y = load(TYPE(k), k->x, i, width);

	for (int j = 0; j < width; j++)
		y.at[j] *= factor.at[j];
	store(TYPE(k), k->y, i, y, width);
}
PACKS(scale_rows, WIDE(TYPE(&k)), k.columns % WIDE(TYPE(&k)) == 0)

/* The total is in float64, over float32 sums of a few rows: float64 is slow on most GPUs. */
INLINE void scale_rows_gradient_at(const struct rfl_k_scale_rows_gradient *k, int64_t i, int width)
{
	const int64_t columns = k->columns, size = k->rows * columns;
	const int64_t start = i / columns * size + i % columns, end = (i / columns + 1) * size;
	double total[8] = { 0 };
	struct pack y = { { 0 } };

	for (int64_t at = start; at < end; at += DEEP * columns) {
		struct pack x[DEEP], dy[DEEP], sum = { { 0 } };

		for (int d = 0; d < DEEP; d++) {
			x[d] = load(TYPE(k), k->x, within(at, d * columns, end), width);
			dy[d] = load(TYPE(k), k->dy, within(at, d * columns, end), width);
		}
		for (int d = 0; d < DEEP; d++)
			for (int j = 0; j < width && at + d * columns < end; j++)
				sum.at[j] += x[d].at[j] * dy[d].at[j];
		for (int j = 0; j < width; j++)
			total[j] += (double)sum.at[j];
	}
	for (int j = 0; j < width; j++)
		y.at[j] = (float)total[j];
	store(TYPE(k), k->y, i, y, width);
}
PACKS(scale_rows_gradient, WIDE(TYPE(&k)), k.columns % WIDE(TYPE(&k)) == 0)

INLINE void columns_at(const struct rfl_k_columns *k, int64_t i, int width)
{
	const int64_t row = i / k->columns, column = i % k->columns;
	const int64_t to = row * k->y_stride + k->to + column;
	struct pack v = load(TYPE(k), k->x, row * k->x_stride + k->from + column, width);

	if (k->add)
		v = sum_of(load(TYPE(k), k->y, to, width), v, width);
	store(TYPE(k), k->y, to, v, width);
}
PACKS(columns, WIDE(TYPE(&k)),
      (k.columns | k.x_stride | k.from | k.y_stride | k.to) % WIDE(TYPE(&k)) == 0)

INLINE void shuffle_at(const struct rfl_k_shuffle *k, int64_t i, int width)
{
	const int64_t each = k->columns / k->groups, start = i - i % k->columns;
	int64_t group = i % k->columns % k->groups, place = i % k->columns / k->groups;
	struct pack y = { { 0 } };

	for (int j = 0; j < width; j++) {
		y.at[j] = load_one(TYPE(k), k->x, start + group * each + place);
		if (++group == k->groups) {
			group = 0;
			place++;
		}
	}
	store(TYPE(k), k->y, i, y, width);
}
PACKS(shuffle, WIDE(TYPE(&k)), k.columns % WIDE(TYPE(&k)) == 0)

/* ---- dropout ---- */

/* Philox 4x32-10, as rfl_philox(). */
INLINE struct quad philox(uint64_t key, uint64_t low, uint64_t high)
{
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	uint32_t c0 = (uint32_t)low, c1 = (uint32_t)(low >> 32);
	uint32_t c2 = (uint32_t)high, c3 = (uint32_t)(high >> 32);
	struct quad out;

	for (int round = 0; round < 10; round++) {
		const uint64_t p0 = (uint64_t)0xD2511F53 * c0, p1 = (uint64_t)0xCD9E8D57 * c2;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += 0x9E3779B9;
		k1 += 0xBB67AE85;
	}
	out.at[0] = c0;
	out.at[1] = c1;
	out.at[2] = c2;
	out.at[3] = c3;
	return out;
}

/* Output `at` of a block, without an index, which registers do not have. */
INLINE uint32_t output_of(struct quad block, int64_t at)
{
	const uint32_t low = at & 1 ? block.at[1] : block.at[0];
	const uint32_t high = at & 1 ? block.at[3] : block.at[2];

	return at & 2 ? high : low;
}

/* A pack is of one unit, or of as many units as elements, in one block of the generator. */
INLINE void dropout_at(const struct rfl_k_dropout *k, int64_t i, int width)
{
	const int64_t unit = i / k->each;
	const struct quad random = philox(k->key, (uint64_t)unit / 4, k->state->counter);
	const uint32_t one = output_of(random, unit % 4);
	const uint64_t threshold = (uint64_t)ceil(k->probability * 4294967296.0);
	const float scale = (float)(1 / (1 - k->probability));
	struct pack v = load(TYPE(k), k->x, i, width);
	struct words mask = { { 0 } };

	for (int j = 0; j < width; j++) {
		const uint32_t number = k->each == 1 && width > 1 ? random.at[j] : one;
		const uint32_t keep = number >= threshold;

		mask.at[0] |= keep << 8 * j;
		v.at[j] = keep ? v.at[j] * scale : 0;
	}
	store(TYPE(k), k->y, i, v, width);
	if (k->each == 1)
		store_bytes(k->mask, i, mask, width);
	else if (i % k->each == 0)
		k->mask[unit] = (uint8_t)mask.at[0];
}
PACKS(dropout, FLOATS, k.each == 1 || k.each % FLOATS == 0)

INLINE void dropout_gradient_at(const struct rfl_k_dropout_gradient *k, int64_t i, int width)
{
	const float scale = (float)(1 / (1 - k->probability));
	struct pack v = load(TYPE(k), k->dy, i, width);

	if (k->each == 1) {
		const struct words mask = load_bytes(k->mask, i, width);

		for (int j = 0; j < width; j++)
			v.at[j] = byte_of(mask, j) ? v.at[j] * scale : 0;
	} else {
		const uint8_t keep = k->mask[i / k->each];

		for (int j = 0; j < width; j++)
			v.at[j] = keep ? v.at[j] * scale : 0;
	}
	store(TYPE(k), k->dx, i, v, width);
}
PACKS(dropout_gradient, WIDE(TYPE(&k)), k.each == 1 || k.each % WIDE(TYPE(&k)) == 0)

#endif
