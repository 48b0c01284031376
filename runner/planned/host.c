/*
 * host.c - the loops of the planned engine but batch norm, see host_norm.c. Every driver fills a
 * struct and calls run(), which gives each thread a part of the elements.
 */
#include "runner/planned/host.h"

#include <math.h>
#include <string.h>

#include "data/random.h"
#include "runner/planned/host_loop.h"

#define FEW      8192 /* elements that one thread finishes before the others have started */
#define TOGETHER 64   /* elements that threads do not share, at least a cache line */

typedef void loop_fn(const void *k, int64_t first, int64_t end);

/* Run a loop over n elements, in parts of whole units. */
static void run(loop_fn *loop, const void *k, int64_t n, int64_t unit)
{
#pragma omp parallel if (n > FEW)
	{
		const struct loop_range r = loop_share(n, unit);

		if (r.first < r.end)
			loop(k, r.first, r.end);
	}
}

/* Define a loop for run() whose struct has the type. */
#define TYPED_LOOP(name, loop, structure)                                  \
	LOOP_CLONES void name(const void *ctx, int64_t first, int64_t end) \
	{                                                                  \
		const struct structure *const k = ctx;                     \
                                                                           \
		LOOP_TYPED(loop, k->type, k, first, end);                  \
	}

/* Add the threads' parts of a sum in the order of the threads, which keeps its bits. */
static void add_in_order(double *sum, double part)
{
	const int threads = omp_get_num_threads();

#pragma omp for ordered schedule(static, 1)
	for (int t = 0; t < threads; t++) {
#pragma omp ordered
		*sum += part;
	}
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
};

struct elements {
	enum rfl_host_type type;
	enum operation operation;
	const void *a, *b; /* b is a where there is only one operand */
	void *y;
	float scale, shift;
};

LOOP_INLINE float result(enum operation operation, float a, float b, float scale, float shift)
{
	float v = 0;

	switch (operation) {
	case ADD:
		return a + b;
	case MULTIPLY:
		return a * b;
	case AFFINE:
		return a * scale + shift;
	case HARD_SIGMOID:
		v = a / 6 + 0.5f;
		v = v < 0 ? 0 : v;
		return v > 1 ? 1 : v;
	case HARD_SIGMOID_GRADIENT:
		return fabsf(a) < 3 ? b / 6 : 0;
	case RELU_GRADIENT:
		return a > 0 ? b : 0;
	case RELU6_GRADIENT:
		return a > 0 && a < 6 ? b : 0;
	}
	return v;
}

LOOP_INLINE void elements_of(enum rfl_host_type type, enum operation operation,
			     const struct elements *k, int64_t first, int64_t end)
{
	const void *const a = k->a, *const b = k->b;
	const float scale = k->scale, shift = k->shift;
	void *const y = k->y;

#pragma omp simd
	for (int64_t i = first; i < end; i++)
		loop_store(type, y, i,
			   result(operation, loop_load(type, a, i), loop_load(type, b, i), scale,
				  shift));
}

LOOP_CLONES void elements(const void *ctx, int64_t first, int64_t end)
{
	const struct elements *const k = ctx;

#define OPERATION(operation)                                                \
	case operation:                                                     \
		LOOP_TYPED(elements_of, k->type, operation, k, first, end); \
		break;
	switch (k->operation) {
		OPERATION(ADD)
		OPERATION(MULTIPLY)
		OPERATION(AFFINE)
		OPERATION(HARD_SIGMOID)
		OPERATION(HARD_SIGMOID_GRADIENT)
		OPERATION(RELU_GRADIENT)
		OPERATION(RELU6_GRADIENT)
	}
#undef OPERATION
}

static void run_elements(const struct elements *k, int64_t n)
{
	run(elements, k, n, TOGETHER);
}

void rfl_host_relu_gradient(enum rfl_host_type type, enum rfl_host_activation activation, int64_t n,
			    const void *y, void *dy)
{
	const enum operation o = activation == RFL_HOST_RELU6 ? RELU6_GRADIENT : RELU_GRADIENT;

	if (activation != RFL_HOST_NONE)
		run_elements(&(struct elements){ type, o, y, dy, dy, 0, 0 }, n);
}

void rfl_host_hard_sigmoid(enum rfl_host_type type, int64_t n, const void *x, void *y)
{
	run_elements(&(struct elements){ type, HARD_SIGMOID, x, x, y, 0, 0 }, n);
}

void rfl_host_hard_sigmoid_gradient(enum rfl_host_type type, int64_t n, const void *x,
				    const void *dy, void *dx)
{
	run_elements(&(struct elements){ type, HARD_SIGMOID_GRADIENT, x, dy, dx, 0, 0 }, n);
}

void rfl_host_add(enum rfl_host_type type, int64_t n, const void *a, const void *b, void *y)
{
	run_elements(&(struct elements){ type, ADD, a, b, y, 0, 0 }, n);
}

void rfl_host_affine(enum rfl_host_type type, int64_t n, const void *x, float scale, float shift,
		     void *y)
{
	run_elements(&(struct elements){ type, AFFINE, x, x, y, scale, shift }, n);
}

void rfl_host_multiply(enum rfl_host_type type, int64_t n, const void *a, const void *b, void *y)
{
	run_elements(&(struct elements){ type, MULTIPLY, a, b, y, 0, 0 }, n);
}

void rfl_host_accumulate(float *y, const float *x, int64_t n)
{
	rfl_host_add(RFL_HOST_F32, n, y, x, y);
}

/* ---- rows ---- */

struct rows {
	enum rfl_host_type type;
	int64_t rows, columns; /* rows of a sample */
	const void *x, *other; /* the factors, or dy */
	void *y;
};

LOOP_INLINE void scale_rows_of(enum rfl_host_type type, const struct rows *k, int64_t first,
			       int64_t end)
{
	const int64_t columns = k->columns;
	const void *const x = k->x, *const factor = k->other;
	void *const y = k->y;

	for (int64_t i = first; i < end; i += columns) {
		const int64_t f = i / columns / k->rows * columns;

#pragma omp simd
		for (int64_t j = 0; j < columns; j++)
			loop_store(type, y, i + j,
				   loop_load(type, x, i + j) * loop_load(type, factor, f + j));
	}
}

TYPED_LOOP(scale_rows, scale_rows_of, rows)

void rfl_host_scale_rows(enum rfl_host_type type, int64_t samples, int64_t rows, int columns,
			 const void *x, const void *factor, void *y)
{
	const struct rows k = { type, rows, columns, x, factor, y };

	run(scale_rows, &k, samples * rows * columns, columns);
}

/* Whole samples, in groups of columns whose sums fit into the first cache. */
LOOP_INLINE void sum_rows_of(enum rfl_host_type type, const struct rows *k, int64_t first,
			     int64_t end)
{
	enum { GROUP = 256 };
	const int64_t columns = k->columns, sample = k->rows * columns;
	const void *const x = k->x, *const dy = k->other;
	double sum[GROUP];

	for (int64_t s = first; s < end; s += sample)
		for (int64_t c = 0; c < columns; c += GROUP) {
			const int64_t n = columns - c < GROUP ? columns - c : GROUP;

			memset(sum, 0, sizeof(sum));
			for (int64_t i = s + c; i < s + sample; i += columns) {
#pragma omp simd
				for (int64_t j = 0; j < n; j++)
					sum[j] += (double)(loop_load(type, x, i + j) *
							   loop_load(type, dy, i + j));
			}
			for (int64_t j = 0; j < n; j++)
				loop_store(type, k->y, s / k->rows + c + j, (float)sum[j]);
		}
}

TYPED_LOOP(sum_rows, sum_rows_of, rows)

void rfl_host_scale_rows_gradient(enum rfl_host_type type, int64_t samples, int64_t rows,
				  int columns, const void *x, const void *dy, void *d)
{
	const struct rows k = { type, rows, columns, x, dy, d };

	run(sum_rows, &k, samples * rows * columns, rows * columns);
}

/* ---- copies ---- */

struct copy {
	enum rfl_host_type type;
	bool add;
	int64_t columns;
	struct rfl_host_columns to, from;
};

LOOP_INLINE void add_columns(enum rfl_host_type type, const struct copy *k, int64_t to,
			     int64_t from)
{
	const void *const x = k->from.data;
	void *const y = k->to.data;

#pragma omp simd
	for (int64_t j = 0; j < k->columns; j++)
		loop_store(type, y, to + j,
			   loop_load(type, y, to + j) + loop_load(type, x, from + j));
}

LOOP_CLONES void copy_columns(const void *ctx, int64_t first, int64_t end)
{
	const struct copy *const k = ctx;
	const size_t size = rfl_host_size(k->type);

	for (int64_t row = first / k->columns; row < end / k->columns; row++) {
		const int64_t to = row * k->to.stride + k->to.first;
		const int64_t from = row * k->from.stride + k->from.first;

		if (k->add)
			LOOP_TYPED(add_columns, k->type, k, to, from);
		else
			memcpy((char *)k->to.data + (size_t)to * size,
			       (const char *)k->from.data + (size_t)from * size,
			       (size_t)k->columns * size);
	}
}

void rfl_host_copy_columns(enum rfl_host_type type, int64_t rows, int64_t columns,
			   struct rfl_host_columns to, struct rfl_host_columns from, bool add)
{
	const struct copy k = { type, add, columns, to, from };

	run(copy_columns, &k, rows * columns, columns);
}

struct shuffle {
	enum rfl_host_type type;
	bool apart; /* the parts are interleaved in x, otherwise in y */
	int64_t parts, columns;
	const void *x;
	void *y;
};

LOOP_INLINE void shuffle_of(enum rfl_host_type type, bool apart, int64_t parts,
			    const struct shuffle *k, int64_t first, int64_t end)
{
	const int64_t n = k->columns / parts;
	const void *const x = k->x;
	void *const y = k->y;

	for (int64_t row = first; row < end; row += k->columns) {
#pragma omp simd
		for (int64_t i = 0; i < n; i++) {
			for (int64_t p = 0; p < parts; p++) {
				const int64_t together = row + i * parts + p,
					      alone = row + p * n + i;
				const int64_t from = apart ? together : alone;
				const int64_t to = apart ? alone : together;

				if (type == RFL_HOST_F32)
					((float *)y)[to] = ((const float *)x)[from];
				else
					((uint16_t *)y)[to] = ((const uint16_t *)x)[from];
			}
		}
	}
}

/* Two parts are what most networks have; a constant lets the compiler vectorise the loop. */
LOOP_INLINE void shuffle_parts(enum rfl_host_type type, const struct shuffle *k, int64_t first,
			       int64_t end)
{
	if (k->parts == 2 && k->apart)
		shuffle_of(type, true, 2, k, first, end);
	else if (k->parts == 2)
		shuffle_of(type, false, 2, k, first, end);
	else
		shuffle_of(type, k->apart, k->parts, k, first, end);
}

TYPED_LOOP(shuffle, shuffle_parts, shuffle)

void rfl_host_shuffle(enum rfl_host_type type, int64_t rows, int64_t columns, int64_t groups,
		      const void *x, void *y)
{
	const int64_t inverse = columns / groups;
	const bool apart = inverse < groups;
	const struct shuffle k = { type, apart, apart ? inverse : groups, columns, x, y };

	run(shuffle, &k, rows * columns, columns);
}

struct input {
	const struct rfl_batch *batch;
	enum rfl_host_type type;
	int64_t channels, area, width;
	void *y;
	float table[3][256]; /* of pixels */
};

/* Whole rows of images. */
static void input_rows(const void *ctx, int64_t first, int64_t end)
{
	const struct input *const k = ctx;
	const struct rfl_batch *const b = k->batch;
	const bool nhwc = b->layout == RFL_LAYOUT_NHWC, pixels = b->kind == RFL_INPUT_PIXELS;
	const int64_t channels = k->channels, image = k->area * channels;

	for (int64_t i = first; i < end; i += k->width * channels)
		for (int64_t c = 0; c < channels; c++) {
			const int64_t start =
				nhwc ? i + c
				     : i / image * image + c * k->area + i % image / channels;
			const int64_t step = nhwc ? channels : 1;

			for (int64_t x = 0; x < k->width; x++) {
				const int64_t from = start + x * step;

				loop_store(k->type, k->y, i + x * channels + c,
					   pixels ? k->table[c][b->pixels[from]] : b->images[from]);
			}
		}
}

void rfl_host_input(const struct rfl_batch *batch, int64_t channels, int64_t height, int64_t width,
		    enum rfl_host_type type, void *y)
{
	struct input k = { .batch = batch,
			   .type = type,
			   .channels = channels,
			   .area = height * width,
			   .width = width,
			   .y = y };

	for (int64_t c = 0; batch->kind == RFL_INPUT_PIXELS && c < channels; c++)
		for (int v = 0; v < 256; v++)
			k.table[c][v] =
				((float)v / 255.0f - batch->scale->mean[c]) / batch->scale->std[c];
	run(input_rows, &k, batch->n * channels * k.area, width * channels);
}

/* ---- dropout ---- */

struct dropout {
	enum rfl_host_type type;
	int64_t each; /* elements of a unit */
	float scale;
	const uint8_t *mask;
	const void *x;
	void *y;
};

struct draw {
	uint64_t key, counter, threshold;
	uint8_t *mask;
};

/* Parts begin with a multiple of 4. */
static void draw(const void *ctx, int64_t first, int64_t end)
{
	const struct draw *const k = ctx;

	for (int64_t i = first; i < end; i += 4) {
		const uint64_t block = (uint64_t)i / 4;
		const uint32_t key[] = { (uint32_t)k->key, (uint32_t)(k->key >> 32) };
		const uint32_t counter[] = { (uint32_t)block, (uint32_t)(block >> 32),
					     (uint32_t)k->counter, (uint32_t)(k->counter >> 32) };
		uint32_t out[4];

		rfl_philox(key, counter, out);
		for (int64_t j = 0; j < 4 && i + j < end; j++)
			k->mask[i + j] = out[j] >= k->threshold;
	}
}

LOOP_INLINE void drop_of(enum rfl_host_type type, const struct dropout *k, int64_t first,
			 int64_t end)
{
	const uint8_t *const mask = k->mask;
	const float scale = k->scale;
	const void *const x = k->x;
	void *const y = k->y;

	if (k->each == 1) {
#pragma omp simd
		for (int64_t i = first; i < end; i++)
			loop_store(type, y, i, mask[i] ? loop_load(type, x, i) * scale : 0);
		return;
	}
	while (first < end) {
		const int64_t unit = first / k->each, after = (unit + 1) * k->each;
		const int64_t stop = after < end ? after : end;
		const bool keep = mask[unit];

#pragma omp simd
		for (int64_t i = first; i < stop; i++)
			loop_store(type, y, i, keep ? loop_load(type, x, i) * scale : 0);
		first = stop;
	}
}

TYPED_LOOP(drop, drop_of, dropout)

void rfl_host_dropout_gradient(enum rfl_host_type type, int64_t n, int64_t units,
			       double probability, const uint8_t *mask, const void *dy, void *dx)
{
	const float scale = (float)(1 / (1 - probability));
	const struct dropout k = { type, n / units, scale, mask, dy, dx };

	run(drop, &k, n, TOGETHER);
}

void rfl_host_dropout(enum rfl_host_type type, int64_t n, int64_t units, double probability,
		      uint64_t key, uint64_t counter, const void *x, uint8_t *mask, void *y)
{
	const struct draw k = { key, counter, (uint64_t)ceil(probability * 0x1p32), mask };

	run(draw, &k, units, TOGETHER);
	rfl_host_dropout_gradient(type, n, units, probability, mask, x, y);
}

/* ---- loss ---- */

/* The loss of a row, and its gradient. */
static double row_loss(const struct rfl_host_loss *k, int64_t row, int64_t *correct)
{
	const int64_t at = row * k->classes, label = k->labels[row];
	const double factor = k->weight / (double)k->rows;
	float largest = loop_load(k->type, k->logits, at);
	int64_t best = 0;
	double sum = 0;

	for (int64_t c = 1; c < k->classes; c++) {
		const float v = loop_load(k->type, k->logits, at + c);

		if (v > largest) {
			largest = v;
			best = c;
		}
	}
	*correct += best == label;
	for (int64_t c = 0; c < k->classes; c++)
		sum += (double)expf(loop_load(k->type, k->logits, at + c) - largest);
	for (int64_t c = 0; k->gradient && c < k->classes; c++) {
		const float e = expf(loop_load(k->type, k->logits, at + c) - largest);

		loop_store(k->type, k->gradient, at + c,
			   (float)(factor * ((double)e / sum - (c == label))));
	}
	return log(sum) + (double)(largest - loop_load(k->type, k->logits, at + label));
}

double rfl_host_cross_entropy(const struct rfl_host_loss *k, int64_t *correct)
{
	double total = 0;
	int64_t right = 0;

#pragma omp parallel reduction(+ : right) if (k->rows * k->classes > FEW)
	{
		const struct loop_range r = loop_share(k->rows, 1);
		double loss = 0;

		for (int64_t row = r.first; row < r.end; row++)
			loss += row_loss(k, row, &right);
		add_in_order(&total, loss);
	}
	*correct = right;
	return total / (double)k->rows;
}

/* ---- updates ---- */

LOOP_INLINE void sgd_of(bool momentum, const struct rfl_host_update *k, int64_t first, int64_t end)
{
	const float lr = k->lr, decay = k->weight_decay, scale = k->gradient_scale;
	const float keep = k->momentum;
	float *const p = k->p, *const mean = k->mean;
	const float *const g = k->g;

#pragma omp simd
	for (int64_t i = first; i < end; i++) {
		float v = g[i] * scale + decay * p[i];

		if (momentum)
			mean[i] = v = keep * mean[i] + v;
		p[i] -= lr * v;
	}
}

LOOP_CLONES void sgd(const void *ctx, int64_t first, int64_t end)
{
	const struct rfl_host_update *const k = ctx;

	if (k->mean)
		sgd_of(true, k, first, end);
	else
		sgd_of(false, k, first, end);
}

void rfl_host_sgd(const struct rfl_host_update *k)
{
	run(sgd, k, k->n, TOGETHER);
}

LOOP_CLONES void adam(const void *ctx, int64_t first, int64_t end)
{
	const struct rfl_host_update *const k = ctx;
	const float scale = k->gradient_scale, beta1 = k->beta1, beta2 = k->beta2, eps = k->eps;
	const float rest1 = k->rest1, rest2 = k->rest2;
	const float decay = k->decoupled ? 0 : k->weight_decay;
	const float shrink = k->decoupled ? 1 - k->lr * k->weight_decay : 1;
	const float step = k->lr / k->correction1, root = sqrtf(k->correction2);
	float *const p = k->p, *const mean = k->mean, *const square = k->square;
	const float *const gradient = k->g;

#pragma omp simd
	for (int64_t i = first; i < end; i++) {
		const float g = gradient[i] * scale + decay * p[i];
		const float m = beta1 * mean[i] + rest1 * g;
		const float v = beta2 * square[i] + rest2 * (g * g);

		mean[i] = m;
		square[i] = v;
		p[i] = p[i] * shrink - step * (m / (sqrtf(v) / root + eps));
	}
}

void rfl_host_adam(const struct rfl_host_update *k)
{
	run(adam, k, k->n, TOGETHER);
}

LOOP_CLONES double squares(const float *x, int64_t first, int64_t end)
{
	double sum = 0;

#pragma omp simd reduction(+ : sum)
	for (int64_t i = first; i < end; i++)
		sum += (double)x[i] * (double)x[i];
	return sum;
}

double rfl_host_sum_squares(const float *x, int64_t n)
{
	double sum = 0;

#pragma omp parallel if (n > FEW)
	{
		const struct loop_range r = loop_share(n, TOGETHER);

		add_in_order(&sum, squares(x, r.first, r.end));
	}
	return sum;
}
