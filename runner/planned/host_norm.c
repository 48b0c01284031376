/*
 * host_norm.c - batch norm at the speed of memory: one pass for sums, one for the result. Rows are
 * joined to wide rows of at least WIDTH elements, so that loops are long with few columns too. The
 * first pass takes blocks in descending order, since its input was written in ascending order; the
 * second ascends. So each begins with what the cache still has.
 */
#include "runner/planned/host.h"

#include <math.h>

#include "runner/planned/host_loop.h"

#define WIDTH       512
#define DEEP        4 /* wide rows that are added at once */
#define BLOCK_BYTES (128 << 10)

/* The form of a pass; forward, with MASKED it writes a mask, with SECOND it adds a residual. */
enum { BACKWARD = 1, MASKED = 2, SECOND = 4, STORED = 8 };

/* Arrays over a wide row have values that recur every `columns` elements. */
struct pass {
	enum rfl_host_type type;
	int form;
	int64_t n, columns, width, padded;
	const void *x, *dy, *second; /* second: dy2 or the residual */
	const uint8_t *passing;      /* the mask of a backward pass */
	uint8_t *mask;               /* the mask of a forward pass */
	void *g, *y;
	float low, high; /* limits of the activation */
	float *scale, *slope, *shift;
	float *pivot;   /* near x, subtracted from it before summing */
	double *totals; /* see sums_of() */
};

/* Two sums per element of a wide row: in float32 over a block, in float64 over a thread's blocks.
 */
struct sums {
	double *total[2];
	float *part[2];
};

/* Rows of WIDTH or more are not joined. */
static int64_t width_of(int64_t columns)
{
	int64_t width = columns;

	while (columns < WIDTH && (width < WIDTH || width % 16 != 0))
		width += columns;
	return width;
}

static int64_t padded_width(int64_t columns)
{
	return (width_of(columns) + 15) / 16 * 16;
}

size_t rfl_host_norm_scratch(int columns, int threads)
{
	return (size_t)padded_width(columns) *
	       (4 * sizeof(float) + (size_t)threads * 2 * (sizeof(double) + sizeof(float)));
}

/* Set what both directions have in common. */
static struct pass pass_of(enum rfl_host_type type, int64_t rows, int64_t columns, const void *x,
			   void *scratch)
{
	const int64_t padded = padded_width(columns);
	float *const f = scratch;

	return (struct pass){
		.type = type,
		.n = rows * columns,
		.columns = columns,
		.width = width_of(columns),
		.padded = padded,
		.x = x,
		.scale = f,
		.slope = f + padded,
		.shift = f + 2 * padded,
		.pivot = f + 3 * padded,
		.totals = (double *)(f + 4 * padded),
	};
}

static struct sums sums_of(const struct pass *k, int thread)
{
	double *const total = k->totals + 3 * k->padded * thread;
	float *const part = (float *)(total + 2 * k->padded);

	return (struct sums){ { total, total + k->padded }, { part, part + k->padded } };
}

/* The sum over all threads of a column. */
static double total_of(const struct pass *k, int which, int64_t column)
{
	double total = 0;

	for (int t = 0; t < omp_get_num_threads(); t++)
		for (int64_t j = column; j < k->width; j += k->columns)
			total += sums_of(k, t).total[which][j];
	return total;
}

LOOP_CLONES void flush(int64_t width, const struct sums *sums)
{
	for (int i = 0; i < 2; i++) {
#pragma omp simd
		for (int64_t j = 0; j < width; j++) {
			sums->total[i][j] += (double)sums->part[i][j];
			sums->part[i][j] = 0;
		}
	}
}

LOOP_INLINE float gradient_at(enum rfl_host_type type, int form, const struct pass *k, int64_t i)
{
	float g = loop_load(type, k->dy, i);

	if (form & SECOND)
		g += loop_load(type, k->second, i);
	if (form & MASKED)
		g = k->passing[i] ? g : 0;
	return g;
}

/* Add to the sums of g and of g * (x - pivot), where g is x - pivot forward: the elements from
 * start to end of `deep` wide rows, the first of which begins at element i. */
LOOP_INLINE void add(enum rfl_host_type type, int form, int deep, const struct pass *k, int64_t i,
		     int64_t start, int64_t end, const struct sums *sums)
{
	const struct pass p = *k;
	float *const sum = sums->part[0], *const product = sums->part[1];

#pragma omp simd
	for (int64_t j = start; j < end; j++) {
		float a = sum[j], b = product[j];

		for (int row = 0; row < deep; row++) {
			const int64_t at = i + row * p.width + j;
			const float d = loop_load(type, p.x, at) - p.pivot[j];
			const float g = form & BACKWARD ? gradient_at(type, form, &p, at) : d;

			if (form & STORED)
				loop_store(type, p.g, at, g);
			a += g;
			b += g * d;
		}
		sum[j] = a;
		product[j] = b;
	}
}

/* The sums of a forward pass wait for memory, so the next rows are fetched meanwhile. */
LOOP_INLINE void add_deep(enum rfl_host_type type, const struct pass *k, int64_t i,
			  const struct sums *sums)
{
	const int64_t size = type == RFL_HOST_BF16 ? 2 : 4;

	for (int64_t j = 0; j < k->width; j += 64) {
		for (int64_t row = DEEP; row < 2 * DEEP; row++)
			for (int64_t b = 0; b < 64 * size; b += 64)
				__builtin_prefetch((const char *)k->x +
							   (i + row * k->width + j) * size + b,
						   0, 2);
		add(type, 0, DEEP, k, i, j, k->width - j < 64 ? k->width : j + 64, sums);
	}
}

LOOP_INLINE void block_sums(enum rfl_host_type type, int form, const struct pass *k, int64_t first,
			    int64_t end, const struct sums *sums)
{
	for (; !(form & BACKWARD) && first + DEEP * k->width <= end; first += DEEP * k->width)
		add_deep(type, k, first, sums);
	for (; first < end; first += k->width)
		add(type, form, 1, k, first, 0, end - first < k->width ? end - first : k->width,
		    sums);
	flush(k->width, sums);
}

LOOP_INLINE void all_sums(enum rfl_host_type type, int form, const struct pass *k,
			  struct loop_range r)
{
	const struct sums sums = sums_of(k, omp_get_thread_num());
	const int64_t deep = BLOCK_BYTES / (k->width * (int64_t)rfl_host_size(type));
	const int64_t block = (deep ? deep : 1) * k->width;

	for (int i = 0; i < 2; i++)
		for (int64_t j = 0; j < k->width; j++)
			sums.total[i][j] = sums.part[i][j] = 0;
	for (int64_t end = r.end, first; end > r.first; end = first) {
		first = end - (end - r.first - 1) % block - 1;
		block_sums(type, form, k, first, end, &sums);
	}
}

/* y = activation(slope * x + shift + residual) or slope * x + shift + scale * g */
LOOP_INLINE void results(enum rfl_host_type type, int form, const struct pass *k,
			 struct loop_range r)
{
	const struct pass p = *k;

	for (int64_t i = r.first; i < r.end; i += p.width) {
		const int64_t n = r.end - i < p.width ? r.end - i : p.width;

#pragma omp simd
		for (int64_t j = 0; j < n; j++) {
			float v = p.slope[j] * loop_load(type, p.x, i + j) + p.shift[j];

			if (form & BACKWARD)
				v += p.scale[j] * gradient_at(type, form, &p, i + j);
			else if (form & SECOND)
				v += loop_load(type, p.second, i + j);
			if (!(form & BACKWARD)) {
				if (form & MASKED)
					p.mask[i + j] = (v > p.low) & (v < p.high);
				v = v < p.low ? p.low : v;
				v = v > p.high ? p.high : v;
			}
			loop_store(type, p.y, i + j, v);
		}
	}
}

#define FORM(loop, form)                               \
	case form:                                     \
		LOOP_TYPED(loop, k->type, form, k, r); \
		break;

LOOP_CLONES void first_pass(const struct pass *k, struct loop_range r)
{
	switch (k->form) {
		FORM(all_sums, 0)
		FORM(all_sums, BACKWARD)
		FORM(all_sums, BACKWARD | MASKED)
		FORM(all_sums, BACKWARD | SECOND)
		FORM(all_sums, BACKWARD | MASKED | SECOND)
		FORM(all_sums, BACKWARD | STORED)
		FORM(all_sums, BACKWARD | STORED | MASKED)
		FORM(all_sums, BACKWARD | STORED | SECOND)
		FORM(all_sums, BACKWARD | STORED | MASKED | SECOND)
	}
}

LOOP_CLONES void second_pass(const struct pass *k, struct loop_range r)
{
	switch (k->form) {
		FORM(results, 0)
		FORM(results, MASKED)
		FORM(results, SECOND)
		FORM(results, MASKED | SECOND)
		FORM(results, BACKWARD)
		FORM(results, BACKWARD | MASKED)
		FORM(results, BACKWARD | SECOND)
		FORM(results, BACKWARD | MASKED | SECOND)
	}
}

/* The statistics and factors of a column. */
static void column(const struct rfl_host_norm *k, const struct pass *p, int64_t c)
{
	const double rows = (double)k->rows;
	double mean, variance, slope;

	if (k->running) {
		mean = (double)k->running_mean[c];
		variance = (double)k->running_variance[c];
	} else {
		const double d = total_of(p, 0, c) / rows;

		mean = (double)p->pivot[c] + d;
		variance = total_of(p, 1, c) / rows - d * d;
		variance = variance < 0 ? 0 : variance;
	}
	if (!k->running && k->running_mean) {
		const double unbiased = k->rows > 1 ? variance * rows / (rows - 1) : variance;

		k->running_mean[c] += k->momentum * ((float)mean - k->running_mean[c]);
		k->running_variance[c] += k->momentum * ((float)unbiased - k->running_variance[c]);
	}
	k->mean[c] = (float)mean;
	k->inverse[c] = (float)(1 / sqrt(variance + (double)k->eps));
	slope = (double)k->gamma[c] * (double)k->inverse[c];
	for (int64_t j = c; j < p->width; j += p->columns) {
		p->slope[j] = (float)slope;
		p->shift[j] = (float)((double)k->beta[c] - mean * slope);
	}
}

void rfl_host_norm(const struct rfl_host_norm *k)
{
	const struct pass first = pass_of(k->type, k->rows, k->columns, k->x, k->scratch);
	struct pass second = first;

	second.form = (k->mask ? MASKED : 0) | (k->residual ? SECOND : 0);
	second.second = k->residual;
	second.mask = k->mask;
	second.y = k->y;
	second.low = k->activation == RFL_HOST_NONE ? -INFINITY : 0;
	second.high = k->activation == RFL_HOST_RELU6 ? 6 : INFINITY;
	for (int64_t j = 0; j < first.width; j++)
		first.pivot[j] =
			j < k->columns ? loop_load(k->type, k->x, j) : first.pivot[j - k->columns];
#pragma omp parallel
	{
		const struct loop_range r = loop_share(first.n, first.width);

		if (!k->running) {
			first_pass(&first, r);
#pragma omp barrier
		}
#pragma omp for
		for (int64_t c = 0; c < k->columns; c++)
			column(k, &first, c);
		second_pass(&second, r);
	}
}

static void gradient_column(const struct rfl_host_norm_gradient *k, const struct pass *p, int64_t c)
{
	const double rows = (double)k->rows, inverse = (double)k->inverse[c];
	const double dbeta = total_of(p, 0, c), dgamma = total_of(p, 1, c) * inverse;
	const double scale = (double)k->gamma[c] * inverse;
	const double slope = k->running ? 0 : -scale * inverse * dgamma / rows;
	const double shift = k->running ? 0 : -scale * dbeta / rows - slope * (double)k->mean[c];

	k->dgamma[c] = (float)dgamma;
	k->dbeta[c] = (float)dbeta;
	for (int64_t j = c; j < p->width; j += p->columns) {
		p->scale[j] = (float)scale;
		p->slope[j] = (float)slope;
		p->shift[j] = (float)shift;
	}
}

void rfl_host_norm_gradient(const struct rfl_host_norm_gradient *k)
{
	struct pass first = pass_of(k->type, k->rows, k->columns, k->x, k->scratch), second;

	first.form = BACKWARD | (k->mask ? MASKED : 0) | (k->dy2 ? SECOND : 0);
	first.dy = k->dy;
	first.second = k->dy2;
	first.passing = k->mask;
	first.g = k->g;
	second = first;
	second.y = k->dx;
	if (k->g) {
		first.form |= STORED;
		second.form = BACKWARD;
		second.dy = k->g;
	}
	for (int64_t j = 0; j < first.width; j++)
		first.pivot[j] = j < k->columns ? k->mean[j] : first.pivot[j - k->columns];
#pragma omp parallel
	{
		const struct loop_range r = loop_share(first.n, first.width);

		first_pass(&first, r);
#pragma omp barrier
#pragma omp for
		for (int64_t c = 0; c < k->columns; c++)
			gradient_column(k, &first, c);
		if (k->dx)
			second_pass(&second, r);
	}
}
