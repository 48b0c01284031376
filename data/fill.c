/*
 * fill.c - the formula of the golden fill, in one body compiled for several instruction sets, and
 * its use over many tensors and threads. The body is plain C that the compiler vectorises;
 * multiply-add contraction is off for the whole project, so every variant rounds alike.
 */
#include "data/fill.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define FILL_X86 1
#else
#define FILL_X86 0
#endif

#define BLOCK       ((size_t)1 << 18) /* elements: 1 MiB, half a huge page */
#define MAX_THREADS 64

#define MIX_GAMMA UINT64_C(0x9E3779B97F4A7C15)
#define MIX_A     UINT64_C(0xBF58476D1CE4E5B9)
#define MIX_B     UINT64_C(0x94D049BB133111EB)

static inline uint64_t splitmix64(uint64_t x)
{
	uint64_t z = x + MIX_GAMMA;

	z = (z ^ (z >> 30)) * MIX_A;
	z = (z ^ (z >> 27)) * MIX_B;
	return z ^ (z >> 31);
}

/* 24 bits to [-1, 1): the conversion, the product, the difference and the doubling are exact. */
static inline float unit(uint64_t raw)
{
	return ((float)(int32_t)(raw >> 40) * 0x1p-24f - 0.5f) * 2.0f;
}

/* One loop per form: a loop without branches is what the compiler vectorises. */
#define FILL_BODY(name, attributes)                                                         \
	attributes static void name(struct rfl_fill_rule rule, uint64_t start, size_t n,    \
				    float *restrict out)                                    \
	{                                                                                   \
		const float scale = rule.scale;                                             \
                                                                                            \
		switch (rule.form) {                                                        \
		case RFL_FILL_SCALED:                                                       \
			for (size_t i = 0; i < n; i++)                                      \
				out[i] = unit(splitmix64(start + i)) * scale;               \
			break;                                                              \
		case RFL_FILL_ONE_PLUS:                                                     \
			for (size_t i = 0; i < n; i++)                                      \
				out[i] = 1.0f + unit(splitmix64(start + i)) * scale;        \
			break;                                                              \
		case RFL_FILL_ONE_PLUS_ABS:                                                 \
			for (size_t i = 0; i < n; i++)                                      \
				out[i] = 1.0f + fabsf(unit(splitmix64(start + i))) * scale; \
			break;                                                              \
		}                                                                           \
	}

typedef void (*fill_fn)(struct rfl_fill_rule rule, uint64_t start, size_t n, float *out);

FILL_BODY(fill_portable, )

#if FILL_X86
FILL_BODY(fill_avx2, RFL_TARGET("avx2"))
FILL_BODY(fill_avx512, RFL_TARGET("avx512f,avx512dq,avx512vl"))

static int have_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

static int have_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}
#endif

static int have_portable(void)
{
	return 1;
}

/* Fastest first. */
static const struct {
	const char *name;
	int (*usable)(void);
	fill_fn run;
} variants[] = {
#if FILL_X86
	{ "avx512", have_avx512, fill_avx512 },
	{ "avx2", have_avx2, fill_avx2 },
#endif
	{ "portable", have_portable, fill_portable },
};

uint64_t rfl_fill_raw(uint32_t p, uint64_t i)
{
	return splitmix64((uint64_t)p << 32 | i);
}

struct rfl_fill_rule rfl_fill_rule_of(const struct rfl_param *param)
{
	struct rfl_fill_rule rule = { .form = RFL_FILL_SCALED, .scale = 0.1f };

	switch (param->kind) {
	case RFL_PARAM_CONV_WEIGHT:
	case RFL_PARAM_LINEAR_WEIGHT: {
		int64_t fan_in = 1;

		for (int d = 1; d < param->ndim; d++)
			fan_in *= param->dim[d];
		rule.scale = (float)sqrt(3.0 / (double)fan_in);
		break;
	}
	case RFL_PARAM_NORM_WEIGHT:
		rule.form = RFL_FILL_ONE_PLUS;
		break;
	case RFL_PARAM_RUNNING_VAR:
		rule.form = RFL_FILL_ONE_PLUS_ABS;
		break;
	case RFL_PARAM_EMBEDDING_WEIGHT:
		rule.scale = (float)(0.02 * sqrt(3.0));
		break;
	case RFL_PARAM_OTHER:
		rule.scale = 0.02f;
		break;
	case RFL_PARAM_CONV_BIAS:
	case RFL_PARAM_LINEAR_BIAS:
	case RFL_PARAM_NORM_BIAS:
	case RFL_PARAM_RUNNING_MEAN:
	case RFL_PARAM_KIND_COUNT:
		break;
	}
	return rule;
}

void rfl_fill_values(struct rfl_fill_rule rule, uint32_t p, uint64_t first, size_t n, float *out)
{
	size_t v = 0;

	while (!variants[v].usable())
		v++; /* the last one always is */
	variants[v].run(rule, (uint64_t)p << 32 | first, n, out);
}

void rfl_fill_labels(int64_t first, int64_t n, int64_t classes, int64_t *out)
{
	for (int64_t i = 0; i < n; i++)
		out[i] = 37 * (first + i) % classes;
}

void rfl_fill_tokens(int64_t first, int64_t n, int64_t vocabulary, int64_t *out)
{
	for (int64_t i = 0; i < n; i++)
		out[i] = (int64_t)(rfl_fill_raw(RFL_FILL_TOKEN, (uint64_t)(first + i)) %
				   (uint64_t)vocabulary);
}

uint32_t rfl_fill_bitsum(const float *values, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t bits;

		memcpy(&bits, &values[i], sizeof(bits));
		sum += bits;
	}
	return sum;
}

const char *rfl_fill__variant_name(size_t i)
{
	return i < RFL_ARRAY_LEN(variants) ? variants[i].name : NULL;
}

int rfl_fill__variant_values(size_t i, struct rfl_fill_rule rule, uint32_t p, uint64_t first,
			     size_t n, float *out)
{
	if (!variants[i].usable())
		return -1;
	variants[i].run(rule, (uint64_t)p << 32 | first, n, out);
	return 0;
}

/* --- many tensors and threads -----------------------------------------------------------------
 * The work is cut into blocks; threads draw the next block from one counter. A thread that touches
 * fresh memory pays for its pages, so this spreads that cost as well.
 */

struct work {
	const struct rfl_fill_job *jobs;
	size_t njobs;
	atomic_size_t next; /* the first block not drawn yet, counted over all jobs */
};

/* Blocks are drawn in growing order, so each thread walks the jobs once. */
static void *work_run(void *ctx)
{
	struct work *w = ctx;
	size_t job = 0, before = 0; /* blocks of the jobs before `job` */

	for (;;) {
		const size_t ticket = atomic_fetch_add(&w->next, 1);
		size_t first, n;

		while (job < w->njobs) {
			const size_t blocks = (w->jobs[job].n + BLOCK - 1) / BLOCK;

			if (ticket < before + blocks)
				break;
			before += blocks;
			job++;
		}
		if (job == w->njobs)
			return NULL;
		first = (ticket - before) * BLOCK;
		n = w->jobs[job].n - first;
		rfl_fill_values(w->jobs[job].rule, w->jobs[job].p, w->jobs[job].first + first,
				n < BLOCK ? n : BLOCK, w->jobs[job].out + first);
	}
}

enum rfl_rc rfl_fill_run(const struct rfl_fill_job *jobs, size_t njobs, int threads,
			 struct rfl_err *err)
{
	struct work work = { .jobs = jobs, .njobs = njobs };
	pthread_t helper[MAX_THREADS];
	int nhelpers = 0, failed = 0;

	if (threads < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "fill: %d threads", threads);
	atomic_init(&work.next, 0);
	while (!failed && nhelpers < threads - 1 && nhelpers < MAX_THREADS) {
		failed = pthread_create(&helper[nhelpers], NULL, work_run, &work);
		if (!failed)
			nhelpers++;
	}
	(void)work_run(&work);
	for (int i = 0; i < nhelpers; i++)
		(void)pthread_join(helper[i], NULL);
	if (failed)
		return rfl_fail(err, RFL_ENOMEM, failed, "fill: cannot start a thread: %s",
				strerror(failed));
	return RFL_OK;
}

struct rfl_fill_job rfl_fill_job_of(const struct rfl_param *param, float *out)
{
	return (struct rfl_fill_job){
		.rule = rfl_fill_rule_of(param),
		.p = param->position,
		.n = (size_t)param->numel,
		.out = out,
	};
}

static void to_nhwc(const float *nchw, int64_t n, int64_t channels, int64_t pixels, float *out)
{
	for (int64_t b = 0; b < n; b++, nchw += channels * pixels, out += channels * pixels)
		for (int64_t c = 0; c < channels; c++)
			for (int64_t i = 0; i < pixels; i++)
				out[i * channels + c] = nchw[c * pixels + i];
}

enum rfl_rc rfl_fill_images(const struct rfl_shape *shape, int64_t first, int64_t n,
			    enum rfl_layout layout, int threads, float *out, struct rfl_err *err)
{
	const size_t total = (size_t)(n * rfl_shape_numel(shape));
	struct rfl_fill_job job = {
		.rule = { .form = RFL_FILL_SCALED, .scale = 1.0f },
		.p = RFL_FILL_IMAGE,
		.first = (uint64_t)(first * rfl_shape_numel(shape)),
		.n = total,
		.out = out,
	};
	float *nchw = NULL;
	enum rfl_rc rc;

	if (shape->ndim != 3) {
		rc = rfl_fail(err, RFL_EINVAL, 0, "fill: an image has 3 dimensions, not %d",
			      shape->ndim);
		goto done;
	}
	if (layout == RFL_LAYOUT_NHWC) {
		nchw = rfl_alloc_array(total, sizeof(*nchw));
		if (!nchw) {
			rc = rfl_fail(err, RFL_ENOMEM, 0, "fill: out of memory");
			goto done;
		}
		job.out = nchw;
	}
	rc = rfl_fill_run(&job, 1, threads, err);
	if (rc == RFL_OK && nchw)
		to_nhwc(nchw, n, shape->dim[0], shape->dim[1] * shape->dim[2], out);
done:
	free(nchw);
	return rc;
}
