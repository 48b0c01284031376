/* kernel_norm.h - sums of columns, and batch norm. */
#ifndef RFL_RUNNER_PLANNED_CUDA_KERNEL_NORM_H
#define RFL_RUNNER_PLANNED_CUDA_KERNEL_NORM_H

#ifndef __CUDACC_RTC__
#include "runner/planned/cuda/kernel_values.h"
#endif

/* ---- sums of columns ---- */

/* The sum of the elements i, i + step, ... before `end`. */
INLINE struct pack sum_every(int type, const void *x, int64_t i, int64_t step, int64_t end,
			     int width)
{
	struct pack sum = { { 0 } };

	for (; i < end; i += DEEP * step) {
		struct pack v[DEEP];

		for (int d = 0; d < DEEP; d++)
			v[d] = load(type, x, within(i, d * step, end), width);
		for (int d = 0; d < DEEP; d++)
			if (i + d * step < end)
				sum = sum_of(sum, v[d], width);
	}
	return sum;
}

INLINE void column_partials_at(const struct rfl_k_column_partials *k, int64_t i, int width)
{
	const int64_t step = k->chunks * k->columns, end = k->rows * k->columns;

	store_floats(k->partials, i, sum_every(TYPE(k), k->x, i, step, end, width), width);
}
PACKS(column_partials, WIDE(TYPE(&k)), k.columns % WIDE(TYPE(&k)) == 0)

INLINE void fold_partials_at(const struct rfl_k_fold_partials *k, int64_t i, int width)
{
	const int64_t step = k->chunks * k->columns, end = k->rows * k->columns;

	store_floats(k->to, i, sum_every(RFL_VALUE_F32, k->from, i, step, end, width), width);
}
PACKS(fold_partials, FLOATS, k.columns % FLOATS == 0)

INLINE double total_of(const float *partials, int64_t step, int64_t chunks)
{
	double total = 0;

	UNROLLED
	for (int64_t c = 0; c < chunks; c++)
		total += (double)partials[c * step];
	return total;
}

INLINE void column_totals_at(const struct rfl_k_column_totals *k, int64_t i)
{
	k->y[i] = (float)total_of(k->partials + i, k->n, k->chunks);
}
UNITS(column_totals)

/* ---- batch norm ---- */

/* Store the two sums of unit i of a chunk x columns. */
INLINE void store_sums(float *partials, int64_t columns, int64_t i, struct pack first,
		       struct pack second, int width)
{
	const int64_t at = i + i / columns * columns;

	store_floats(partials, at, first, width);
	store_floats(partials, at + columns, second, width);
}

INLINE void norm_partials_at(const struct rfl_k_norm_partials *k, int64_t i, int width)
{
	const int64_t step = k->chunks * k->columns, end = k->rows * k->columns;
	const struct pack pivot = load(TYPE(k), k->x, i % k->columns, width);
	struct pack sum = { { 0 } }, square = { { 0 } };

	for (int64_t at = i; at < end; at += DEEP * step) {
		struct pack x[DEEP];

		for (int d = 0; d < DEEP; d++)
			x[d] = load(TYPE(k), k->x, within(at, d * step, end), width);
		for (int d = 0; d < DEEP; d++)
			for (int j = 0; j < width && at + d * step < end; j++) {
				const float v = x[d].at[j] - pivot.at[j];

				sum.at[j] += v;
				square.at[j] += v * v;
			}
	}
	store_sums(k->partials, k->columns, i, sum, square, width);
}
PACKS(norm_partials, WIDE(TYPE(&k)), k.columns % WIDE(TYPE(&k)) == 0)

/* The batch's statistics of a column. */
INLINE void batch_statistics(const struct rfl_k_norm_finish *k, int64_t c, double *mean,
			     double *variance)
{
	const double rows = (double)k->rows;
	const double d = total_of(k->partials + c, 2 * k->n, k->chunks) / rows;
	const double squares = total_of(k->partials + k->n + c, 2 * k->n, k->chunks) / rows;
	double unbiased;

	*mean = (double)load_one(TYPE(k), k->x, c) + d;
	*variance = squares > d * d ? squares - d * d : 0;
	if (!k->running_mean)
		return;
	unbiased = k->rows > 1 ? *variance * rows / (rows - 1) : *variance;
	k->running_mean[c] += k->momentum * ((float)*mean - k->running_mean[c]);
	k->running_variance[c] += k->momentum * ((float)unbiased - k->running_variance[c]);
}

INLINE void norm_finish_at(const struct rfl_k_norm_finish *k, int64_t c)
{
	double mean, variance, slope;

	if (k->running) {
		mean = (double)k->running_mean[c];
		variance = (double)k->running_variance[c];
	} else {
		batch_statistics(k, c, &mean, &variance);
	}
	k->mean[c] = (float)mean;
	k->inverse[c] = (float)(1 / sqrt(variance + (double)k->eps));
	slope = (double)k->gamma[c] * (double)k->inverse[c];
	k->slope[c] = (float)slope;
	k->shift[c] = (float)((double)k->beta[c] - mean * slope);
}
UNITS(norm_finish)

INLINE void norm_apply_at(const struct rfl_k_norm_apply *k, int64_t i, int width)
{
	const struct pack x = load(TYPE(k), k->x, i, width);
	const struct pack slope = load_columns(k->slope, i, k->columns, width);
	struct pack y = load_columns(k->shift, i, k->columns, width);
	const float high = k->activation == RELU6 ? 6 : INFINITE;
	const float low = k->activation ? 0 : -INFINITE;
	struct words mask = { { 0 } };

	for (int j = 0; j < width; j++)
		y.at[j] = slope.at[j] * x.at[j] + y.at[j];
	if (k->residual)
		y = sum_of(y, load(TYPE(k), k->residual, i, width), width);
	for (int j = 0; j < width; j++) {
		const uint32_t passes = y.at[j] > low && y.at[j] < high;

		mask.at[j / 4] |= passes << 8 * (j % 4);
		y.at[j] = clamp(y.at[j], low, high);
	}
	store(TYPE(k), k->y, i, y, width);
	if (k->mask)
		store_bytes(k->mask, i, mask, width);
}
PACKS(norm_apply, WIDE(TYPE(&k)), 1)

/* g[d] = (dy + dy2) * mask, from element at[d]. */
INLINE void load_gradients(int type, const void *dy, const void *dy2, const uint8_t *mask,
			   const int64_t *at, struct pack *g, int count, int width)
{
	for (int d = 0; d < count; d++)
		g[d] = load(type, dy, at[d], width);
	for (int d = 0; d < count && dy2; d++)
		g[d] = sum_of(g[d], load(type, dy2, at[d], width), width);
	for (int d = 0; d < count && mask; d++) {
		const struct words passes = load_bytes(mask, at[d], width);

		for (int j = 0; j < width; j++)
			g[d].at[j] = byte_of(passes, j) ? g[d].at[j] : 0;
	}
}

INLINE void norm_gradient_partials_at(const struct rfl_k_norm_gradient_partials *k, int64_t i,
				      int width)
{
	const int64_t step = k->chunks * k->columns, end = k->rows * k->columns;
	const struct pack mean = load_floats(k->mean, i % k->columns, width);
	struct pack sum = { { 0 } }, product = { { 0 } };

	for (int64_t first = i; first < end; first += DEEP * step) {
		struct pack x[DEEP], g[DEEP];
		int64_t at[DEEP];

		for (int d = 0; d < DEEP; d++) {
			at[d] = within(first, d * step, end);
			x[d] = load(TYPE(k), k->x, at[d], width);
		}
		load_gradients(TYPE(k), k->dy, k->dy2, k->mask, at, g, DEEP, width);
		for (int d = 0; d < DEEP; d++) {
			if (first + d * step >= end)
				continue;
			for (int j = 0; j < width; j++)
				product.at[j] += g[d].at[j] * (x[d].at[j] - mean.at[j]);
			sum = sum_of(sum, g[d], width);
			if (k->g)
				store(TYPE(k), k->g, at[d], g[d], width);
		}
	}
	store_sums(k->partials, k->columns, i, sum, product, width);
}
PACKS(norm_gradient_partials, WIDE(TYPE(&k)), k.columns % WIDE(TYPE(&k)) == 0)

INLINE void norm_gradient_finish_at(const struct rfl_k_norm_gradient_finish *k, int64_t c)
{
	const double rows = (double)k->rows, inverse = (double)k->inverse[c];
	const double dbeta = total_of(k->partials + c, 2 * k->n, k->chunks);
	const double dgamma = total_of(k->partials + k->n + c, 2 * k->n, k->chunks) * inverse;
	const double scale = (double)k->gamma[c] * inverse;
	const double slope = k->running ? 0 : -scale * inverse * dgamma / rows;
	const double shift = k->running ? 0 : -scale * dbeta / rows - slope * (double)k->mean[c];

	k->dgamma[c] = (float)dgamma;
	k->dbeta[c] = (float)dbeta;
	k->scale[c] = (float)scale;
	k->slope[c] = (float)slope;
	k->shift[c] = (float)shift;
}
UNITS(norm_gradient_finish)

INLINE void norm_gradient_apply_at(const struct rfl_k_norm_gradient_apply *k, int64_t i, int width)
{
	const struct pack x = load(TYPE(k), k->x, i, width);
	const struct pack scale = load_columns(k->scale, i, k->columns, width);
	const struct pack slope = load_columns(k->slope, i, k->columns, width);
	struct pack g, dx = load_columns(k->shift, i, k->columns, width);

	load_gradients(TYPE(k), k->dy, k->dy2, k->mask, &i, &g, 1, width);
	for (int j = 0; j < width; j++)
		dx.at[j] = slope.at[j] * x.at[j] + dx.at[j] + scale.at[j] * g.at[j];
	store(TYPE(k), k->dx, i, dx, width);
}
PACKS(norm_gradient_apply, WIDE(TYPE(&k)), 1)

#endif
