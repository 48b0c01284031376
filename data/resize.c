/*
 * resize.c - separable antialiased bilinear resize in Pillow's arithmetic: the triangle filter
 * widened by the scale, weights of 22 bits, horizontal pass first, 8 bits in between. Only the
 * columns and rows that the window needs are computed.
 */
#include "data/transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define WEIGHT_BITS 22 /* 32 - 8 bits of the pixels - 2 of head room */

/* The taps of one direction: output i sums weights[i * taps ...] over bounds[2i], bounds[2i+1]. */
struct taps {
	int n; /* weights per output */
	const int32_t *weights;
	const int *bounds; /* first input and count, per output */
};

/* The old block when it is large enough, else a new one; NULL when memory is short. */
static void *reserve(void *old, size_t *cap, size_t n, size_t size)
{
	void *p;

	if (n <= *cap)
		return old;
	free(old);
	p = rfl_alloc_array(n, size);
	*cap = p ? n : 0;
	return p;
}

void rfl_resizer_fini(struct rfl_resizer *r)
{
	for (int d = 0; d < 2; d++) {
		free(r->weights[d]);
		free(r->bounds[d]);
	}
	free(r->rows);
	free(r->sums);
	*r = (struct rfl_resizer){ .rows = NULL };
}

static double triangle(double x)
{
	x = fabs(x);
	return x < 1.0 ? 1.0 - x : 0.0;
}

/* The weights of one output, summing to one, rounded to integers. */
static void weigh(int32_t *w, int first, int count, double centre, double inverse)
{
	double k, sum = 0.0;

	for (int x = 0; x < count; x++)
		sum += triangle((x + first - centre + 0.5) * inverse);
	for (int x = 0; x < count; x++) {
		k = triangle((x + first - centre + 0.5) * inverse);
		if (sum != 0.0)
			k /= sum;
		w[x] = (int32_t)(0.5 + k * (1 << WEIGHT_BITS));
	}
}

static bool make_taps(struct rfl_resizer *r, int d, int in_size, int out_size, int from, int count,
		      struct taps *ret)
{
	double scale = (double)in_size / (double)out_size;
	double support = scale < 1.0 ? 1.0 : scale;
	int n = (int)ceil(support) * 2 + 1;

	r->weights[d] = reserve(r->weights[d], &r->weights_cap[d], (size_t)n * (size_t)count,
				sizeof(int32_t));
	r->bounds[d] = reserve(r->bounds[d], &r->bounds_cap[d], 2 * (size_t)count, sizeof(int));
	if (!r->weights[d] || !r->bounds[d])
		return false;
	for (int i = 0; i < count; i++) {
		double centre = (from + i + 0.5) * scale;
		int first = (int)(centre - support + 0.5);
		int last = (int)(centre + support + 0.5);

		if (first < 0)
			first = 0;
		if (last > in_size)
			last = in_size;
		r->bounds[d][2 * i] = first;
		r->bounds[d][2 * i + 1] = last - first;
		weigh(r->weights[d] + (size_t)i * (size_t)n, first, last - first, centre,
		      1.0 / support);
	}
	*ret = (struct taps){ .n = n, .weights = r->weights[d], .bounds = r->bounds[d] };
	return true;
}

static uint8_t clip(int32_t sum)
{
	int32_t v = sum >> WEIGHT_BITS;

	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void resize_row(const uint8_t *in, const struct taps *t, int count, uint8_t *out)
{
	for (int i = 0; i < count; i++) {
		const int32_t *w = t->weights + (size_t)i * (size_t)t->n;
		const uint8_t *p = in + (size_t)t->bounds[2 * i] * 3;
		int32_t r = 1 << (WEIGHT_BITS - 1), g = r, b = r;

		for (int x = 0; x < t->bounds[2 * i + 1]; x++, p += 3) {
			r += p[0] * w[x];
			g += p[1] * w[x];
			b += p[2] * w[x];
		}
		*out++ = clip(r);
		*out++ = clip(g);
		*out++ = clip(b);
	}
}

/* One output row as the weighted sum of whole input rows: a loop that the compiler vectorises. */
static void sum_rows(const uint8_t *in, size_t stride, const int32_t *w, int count, int32_t *sums,
		     uint8_t *out)
{
	for (size_t x = 0; x < stride; x++)
		sums[x] = 1 << (WEIGHT_BITS - 1);
	for (int y = 0; y < count; y++, in += stride) {
		const int32_t weight = w[y];

		for (size_t x = 0; x < stride; x++)
			sums[x] += in[x] * weight;
	}
	for (size_t x = 0; x < stride; x++)
		out[x] = clip(sums[x]);
}

/* Rows first ... last-1 of the source, at their new width, into r->rows. */
static void horizontal(struct rfl_resizer *r, const struct rfl_image *source, int width, int left,
		       int out_width, const struct taps *t, int first, int last)
{
	size_t in_stride = (size_t)source->width * 3, out_stride = (size_t)out_width * 3;

	for (int y = first; y < last; y++) {
		const uint8_t *in = source->pixels + (size_t)y * in_stride;
		uint8_t *out = r->rows + (size_t)(y - first) * out_stride;

		if (width == source->width)
			memcpy(out, in + (size_t)left * 3, out_stride);
		else
			resize_row(in, t, out_width, out);
	}
}

enum rfl_rc rfl_resize(struct rfl_resizer *r, const struct rfl_image *source, int width, int height,
		       int left, int top, struct rfl_image *out, struct rfl_err *err)
{
	size_t stride = (size_t)out->width * 3;
	bool vertical = height != source->height;
	struct taps across, down;
	int first, last;

	if (!make_taps(r, 0, source->width, width, left, out->width, &across) ||
	    !make_taps(r, 1, source->height, height, top, out->height, &down))
		goto nomem;
	first = vertical ? down.bounds[0] : top;
	last = vertical ? down.bounds[2 * out->height - 2] + down.bounds[2 * out->height - 1]
			: top + out->height;
	r->rows = reserve(r->rows, &r->rows_cap, (size_t)(last - first) * stride, 1);
	r->sums = reserve(r->sums, &r->sums_cap, stride, sizeof(int32_t));
	if (!r->rows || !r->sums)
		goto nomem;
	horizontal(r, source, width, left, out->width, &across, first, last);
	if (!vertical) {
		memcpy(out->pixels, r->rows, (size_t)out->height * stride);
		return RFL_OK;
	}
	for (int y = 0; y < out->height; y++)
		sum_rows(r->rows + (size_t)(down.bounds[2 * y] - first) * stride, stride,
			 down.weights + (size_t)y * (size_t)down.n, down.bounds[2 * y + 1], r->sums,
			 out->pixels + (size_t)y * stride);
	return RFL_OK;
nomem:
	return rfl_fail(err, RFL_ENOMEM, 0, "resize to %d x %d: out of memory", width, height);
}
