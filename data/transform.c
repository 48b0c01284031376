/*
 * transform.c - chooses a crop and resizes it with Pillow's separable antialiased bilinear filter:
 * a triangle widened by the scale, with weights of 22 bits, a horizontal pass first, and 8-bit
 * values between the passes. Only the columns and rows of the window are computed. The compiler
 * vectorises the inner loops.
 */
#include "data/transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"

#define HALF  (1 << (RFL_WEIGHT_BITS - 1))
#define BLOCK 64 /* sums kept in registers */

/* Compute 64 adjacent sums over all weighted rows. */
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

/* Compute fewer than BLOCK sums. */
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

/* The last block may overlap the one before it: some sums are computed twice. */
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

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
ROWS_BODY(avx2, RFL_TARGET("avx2"))
ROWS_BODY(avx512, RFL_TARGET("avx512f,avx512bw,avx512vl"))
#endif

const struct rfl_rows *rfl_rows_at(size_t i)
{
	static const struct rfl_rows portable = { sum_portable, split_portable };
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
	static const struct rfl_rows avx2 = { sum_avx2, split_avx2 };
	static const struct rfl_rows avx512 = { sum_avx512, split_avx512 };

	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl") && i-- == 0)
		return &avx512;
	if (__builtin_cpu_supports("avx2") && i-- == 0)
		return &avx2;
#endif
	return i == 0 ? &portable : NULL;
}

/* ---- memory ---- */

enum rfl_rc rfl_image_reserve(struct rfl_image *image, int width, int height, struct rfl_err *err)
{
	const size_t bytes = (size_t)width * (size_t)height * 3 + 1;

	if (bytes > image->capacity) {
		rfl_image_fini(image);
		image->pixels = rfl_try_array(bytes, 1);
		if (!image->pixels)
			return rfl_fail(err, RFL_ENOMEM, 0, "image of %d x %d: out of memory",
					width, height);
		image->capacity = bytes;
	}
	image->width = width;
	image->height = height;
	return RFL_OK;
}

void rfl_image_fini(struct rfl_image *image)
{
	free(image->pixels);
	*image = (struct rfl_image){ .pixels = NULL };
}

void rfl_view_random(int width, int height, int size, struct rfl_random *random,
		     struct rfl_view *ret)
{
	const double low = 3.0 / 4.0, high = 4.0 / 3.0, area = (double)width * (double)height;
	const double whole = (double)width / (double)height;
	struct rfl_rect crop = { .width = 0 };

	for (int attempt = 0; attempt < 10 && crop.width == 0; attempt++) {
		const double target = area * rfl_random_between(random, 0.08, 1.0);
		const double aspect = exp(rfl_random_between(random, log(low), log(high)));
		const int w = (int)lrint(sqrt(target * aspect));
		const int h = (int)lrint(sqrt(target / aspect));

		if (w < 1 || h < 1 || w > width || h > height)
			continue;
		crop.x = (int)rfl_random_below(random, (uint32_t)(width - w) + 1);
		crop.y = (int)rfl_random_below(random, (uint32_t)(height - h) + 1);
		crop.width = w;
		crop.height = h;
	}
	if (crop.width == 0) { /* the largest centred crop whose aspect is within the bounds */
		crop.width = whole > high ? (int)lrint((double)height * high) : width;
		crop.height = whole < low ? (int)lrint((double)width / low) : height;
		crop.x = (width - crop.width) / 2;
		crop.y = (height - crop.height) / 2;
	}
	*ret = (struct rfl_view){
		.crop = crop,
		.needed = crop,
		.scaled_width = size,
		.scaled_height = size,
		.width = size,
		.height = size,
		.flip = rfl_random_u32(random) >> 31,
	};
}

/* Get the first input of an output's filter and the number of inputs, rounded as in Pillow. */
static void cover(int in_size, double scale, int output, double *centre, int *first, int *n)
{
	double support = scale < 1.0 ? 1.0 : scale;
	int last;

	*centre = (output + 0.5) * scale;
	*first = (int)(*centre - support + 0.5);
	last = (int)(*centre + support + 0.5);
	if (*first < 0)
		*first = 0;
	*n = (last > in_size ? in_size : last) - *first;
}

/* Get the range of the `in` inputs that outputs `from` to `from + count - 1` of `out` depend on. */
static void input_range(int in, int out, int from, int count, int *first, int *n)
{
	const double scale = (double)in / (double)out;
	int last, last_n;
	double centre;

	cover(in, scale, from, &centre, first, n);
	cover(in, scale, from + count - 1, &centre, &last, &last_n);
	*n = last + last_n - *first;
}

void rfl_view_centre(int width, int height, int size, struct rfl_view *ret)
{
	int64_t side = ((int64_t)size * 256 + 112) / 224;
	int64_t w = side, h = side;

	if (width < height)
		h = side * height / width;
	else
		w = side * width / height;
	*ret = (struct rfl_view){
		.crop = { .width = width, .height = height },
		.scaled_width = (int)w,
		.scaled_height = (int)h,
		.width = size,
		.height = size,
		/* round half to even, as in Python */
		.left = (int)lrint((double)(w - size) / 2.0),
		.top = (int)lrint((double)(h - size) / 2.0),
	};
	input_range(width, (int)w, ret->left, size, &ret->needed.x, &ret->needed.width);
	input_range(height, (int)h, ret->top, size, &ret->needed.y, &ret->needed.height);
}

/* ---- resizing ---- */

/* The filter of one direction: output i sums weights[i * n ...] over its inputs. */
struct taps {
	int count; /* outputs */
	int n;     /* weights per output, some of them unused */
	const int32_t *weights;
	const int *bounds; /* per output: first input, number of inputs */
};

void rfl_resizer_fini(struct rfl_resizer *r)
{
	for (int d = 0; d < 2; d++) {
		free(r->weights[d]);
		free(r->bounds[d]);
	}
	free(r->columns);
	free(r->row);
	rfl_image_fini(&r->rows);
	*r = (struct rfl_resizer){ .row = NULL };
}

static double triangle(double x)
{
	x = fabs(x);
	return x < 1.0 ? 1.0 - x : 0.0;
}

/* Compute the filter of `count` outputs beginning with `from`; inputs are counted from `offset`. */
static void make_taps(struct rfl_resizer *r, int d, int in_size, int offset, int out_size, int from,
		      int count, struct taps *ret)
{
	const double scale = (double)in_size / (double)out_size;
	const double support = scale < 1.0 ? 1.0 : scale, inverse = 1.0 / support;
	const int n = (int)ceil(support) * 2 + 1;

	rfl_reserve(&r->weights[d], &r->weights_cap[d], (size_t)n * (size_t)count);
	rfl_reserve(&r->bounds[d], &r->bounds_cap[d], 2 * (size_t)count);
	for (int i = 0; i < count; i++) {
		int32_t *w = r->weights[d] + (size_t)i * (size_t)n;
		int *bounds = &r->bounds[d][2 * i];
		double centre, k, sum = 0.0;

		/* the weights sum to one and are rounded to integers */
		cover(in_size, scale, from + i, &centre, &bounds[0], &bounds[1]);
		for (int x = 0; x < bounds[1]; x++)
			sum += triangle((x + bounds[0] - centre + 0.5) * inverse);
		for (int x = 0; x < bounds[1]; x++) {
			k = triangle((x + bounds[0] - centre + 0.5) * inverse);
			w[x] = (int32_t)(0.5 + (sum != 0.0 ? k / sum : k) * (1 << RFL_WEIGHT_BITS));
		}
		bounds[0] -= offset;
	}
	*ret = (struct taps){
		.count = count, .n = n, .weights = r->weights[d], .bounds = r->bounds[d]
	};
}

/* Rows of a strip: the pixels of one column have 63 bytes, plus one byte that is overwritten. */
#define STRIP 21
#define STEP  64

/* Copy columns first to last - 1 of up to STRIP rows to `out`, STEP bytes each. Pixels are copied
 * as four bytes; the next row overwrites the fourth. */
static inline void rows_to_columns(const uint8_t *rows, size_t stride, int nrows, int first,
				   int last, uint8_t *out)
{
	for (int x = first; x < last; x++, out += STEP) {
		const uint8_t *in = rows + (size_t)x * 3;

		for (int y = 0; y < nrows; y++)
			memcpy(out + 3 * y, in + (size_t)y * stride, 4);
	}
}

/* Resize nrows rows of the source to their new width, flipped if requested. */
static void resize_strip(struct rfl_resizer *r, const struct rfl_rows *rows, const uint8_t *in,
			 size_t in_stride, int nrows, const struct taps *t, bool flip, uint8_t *out)
{
	const size_t stride = (size_t)t->count * 3;
	const int first = t->bounds[0];
	const int last = t->bounds[2 * t->count - 2] + t->bounds[2 * t->count - 1];
	uint8_t column[STEP];

	if (nrows == STRIP) /* the usual case; the compiler unrolls this loop */
		rows_to_columns(in, in_stride, STRIP, first, last, r->columns);
	else
		rows_to_columns(in, in_stride, nrows, first, last, r->columns);
	for (int i = 0; i < t->count; i++) {
		const int to = flip ? t->count - 1 - i : i;

		rows->sum(r->columns + (size_t)(t->bounds[2 * i] - first) * STEP, STEP,
			  t->weights + (size_t)i * (size_t)t->n, t->bounds[2 * i + 1], STEP,
			  column);
		for (int y = 0; y < nrows; y++) /* copy the column back into the rows */
			memcpy(out + (size_t)y * stride + (size_t)to * 3, column + 3 * y, 3);
	}
}

enum rfl_rc rfl_resize(struct rfl_resizer *r, const struct rfl_image *source,
		       const struct rfl_view *view, enum rfl_layout layout, uint8_t *out,
		       struct rfl_err *err)
{
	const struct rfl_rows *rows = rfl_rows_at(0);
	const size_t in_stride = (size_t)source->width * 3, width = (size_t)view->width;
	const size_t stride = width * 3;
	struct taps across, down;
	int first, last;
	enum rfl_rc rc;

	make_taps(r, 0, view->crop.width, view->needed.x - view->crop.x, view->scaled_width,
		  view->left, view->width, &across);
	make_taps(r, 1, view->crop.height, view->needed.y - view->crop.y, view->scaled_height,
		  view->top, view->height, &down);
	first = down.bounds[0];
	last = down.bounds[2 * down.count - 2] + down.bounds[2 * down.count - 1];
	rfl_reserve(&r->columns, &r->columns_cap, (size_t)source->width * STEP);
	rfl_reserve(&r->row, &r->row_cap, stride);
	if ((rc = rfl_image_reserve(&r->rows, view->width, last - first, err)) != RFL_OK)
		return rc;
	for (int y = first; y < last; y += STRIP)
		resize_strip(r, rows, source->pixels + (size_t)y * in_stride, in_stride,
			     last - y < STRIP ? last - y : STRIP, &across, view->flip,
			     r->rows.pixels + (size_t)(y - first) * stride);
	for (size_t y = 0; y < (size_t)down.count; y++) {
		uint8_t *to = layout == RFL_LAYOUT_NHWC ? out + y * stride : r->row;

		rows->sum(r->rows.pixels + (size_t)(down.bounds[2 * y] - first) * stride, stride,
			  down.weights + y * (size_t)down.n, down.bounds[2 * y + 1], stride, to);
		if (layout == RFL_LAYOUT_NCHW)
			rows->split(r->row, width, width * (size_t)down.count, out + y * width);
	}
	return RFL_OK;
}
