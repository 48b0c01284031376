/* The planned engine's own loops against float64: types, shapes, threads, results in place. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "data/random.h"
#include "runner/planned/host.h"
#include "tests/unit/planned_rig.h"

enum { MOST_THREADS = 3 };

static const int columns_of[] = { 1, 3, 16, 24, 64, 130, 600 };
static const int64_t rows_of[] = { 1, 7, 1003 };
/* Below and above the size from which several threads share a loop. */
static const int64_t lengths[] = { 0, 1, 7, 64, 1000, 20011 };

/* Rounding to the type is allowed for the result itself, and for `inner`, the size of terms that
 * were stored before they were added. */
static void check(enum rfl_host_type type, const void *got, int64_t i, double want, double terms,
		  double stored)
{
	const double eps = type == RFL_HOST_BF16 ? 0x1p-8 : 0x1p-22;
	const double value = get(type, got, i);

	if (!(fabs(value - want) <= eps * (fabs(want) + stored) + 0x1p-21 * terms + 1e-37))
		fail_msg("element %lld is %.9g, not %.9g", (long long)i, value, want);
}

/* ---- batch norm ---- */

struct norm_case {
	enum rfl_host_type type;
	int64_t rows;
	int columns, variant, threads;
};

/* Call a test for all shapes and variants. */
static void for_cases(int variants, void (*test)(const struct norm_case *c))
{
	for (int type = RFL_HOST_F32; type <= RFL_HOST_BF16; type++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(columns_of); i++)
			for (size_t j = 0; j < RFL_ARRAY_LEN(rows_of); j++)
				for (int v = 0; v < variants; v++)
					test(&(struct norm_case){ .type = (enum rfl_host_type)type,
								  .rows = rows_of[j],
								  .columns = columns_of[i],
								  .variant = v,
								  .threads =
									  1 + v % MOST_THREADS });
}

/* Values of a column from 1 to 1.9. */
static float *per_column(int columns, int step)
{
	float *p = room((size_t)columns * sizeof(*p));

	for (int c = 0; c < columns; c++)
		p[c] = 1 + 0.1f * (float)(c * step % 10);
	return p;
}

static void *scratch_of(int columns, int threads)
{
	return room(rfl_host_norm_scratch(columns, threads));
}

static void check_statistics(const struct rfl_host_norm *k, const void *x, const float *old_mean,
			     const float *old_variance, int c)
{
	double mean = 0, variance = 0, unbiased;

	for (int64_t r = 0; r < k->rows; r++)
		mean += get(k->type, x, r * k->columns + c) / (double)k->rows;
	for (int64_t r = 0; r < k->rows; r++)
		variance += pow(get(k->type, x, r * k->columns + c) - mean, 2) / (double)k->rows;
	unbiased = k->rows > 1 ? variance * (double)k->rows / (double)(k->rows - 1) : variance;
	if (k->running) {
		mean = (double)old_mean[c];
		variance = (double)old_variance[c];
	} else if (k->running_mean) {
		assert_close((double)k->running_mean[c],
			     (double)old_mean[c] +
				     (double)k->momentum * (mean - (double)old_mean[c]),
			     1e-5);
		assert_close((double)k->running_variance[c],
			     (double)old_variance[c] +
				     (double)k->momentum * (unbiased - (double)old_variance[c]),
			     1e-5);
	}
	assert_close((double)k->mean[c], mean, 1e-5);
	assert_close((double)k->inverse[c], 1 / sqrt(variance + (double)k->eps), 1e-5);
}

static void check_results(const struct rfl_host_norm *k, const void *x, const void *residual)
{
	const double high = k->activation == RFL_HOST_RELU6 ? 6 : INFINITY;

	for (int64_t i = 0; i < k->rows * k->columns; i++) {
		const int64_t c = i % k->columns;
		const double slope = (double)k->gamma[c] * (double)k->inverse[c];
		const double product = get(k->type, x, i) * slope;
		const double more = residual ? get(k->type, residual, i) : 0;
		const double v = product - (double)k->mean[c] * slope + (double)k->beta[c] + more;
		const double terms = fabs(product) + fabs(more) + fabs((double)k->beta[c]);
		double y = v;

		if (k->activation != RFL_HOST_NONE)
			y = v < 0 ? 0 : v > high ? high : v;
		check(k->type, k->y, i, y, terms, 0);
		if (k->mask && k->activation == RFL_HOST_NONE)
			assert_int_equal(k->mask[i], 1);
		else if (k->mask && fabs(v) > 1e-5 * terms && fabs(v - 6) > 1e-5 * terms)
			assert_int_equal(k->mask[i], v > 0 && v < high);
	}
}

static void norm_case(const struct norm_case *t)
{
	const int v = t->variant, columns = t->columns, place = (v + columns) % 3;
	const size_t n = (size_t)t->rows * (size_t)columns, bytes = n * rfl_host_size(t->type);
	void *const x = values(t->type, (int64_t)n, 1, 3, 2);
	void *const residual = values(t->type, (int64_t)n, 2, 0, 4);
	void *const x_used = copy_of(x, bytes), *const residual_used = copy_of(residual, bytes);
	void *const apart = room(bytes), *const again = room(bytes);
	float *const old_mean = per_column(columns, 7), *const old_variance =
								per_column(columns, 3);
	struct rfl_host_norm k = {
		.type = t->type,
		.activation = (enum rfl_host_activation)(v % 3),
		.rows = t->rows,
		.columns = columns,
		.running = v / 3 % 2,
		.eps = 1e-5f,
		.momentum = 0.1f,
		.x = x_used,
		.residual = v / 6 % 2 ? residual_used : NULL,
		.mask = v / 12 % 2 ? room(n) : NULL,
		.gamma = per_column(columns, 1),
		.beta = per_column(columns, 9),
		.mean = per_column(columns, 0),
		.inverse = per_column(columns, 0),
		.scratch = scratch_of(columns, t->threads),
	};

	k.y = place == 1 ? x_used : place == 2 && k.residual ? residual_used : apart;
	omp_set_num_threads(t->threads);
	for (int repeat = 0; repeat < 2; repeat++) {
		memcpy(x_used, x, bytes);
		memcpy(residual_used, residual, bytes);
		if (k.running || v / 6 % 2) {
			k.running_mean = copy_of(old_mean, (size_t)columns * sizeof(float));
			k.running_variance = copy_of(old_variance, (size_t)columns * sizeof(float));
		}
		rfl_host_norm(&k);
		for (int c = 0; !repeat && c < columns; c++)
			check_statistics(&k, x, old_mean, old_variance, c);
		if (repeat)
			assert_memory_equal(k.y, again, bytes);
		else
			check_results(&k, x, k.residual ? residual : NULL);
		memcpy(again, k.y, bytes);
		free(k.running_mean);
		free(k.running_variance);
		k.running_mean = k.running_variance = NULL;
	}
	free(k.scratch);
	free(k.inverse);
	free(k.mean);
	free((void *)(uintptr_t)k.beta);
	free((void *)(uintptr_t)k.gamma);
	free(k.mask);
	free(old_variance);
	free(old_mean);
	free(again);
	free(apart);
	free(residual_used);
	free(x_used);
	free(residual);
	free(x);
}

static void norm_matches(void **state)
{
	(void)state;
	for_cases(24, norm_case);
}

/* A mean of 1000 standard deviations must not hide the variance. */
static void norm_keeps_small_variances(void **state)
{
	enum { ROWS = 5000, COLUMNS = 5 };
	float *const x = values(RFL_HOST_F32, ROWS * COLUMNS, 4, 1000, sqrt(3));
	float ones[COLUMNS] = { 1, 1, 1, 1, 1 }, zeros[COLUMNS] = { 0 };
	float mean[COLUMNS], inverse[COLUMNS];
	const struct rfl_host_norm k = {
		.type = RFL_HOST_F32,
		.rows = ROWS,
		.columns = COLUMNS,
		.x = x,
		.y = room(ROWS * COLUMNS * sizeof(*x)),
		.gamma = ones,
		.beta = zeros,
		.mean = mean,
		.inverse = inverse,
		.scratch = scratch_of(COLUMNS, 2),
	};

	(void)state;
	omp_set_num_threads(2);
	rfl_host_norm(&k);
	for (int c = 0; c < COLUMNS; c++)
		check_statistics(&k, x, NULL, NULL, c);
	free(k.scratch);
	free(k.y);
	free(x);
}

struct gradient {
	const void *x, *dy, *dy2; /* copies of what the call may have overwritten */
	const struct rfl_host_norm_gradient *k;
};

static double g_at(const struct gradient *t, int64_t i)
{
	const double g = get(t->k->type, t->dy, i) + (t->dy2 ? get(t->k->type, t->dy2, i) : 0);

	return t->k->mask && !t->k->mask[i] ? 0 : g;
}

static void check_gradient(const struct gradient *t, int c)
{
	const struct rfl_host_norm_gradient *const k = t->k;
	const double inverse = (double)k->inverse[c], mean = (double)k->mean[c];
	const double scale = (double)k->gamma[c] * inverse, rows = (double)k->rows;
	double dbeta = 0, dgamma = 0, sizes = 0, products = 0;

	for (int64_t r = 0; r < k->rows; r++) {
		const double g = g_at(t, r * k->columns + c);

		const double d = (get(k->type, t->x, r * k->columns + c) - mean) * inverse;

		dbeta += g;
		dgamma += g * d;
		sizes += fabs(g);
		products += fabs(g * d);
	}
	assert_true(fabs((double)k->dbeta[c] - dbeta) <= 1e-6 * sizes);
	assert_true(fabs((double)k->dgamma[c] - dgamma) <= 1e-6 * products);
	for (int64_t r = 0; r < k->rows; r++) {
		const int64_t i = r * k->columns + c;
		const double x = get(k->type, t->x, i), g = g_at(t, i);
		const double slope = k->running ? 0 : scale * inverse * dgamma / rows;
		const double centre = k->running ? 0 : scale * dbeta / rows;
		const double terms = scale * (fabs(g) + sizes / rows +
					      products / rows * inverse * (fabs(x) + mean));

		check(k->type, k->dx, i, scale * g - centre - slope * (x - mean), terms,
		      k->g ? scale * fabs(g) : 0);
		if (k->g)
			check(k->type, k->g, i, g, 0, 0);
	}
}

static void gradient_case(const struct norm_case *t)
{
	const int v = t->variant, columns = t->columns, place = (v + columns) % 3;
	const size_t n = (size_t)t->rows * (size_t)columns, bytes = n * rfl_host_size(t->type);
	void *const x = values(t->type, (int64_t)n, 1, 3, 2);
	void *const dy = values(t->type, (int64_t)n, 2, 0, 1);
	void *const dy2 = values(t->type, (int64_t)n, 3, 0.25, 1);
	void *const dy_used = copy_of(dy, bytes), *const dy2_used = copy_of(dy2, bytes);
	void *const g = room(bytes), *const dx = room(bytes), *const again = room(bytes);
	uint8_t *const mask = room(n);
	struct rfl_host_norm_gradient k = {
		.type = t->type,
		.rows = t->rows,
		.columns = columns,
		.running = v / 8 % 2,
		.x = x,
		.dy = dy_used,
		.dy2 = v % 2 ? dy2_used : NULL,
		.mask = v / 2 % 2 ? mask : NULL,
		.gamma = per_column(columns, 1),
		.mean = per_column(columns, 3),
		.inverse = per_column(columns, 9),
		.dgamma = per_column(columns, 0),
		.dbeta = per_column(columns, 0),
		.scratch = scratch_of(columns, t->threads),
	};

	/* g may be dy or dy2, and dx the other of them. */
	if (v / 4 % 2)
		k.g = place == 0 ? g : place == 1 || !k.dy2 ? dy_used : dy2_used;
	k.dx = place == 0 ? dx : k.g == dy_used ? k.dy2 ? dy2_used : dx : dy_used;
	for (size_t i = 0; i < n; i++)
		mask[i] = i * 7 % 5 < 3;
	omp_set_num_threads(t->threads);
	for (int repeat = 0; repeat < 2; repeat++) {
		memcpy(dy_used, dy, bytes);
		memcpy(dy2_used, dy2, bytes);
		rfl_host_norm_gradient(&k);
		if (repeat)
			assert_memory_equal(k.dx, again, bytes);
		memcpy(again, k.dx, bytes);
		for (int c = 0; !repeat && c < columns; c++)
			check_gradient(&(struct gradient){ x, dy, k.dy2 ? dy2 : NULL, &k }, c);
	}
	free(k.scratch);
	free(k.dbeta);
	free(k.dgamma);
	free((void *)(uintptr_t)k.inverse);
	free((void *)(uintptr_t)k.mean);
	free((void *)(uintptr_t)k.gamma);
	free(mask);
	free(again);
	free(dx);
	free(g);
	free(dy2_used);
	free(dy_used);
	free(dy2);
	free(dy);
	free(x);
}

static void norm_gradient_matches(void **state)
{
	(void)state;
	for_cases(16, gradient_case);
}

/* ---- elementwise ---- */

enum operation {
	ADD,
	MULTIPLY,
	AFFINE,
	HARD_SIGMOID,
	HARD_SIGMOID_GRADIENT,
	RELU_GRADIENT,
	RELU6_GRADIENT,
	NO_GRADIENT,
	OPERATIONS,
};

static void call(enum operation o, enum rfl_host_type type, int64_t n, const void *a, const void *b,
		 void *y)
{
	const size_t bytes = (size_t)n * rfl_host_size(type);

	switch (o) {
	case ADD:
		rfl_host_add(type, n, a, b, y);
		return;
	case MULTIPLY:
		rfl_host_multiply(type, n, a, b, y);
		return;
	case AFFINE:
		rfl_host_affine(type, n, a, 1.75f, -0.5f, y);
		return;
	case HARD_SIGMOID:
		rfl_host_hard_sigmoid(type, n, a, y);
		return;
	case HARD_SIGMOID_GRADIENT:
		rfl_host_hard_sigmoid_gradient(type, n, a, b, y);
		return;
	default:
		if (y != b)
			memcpy(y, b, bytes);
		rfl_host_relu_gradient(type,
				       o == RELU_GRADIENT    ? RFL_HOST_RELU
				       : o == RELU6_GRADIENT ? RFL_HOST_RELU6
							     : RFL_HOST_NONE,
				       n, a, y);
	}
}

static double wanted(enum operation o, double a, double b)
{
	switch (o) {
	case ADD:
		return a + b;
	case MULTIPLY:
		return a * b;
	case AFFINE:
		return a * 1.75 - 0.5;
	case HARD_SIGMOID:
		return fmin(fmax(a / 6 + 0.5, 0), 1);
	case HARD_SIGMOID_GRADIENT:
		return fabs(a) < 3 ? b / 6 : 0;
	case RELU_GRADIENT:
		return a > 0 ? b : 0;
	case RELU6_GRADIENT:
		return a > 0 && a < 6 ? b : 0;
	default:
		return b;
	}
}

static void elementwise_case(enum operation o, enum rfl_host_type type, int64_t n)
{
	const size_t bytes = (size_t)n * rfl_host_size(type);
	void *const a = values(type, n, 1, 2, 6), *const b = values(type, n, 2, 0, 2);
	void *const first = room(bytes), *const y = room(bytes);
	const bool in_a = o != RELU_GRADIENT && o != RELU6_GRADIENT && o != NO_GRADIENT;

	/* Where activations bend. */
	static const double bounds[] = { 0, 6, -3, 3, -0.0 };
	for (int64_t i = 0; i < n && i < 5; i++)
		put(type, a, i, bounds[i]);
	omp_set_num_threads(1);
	call(o, type, n, a, b, first);
	for (int64_t i = 0; i < n; i++) {
		const double va = get(type, a, i), vb = get(type, b, i);

		check(type, first, i, wanted(o, va, vb), fabs(va) + fabs(vb), 0);
	}
	for (int threads = 1; threads <= MOST_THREADS; threads++) {
		omp_set_num_threads(threads);
		call(o, type, n, a, b, y);
		assert_memory_equal(y, first, bytes);
		memcpy(y, b, bytes);
		call(o, type, n, a, y, y);
		assert_memory_equal(y, first, bytes);
		memcpy(y, a, bytes);
		if (in_a)
			call(o, type, n, y, b, y);
		else
			call(o, type, n, a, b, y);
		assert_memory_equal(y, first, bytes);
	}
	free(y);
	free(first);
	free(b);
	free(a);
}

static void elementwise_matches(void **state)
{
	(void)state;
	for (int o = 0; o < OPERATIONS; o++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(lengths); i++) {
			elementwise_case((enum operation)o, RFL_HOST_F32, lengths[i]);
			elementwise_case((enum operation)o, RFL_HOST_BF16, lengths[i]);
		}
}

/* Results are rounded to nearest, ties to even; NaN and infinities stay. */
static void bf16_rounds_to_even(void **state)
{
	static const uint16_t odd[][3] = {
		{ 0x7f81, 0x0000, 0x7fc1 }, /* NaN */
		{ 0xffff, 0x3f80, 0xffff }, /* NaN */
		{ 0x7f80, 0xc000, 0x7f80 }, /* infinity */
		{ 0x7f7f, 0x7f7f, 0x7f80 }, /* overflow */
		{ 0x8000, 0x8000, 0x8000 }, /* -0 */
		{ 0x0001, 0x0001, 0x0002 }, /* subnormal */
	};
	enum { ODD = RFL_ARRAY_LEN(odd), N = 20000 };
	uint16_t *const a = values(RFL_HOST_BF16, N, 1, 0, 1);
	uint16_t *const b = values(RFL_HOST_BF16, N, 2, 0, 1), *const y = room(N * sizeof(*y));

	(void)state;
	for (int i = 0; i < ODD; i++) {
		a[i] = odd[i][0];
		b[i] = odd[i][1];
	}
	rfl_host_add(RFL_HOST_BF16, N, a, b, y);
	for (int64_t i = 0; i < N; i++)
		assert_int_equal(y[i], i < ODD ? odd[i][2]
					       : rfl_ieee_pack(&rfl_ieee_bf16,
							       get(RFL_HOST_BF16, a, i) +
								       get(RFL_HOST_BF16, b, i)));
	free(y);
	free(b);
	free(a);
}

/* ---- rows and columns ---- */

static void rows_case(const struct norm_case *t)
{
	enum { SAMPLES = 3 };
	const int64_t each = t->rows * t->columns, n = SAMPLES * each, m = SAMPLES * t->columns;
	const size_t bytes = (size_t)n * rfl_host_size(t->type);
	void *const x = values(t->type, n, 1, 1, 2), *const dy = values(t->type, n, 2, 0, 1);
	void *const factor = values(t->type, m, 3, 0, 1), *const y = room(bytes);
	void *const in_place = copy_of(x, bytes);
	void *const d = room((size_t)m * rfl_host_size(t->type));

	omp_set_num_threads(t->threads);
	rfl_host_scale_rows(t->type, SAMPLES, t->rows, t->columns, x, factor, y);
	rfl_host_scale_rows(t->type, SAMPLES, t->rows, t->columns, in_place, factor, in_place);
	assert_memory_equal(in_place, y, bytes);
	rfl_host_scale_rows_gradient(t->type, SAMPLES, t->rows, t->columns, x, dy, d);
	for (int64_t f = 0; f < m; f++) {
		double sum = 0, sizes = 0;

		for (int64_t r = 0; r < t->rows; r++) {
			const int64_t i = f / t->columns * each + r * t->columns + f % t->columns;
			const double v = get(t->type, x, i), product = v * get(t->type, dy, i);

			check(t->type, y, i, v * get(t->type, factor, f), 0, 0);
			sum += product;
			sizes += fabs(product);
		}
		check(t->type, d, f, sum, sizes, 0);
	}
	free(d);
	free(in_place);
	free(y);
	free(factor);
	free(dy);
	free(x);
}

static void scaled_rows_match(void **state)
{
	(void)state;
	for_cases(MOST_THREADS, rows_case);
}

/* Columns into a wider matrix, which is otherwise unchanged, and added to it. */
static void columns_case(const struct norm_case *t)
{
	const int64_t wide = t->columns + 9, n = t->rows * wide, from_wide = t->columns + 4;
	void *const from = values(t->type, t->rows * from_wide, 1, 0, 1);
	void *const old = values(t->type, n, 2, 0, 1);
	void *const to = copy_of(old, (size_t)n * rfl_host_size(t->type));
	const bool add = t->variant % 2;

	omp_set_num_threads(t->threads);
	rfl_host_copy_columns(t->type, t->rows, t->columns,
			      (struct rfl_host_columns){ to, wide, 5 },
			      (struct rfl_host_columns){ from, from_wide, 3 }, add);
	for (int64_t i = 0; i < n; i++) {
		const int64_t row = i / wide, c = i % wide - 5;
		const double before = get(t->type, old, i);

		if (c < 0 || c >= t->columns)
			assert_true(get(t->type, to, i) == before);
		else if (add)
			check(t->type, to, i, before + get(t->type, from, row * from_wide + 3 + c),
			      1, 0);
		else
			assert_true(get(t->type, to, i) ==
				    get(t->type, from, row * from_wide + 3 + c));
	}
	free(to);
	free(old);
	free(from);
}

static void columns_are_copied(void **state)
{
	(void)state;
	for_cases(2 * MOST_THREADS, columns_case);
}

static void shuffle_case(const struct norm_case *t)
{
	const int groups = 1 + t->variant, columns = t->columns, each = columns / groups;
	const size_t bytes = (size_t)(t->rows * columns) * rfl_host_size(t->type);
	void *const x = values(t->type, t->rows * columns, 1, 0, 1), *const y = room(bytes);
	void *const back = room(bytes);

	omp_set_num_threads(t->threads);
	if (columns % groups == 0) {
		rfl_host_shuffle(t->type, t->rows, columns, groups, x, y);
		for (int64_t i = 0; i < t->rows * columns; i++) {
			const int64_t c = i % columns, row = i - c;

			assert_true(get(t->type, y, row + c % each * groups + c / each) ==
				    get(t->type, x, i));
		}
		rfl_host_shuffle(t->type, t->rows, columns, each, y, back);
		assert_memory_equal(back, x, bytes);
	}
	free(back);
	free(y);
	free(x);
}

static void channels_are_shuffled(void **state)
{
	(void)state;
	for_cases(4, shuffle_case);
}

/* ---- inputs ---- */

static void input_case(struct rfl_batch batch, enum rfl_host_type type, int64_t channels)
{
	enum { HEIGHT = 67, WIDTH = 45, AREA = HEIGHT * WIDTH };
	const int64_t n = batch.n * channels * AREA;
	uint8_t *const pixels = room((size_t)n);
	float *const images = values(RFL_HOST_F32, n, 1, 0, 2);
	void *const y = room((size_t)n * rfl_host_size(type));

	for (int64_t i = 0; i < n; i++)
		pixels[i] = (uint8_t)(i * 37 % 256);
	if (batch.kind == RFL_INPUT_PIXELS)
		batch.pixels = pixels;
	else
		batch.images = images;
	for (int threads = 1; threads <= MOST_THREADS; threads++) {
		omp_set_num_threads(threads);
		rfl_host_input(&batch, channels, HEIGHT, WIDTH, type, y);
		for (int64_t i = 0; i < n; i++) {
			const int64_t c = i % channels, pixel = i / channels;
			const int64_t from =
				batch.layout == RFL_LAYOUT_NHWC
					? i
					: (pixel / AREA * channels + c) * AREA + pixel % AREA;
			float want = images[from];

			if (batch.kind == RFL_INPUT_PIXELS)
				want = ((float)pixels[from] / 255.0f - batch.scale->mean[c]) /
				       batch.scale->std[c];
			assert_true(get(type, y, i) ==
				    (type == RFL_HOST_F32
					     ? (double)want
					     : rfl_ieee_round(&rfl_ieee_bf16, (double)want)));
		}
	}
	free(y);
	free(images);
	free(pixels);
}

static void inputs_are_converted(void **state)
{
	static const struct rfl_pixel_scale scale = { { 0.485f, 0.456f, 0.406f },
						      { 0.229f, 0.224f, 0.225f } };

	(void)state;
	for (int i = 0; i < 16; i++)
		input_case((struct rfl_batch){ .n = 2,
					       .kind = i & 1 ? RFL_INPUT_PIXELS : RFL_INPUT_IMAGES,
					       .layout = i & 2 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW,
					       .scale = &scale },
			   i & 4 ? RFL_HOST_BF16 : RFL_HOST_F32, i & 8 ? 1 : 3);
}

/* ---- dropout ---- */

/* A probability of output / 2^32 keeps the unit, the next larger one does not. */
static void masks_are_philox(void **state)
{
	static const uint64_t keys[] = { 0, 0xffffffffffffffff, 0x0123456789abcdef };
	static const uint64_t counters[] = { 0, 0xfffffffe, 0xfedcba9876543210 };
	enum { N = 13 };
	float x[N] = { 0 }, y[N];

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		const uint64_t key = keys[i % 3], counter = counters[i / 3];

		for (uint32_t unit = 0; unit < N; unit++) {
			const uint32_t k[2] = { (uint32_t)key, (uint32_t)(key >> 32) };
			const uint32_t c[4] = { unit / 4, 0, (uint32_t)counter,
						(uint32_t)(counter >> 32) };
			uint32_t out[4];
			uint8_t mask[N];

			rfl_philox(k, c, out);
			for (unsigned more = 0; more < 2; more++) {
				rfl_host_dropout(RFL_HOST_F32, N, N,
						 ((double)out[unit % 4] + more) * 0x1p-32, key,
						 counter, x, mask, y);
				assert_int_equal(mask[unit], !more);
			}
		}
	}
}

static void dropout_case(enum rfl_host_type type, int64_t n, int64_t units, double probability)
{
	const size_t bytes = (size_t)n * rfl_host_size(type);
	void *const x = values(type, n, 1, 0, 1), *const y = room(bytes),
		    *const first = room(bytes);
	uint8_t *const mask = room((size_t)units), *const first_mask = room((size_t)units);
	double kept = 0;

	omp_set_num_threads(1);
	rfl_host_dropout(type, n, units, probability, 5, 77, x, first_mask, first);
	for (int64_t i = 0; i < n; i++)
		check(type, first, i,
		      first_mask[i * units / n] ? get(type, x, i) / (1 - probability) : 0, 0, 0);
	for (int64_t i = 0; i < units; i++)
		kept += first_mask[i];
	/* Five standard deviations. */
	assert_true(fabs(kept - (1 - probability) * (double)units) <=
		    5 * sqrt(probability * (1 - probability) * (double)units));
	for (int threads = 1; threads <= MOST_THREADS; threads++) {
		omp_set_num_threads(threads);
		memcpy(y, x, bytes);
		rfl_host_dropout(type, n, units, probability, 5, 77, y, mask, y);
		assert_memory_equal(y, first, bytes);
		assert_memory_equal(mask, first_mask, (size_t)units);
		rfl_host_dropout_gradient(type, n, units, probability, mask, x, y);
		assert_memory_equal(y, first, bytes);
	}
	free(first_mask);
	free(mask);
	free(first);
	free(y);
	free(x);
}

static void dropout_matches(void **state)
{
	static const double probabilities[] = { 0, 0.1, 0.5, 1 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(probabilities); i++)
		for (int type = RFL_HOST_F32; type <= RFL_HOST_BF16; type++) {
			dropout_case((enum rfl_host_type)type, 50001, 50001, probabilities[i]);
			dropout_case((enum rfl_host_type)type, 7 * 3001, 7, probabilities[i]);
			dropout_case((enum rfl_host_type)type, 3, 3, probabilities[i]);
		}
}

/* ---- loss ---- */

static void loss_case(enum rfl_host_type type, int64_t rows, int64_t classes)
{
	const int64_t n = rows * classes;
	void *const logits = values(type, n, 1, 20, 8);
	int64_t *const labels = room((size_t)rows * sizeof(*labels));
	void *const gradient = room((size_t)n * rfl_host_size(type));
	const struct rfl_host_loss k = { type, rows, classes, logits, labels, gradient, 0.25 };
	struct rfl_host_loss without = k;
	double want = 0;
	int64_t right = 0, correct;

	without.gradient = NULL;
	/* Half of the labels are the largest; of two equals only the first counts. */
	for (int64_t r = 0; r < rows; r++) {
		labels[r] = r * 7 % classes;
		put(type, logits, r * classes + r % classes, 30);
		put(type, logits, r * classes + (r + r % 2) % classes, 30);
		labels[r] = r % 4 < 2 ? (r + r % 2) % classes : labels[r];
	}
	for (int64_t r = 0; r < rows; r++) {
		double sum = 0;
		int64_t best = 0;

		for (int64_t c = 0; c < classes; c++) {
			sum += exp(get(type, logits, r * classes + c));
			if (get(type, logits, r * classes + c) >
			    get(type, logits, r * classes + best))
				best = c;
		}
		right += best == labels[r];
		want += log(sum) - get(type, logits, r * classes + labels[r]);
	}
	for (int threads = 1; threads <= MOST_THREADS; threads++) {
		double loss, again;

		omp_set_num_threads(threads);
		loss = rfl_host_cross_entropy(&k, &correct);
		assert_true(fabs(loss - want / (double)rows) <= 1e-6 * (1 + want / (double)rows));
		assert_int_equal(correct, right);
		again = rfl_host_cross_entropy(&without, &correct);
		assert_memory_equal(&again, &loss, sizeof(loss));
		assert_int_equal(correct, right);
		for (int64_t i = 0; i < n; i++) {
			const int64_t r = i / classes;
			double sum = 0;

			for (int64_t c = 0; i % 97 == 0 && c < classes; c++)
				sum += exp(get(type, logits, r * classes + c) -
					   get(type, logits, i));
			if (i % 97 == 0)
				check(type, gradient, i,
				      0.25 * (1 / sum - (i % classes == labels[r])) / (double)rows,
				      1 / (double)rows, 0);
		}
	}
	free(gradient);
	free(labels);
	free(logits);
}

static void loss_matches(void **state)
{
	static const int64_t classes[] = { 1, 2, 10, 1000 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(classes); i++)
		for (int type = RFL_HOST_F32; type <= RFL_HOST_BF16; type++) {
			loss_case((enum rfl_host_type)type, 1, classes[i]);
			loss_case((enum rfl_host_type)type, 7, classes[i]);
			loss_case((enum rfl_host_type)type, 101, classes[i]);
		}
}

/* ---- updates ---- */

enum rule { SGD, SGD_MOMENTUM, ADAM, ADAMW, RULES };
static const double beta1 = 0.9, beta2 = 0.999;

struct parameter {
	double p, mean, square;
};

/* One step as runner/engine.h defines it. */
static void step_of(enum rule rule, const struct rfl_host_update *k, int step, double gradient,
		    struct parameter *t)
{
	const double lr = (double)k->lr, decay = (double)k->weight_decay;
	double g = gradient * (double)k->gradient_scale + (rule == ADAMW ? 0 : decay * t->p);

	if (rule == SGD || rule == SGD_MOMENTUM) {
		t->mean = (double)k->momentum * t->mean + g;
		t->p -= lr * (rule == SGD ? g : t->mean);
		return;
	}
	if (rule == ADAMW)
		t->p *= 1 - lr * decay;
	t->mean = beta1 * t->mean + (1 - beta1) * g;
	t->square = beta2 * t->square + (1 - beta2) * g * g;
	t->p -= lr / (1 - pow(beta1, step)) * t->mean /
		(sqrt(t->square) / sqrt(1 - pow(beta2, step)) + (double)k->eps);
}

static void update_case(enum rule rule, int64_t n, int threads, float *result)
{
	enum { STEPS = 3 };
	float *const p = values(RFL_HOST_F32, n, 1, 0, 1), *const start = copy_of(p, (size_t)n * 4);
	float *const mean = values(RFL_HOST_F32, n, 0, 0, 0);
	float *const square = values(RFL_HOST_F32, n, 0, 0, 0);
	float *const g = values(RFL_HOST_F32, n, 2, 0, 3);
	struct rfl_host_update k = {
		.n = n,
		.p = p,
		.mean = rule == SGD ? NULL : mean,
		.square = rule == ADAM || rule == ADAMW ? square : NULL,
		.g = g,
		.gradient_scale = 0.5f,
		.lr = 0.1f,
		.weight_decay = 0.01f,
		.momentum = 0.9f,
		.beta1 = (float)beta1,
		.beta2 = (float)beta2,
		.rest1 = (float)(1 - beta1),
		.rest2 = (float)(1 - beta2),
		.eps = 1e-8f,
		.decoupled = rule == ADAMW,
	};

	omp_set_num_threads(threads);
	for (int step = 1; step <= STEPS; step++) {
		k.correction1 = (float)(1 - pow(beta1, step));
		k.correction2 = (float)(1 - pow(beta2, step));
		if (k.square)
			rfl_host_adam(&k);
		else
			rfl_host_sgd(&k);
	}
	for (int64_t i = 0; i < n; i++) {
		struct parameter t = { .p = (double)start[i] };

		for (int step = 1; step <= STEPS; step++)
			step_of(rule, &k, step, (double)g[i], &t);
		assert_true(fabs((double)p[i] - t.p) <= 2e-6);
		if (k.mean)
			assert_true(fabs((double)mean[i] - t.mean) <= 2e-6 * (1 + fabs(t.mean)));
		if (k.square)
			assert_true(fabs((double)square[i] - t.square) <= 1e-6 * t.square + 1e-9);
	}
	memcpy(result, p, (size_t)n * sizeof(*p));
	free(g);
	free(square);
	free(mean);
	free(start);
	free(p);
}

static void updates_match(void **state)
{
	static float first[20011], other[20011];

	(void)state;
	for (int rule = 0; rule < RULES; rule++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(lengths); i++) {
			update_case((enum rule)rule, lengths[i], 1, first);
			for (int threads = 2; threads <= MOST_THREADS; threads++) {
				update_case((enum rule)rule, lengths[i], threads, other);
				assert_memory_equal(other, first, (size_t)lengths[i] * 4);
			}
		}
}

static void sums_match(void **state)
{
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(lengths); i++) {
		const int64_t n = lengths[i];
		float *const x = values(RFL_HOST_F32, n, 1, 0.5, 1);
		float *const y = values(RFL_HOST_F32, n, 2, 0, 1), *const old = copy_of(
									   y, (size_t)n * 4);
		double want = 0;

		for (int64_t j = 0; j < n; j++)
			want += (double)x[j] * (double)x[j];
		for (int threads = 1; threads <= MOST_THREADS; threads++) {
			double sum, again;

			omp_set_num_threads(threads);
			sum = rfl_host_sum_squares(x, n);
			again = rfl_host_sum_squares(x, n);
			assert_close(sum, want, 1e-13);
			assert_memory_equal(&again, &sum, sizeof(sum));
		}
		rfl_host_accumulate(y, x, n);
		for (int64_t j = 0; j < n; j++)
			assert_true(y[j] == old[j] + x[j]);
		free(old);
		free(y);
		free(x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(norm_matches),
		cmocka_unit_test(norm_keeps_small_variances),
		cmocka_unit_test(norm_gradient_matches),
		cmocka_unit_test(elementwise_matches),
		cmocka_unit_test(bf16_rounds_to_even),
		cmocka_unit_test(scaled_rows_match),
		cmocka_unit_test(columns_are_copied),
		cmocka_unit_test(channels_are_shuffled),
		cmocka_unit_test(inputs_are_converted),
		cmocka_unit_test(masks_are_philox),
		cmocka_unit_test(dropout_matches),
		cmocka_unit_test(loss_matches),
		cmocka_unit_test(updates_match),
		cmocka_unit_test(sums_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
