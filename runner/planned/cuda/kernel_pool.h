/* kernel_pool.h - maximum and average pooling. */
#ifndef RFL_RUNNER_PLANNED_CUDA_KERNEL_POOL_H
#define RFL_RUNNER_PLANNED_CUDA_KERNEL_POOL_H

#ifndef __CUDACC_RTC__
#include "runner/planned/cuda/kernel_values.h"
#endif

/* ---- windows ---- */

/* The part of a window along an axis that is in the image: start + step * i, first <= i < end. */
struct span {
	int32_t start, step, first, end;
	int32_t size; /* by which a sum is divided */
};

/* How many of `count` positions 0, step, ... are below a distance. */
INLINE int32_t positions_below(int32_t distance, int32_t step, int32_t count)
{
	const int32_t n = distance > 0 ? (distance - 1) / step + 1 : 0;

	return n < count ? n : count;
}

INLINE struct span window_at(const struct rfl_kernel_window *w, int axis, int32_t o)
{
	const int32_t in = w->in[axis], out = w->out[axis], kernel = w->kernel[axis];
	struct span s = { 0, 1, 0, 0, 0 };

	if (w->unequal) {
		s.start = (int32_t)((int64_t)o * in / out);
		s.end = (int32_t)((((int64_t)o + 1) * in + out - 1) / out) - s.start;
		s.size = s.end;
		return s;
	}
	s.start = o * w->stride[axis] - w->pad[axis];
	s.step = w->dilation[axis];
	s.first = positions_below(-s.start, s.step, kernel);
	s.end = positions_below(in - s.start, s.step, kernel);
	s.size = positions_below(in + w->pad[axis] - s.start, s.step, kernel);
	if (w->exclude_padding)
		s.size = s.end - s.first;
	return s;
}

/* The windows, first <= o < end, that may hold position `at` of the image. */
INLINE struct span windows_of(const struct rfl_kernel_window *w, int axis, int32_t at)
{
	const int32_t in = w->in[axis], out = w->out[axis], stride = w->stride[axis];
	const int32_t right = at + w->pad[axis];
	const int32_t left = right - (w->kernel[axis] - 1) * w->dilation[axis];
	struct span s = { 0, 1, 0, 0, 0 };

	if (w->unequal) {
		s.first = (int32_t)((int64_t)at * out / in);
		s.end = (int32_t)((((int64_t)at + 1) * out - 1) / in) + 1;
		return s;
	}
	s.first = positions_below(left, stride, out);
	s.end = positions_below(right + 1, stride, out);
	return s;
}

/* The index of position `at` in a window, or -1. */
INLINE int32_t index_in(struct span window, int32_t at)
{
	const int32_t d = at - window.start;

	return d % window.step == 0 ? d / window.step : -1;
}

/* The number of positions that a place counts in a row of the window. */
INLINE int32_t place_stride(const struct rfl_kernel_window *w)
{
	return w->unequal ? w->in[1] : w->kernel[1];
}

struct pixel {
	int64_t sample, column;
	int32_t at[2];
};

INLINE struct pixel pixel_of(const int32_t *size, int64_t columns, int64_t i)
{
	const int64_t row = i / columns, area = (int64_t)size[0] * size[1];
	struct pixel p;

	p.column = i % columns;
	p.sample = row / area;
	p.at[0] = (int32_t)(row % area / size[1]);
	p.at[1] = (int32_t)(row % area % size[1]);
	return p;
}

/* The element of pixel (y, x) in the sample and column of p. */
INLINE int64_t element_of(const int32_t *size, int64_t columns, struct pixel p, int32_t y,
			  int32_t x)
{
	return ((p.sample * size[0] + y) * size[1] + x) * columns + p.column;
}

/* ---- maximum ---- */

struct maximum {
	struct pack value;
	struct words place;
};

/* Replace the maxima that are less than x, which is at a place. */
INLINE void take_larger(struct maximum *m, struct pack x, uint32_t place, int first, int width)
{
	for (int j = 0; j < width; j++) {
		const float v = x.at[j], best = m->value.at[j];
		const int shift = 16 * (j % 2);

		if (!(first || v > best || (v != v && best == best)))
			continue;
		m->value.at[j] = v;
		m->place.at[j / 2] = (m->place.at[j / 2] & ~(0xffffu << shift)) | place << shift;
	}
}

INLINE void max_pool_at(const struct rfl_k_max_pool *k, int64_t i, int width)
{
	const struct rfl_kernel_window *const w = &k->window;
	const struct pixel p = pixel_of(w->out, w->columns, i);
	const struct span ys = window_at(w, 0, p.at[0]), xs = window_at(w, 1, p.at[1]);
	struct maximum m = { { { 0 } }, { { 0 } } };
	int first = 1;

	for (int32_t r = ys.first; r < ys.end; r++)
		for (int32_t q = xs.first; q < xs.end; q++) {
			const int64_t at = element_of(w->in, w->columns, p, ys.start + r * ys.step,
						      xs.start + q * xs.step);

			take_larger(&m, load(TYPE(k), k->x, at, width),
				    (uint32_t)(r * place_stride(w) + q), first, width);
			first = 0;
		}
	store(TYPE(k), k->y, i, m.value, width);
	if (k->places)
		store_shorts(k->places, i, m.place, width);
}
PACKS(max_pool, WIDE(TYPE(&k)), k.window.columns % WIDE(TYPE(&k)) == 0)

INLINE void max_pool_gradient_at(const struct rfl_k_max_pool_gradient *k, int64_t i, int width)
{
	const struct rfl_kernel_window *const w = &k->window;
	const struct pixel p = pixel_of(w->in, w->columns, i);
	const struct span ys = windows_of(w, 0, p.at[0]), xs = windows_of(w, 1, p.at[1]);
	struct pack dx = { { 0 } };

	for (int32_t y = ys.first; y < ys.end; y++)
		for (int32_t x = xs.first; x < xs.end; x++) {
			const int32_t r = index_in(window_at(w, 0, y), p.at[0]);
			const int32_t q = index_in(window_at(w, 1, x), p.at[1]);
			const int64_t at = element_of(w->out, w->columns, p, y, x);
			struct words places;
			struct pack dy;

			if (r < 0 || q < 0)
				continue;
			places = load_shorts(k->places, at, width);
			dy = load(TYPE(k), k->dy, at, width);
			for (int j = 0; j < width; j++)
				if (short_of(places, j) == r * place_stride(w) + q)
					dx.at[j] += dy.at[j];
		}
	store(TYPE(k), k->dx, i, dx, width);
}
PACKS(max_pool_gradient, WIDE(TYPE(&k)), k.window.columns % WIDE(TYPE(&k)) == 0)

/* ---- average ---- */

/* Add v / size. */
INLINE struct pack add_quotient(struct pack sum, struct pack v, int32_t size, int width)
{
	for (int j = 0; j < width; j++)
		sum.at[j] += v.at[j] / (float)size;
	return sum;
}

INLINE void average_pool_at(const struct rfl_k_average_pool *k, int64_t i, int width)
{
	const struct rfl_kernel_window *const w = &k->window;
	const struct pixel p = pixel_of(w->out, w->columns, i);
	const struct span ys = window_at(w, 0, p.at[0]), xs = window_at(w, 1, p.at[1]);
	struct pack y = { { 0 } };

	for (int32_t r = ys.first; r < ys.end; r++)
		for (int32_t q = xs.first; q < xs.end; q++) {
			const int64_t at = element_of(w->in, w->columns, p, ys.start + r * ys.step,
						      xs.start + q * xs.step);

			y = add_quotient(y, load(TYPE(k), k->x, at, width), ys.size * xs.size,
					 width);
		}
	store(TYPE(k), k->y, i, y, width);
}
PACKS(average_pool, WIDE(TYPE(&k)), k.window.columns % WIDE(TYPE(&k)) == 0)

INLINE void average_pool_gradient_at(const struct rfl_k_average_pool_gradient *k, int64_t i,
				     int width)
{
	const struct rfl_kernel_window *const w = &k->window;
	const struct pixel p = pixel_of(w->in, w->columns, i);
	const struct span ys = windows_of(w, 0, p.at[0]), xs = windows_of(w, 1, p.at[1]);
	struct pack dx = { { 0 } };

	for (int32_t y = ys.first; y < ys.end; y++)
		for (int32_t x = xs.first; x < xs.end; x++) {
			const struct span window[2] = { window_at(w, 0, y), window_at(w, 1, x) };
			const int64_t at = element_of(w->out, w->columns, p, y, x);

			if (index_in(window[0], p.at[0]) < 0 || index_in(window[1], p.at[1]) < 0)
				continue;
			dx = add_quotient(dx, load(TYPE(k), k->dy, at, width),
					  window[0].size * window[1].size, width);
		}
	store(TYPE(k), k->dx, i, dx, width);
}
PACKS(average_pool_gradient, WIDE(TYPE(&k)), k.window.columns % WIDE(TYPE(&k)) == 0)

#endif
