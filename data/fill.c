/*
 * fill.c - the formula that fills weights and inputs, compiled for several instruction sets and
 * applied to many tensors by threads. The compiler vectorises its loops; multiply-add contraction
 * is off for the whole project, so every variant rounds identically.
 */
#include "data/fill.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

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

/* Map 24 bits to [-1, 1): conversion, product, difference and doubling are exact. */
static inline float unit(uint64_t raw)
{
	return ((float)(int32_t)(raw >> 40) * 0x1p-24f - 0.5f) * 2.0f;
}

/* One loop per form, because compilers vectorise only loops without branches. */
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

FILL_BODY(fill_portable, )

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
FILL_BODY(fill_avx2, RFL_TARGET("avx2"))
FILL_BODY(fill_avx512, RFL_TARGET("avx512f,avx512dq,avx512vl"))
#endif

rfl_fill_fn rfl_fill_variant(size_t i)
{
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl") && i-- == 0)
		return fill_avx512;
	if (__builtin_cpu_supports("avx2") && i-- == 0)
		return fill_avx2;
#endif
	return i == 0 ? fill_portable : NULL;
}

uint64_t rfl_fill_raw(uint32_t p, uint64_t i)
{
	return splitmix64((uint64_t)p << 32 | i);
}

struct rfl_fill_rule rfl_fill_rule_of(const struct rfl_param *param)
{
	int64_t fan_in = 1;

	for (int d = 1; d < param->ndim; d++)
		fan_in *= param->dim[d];
	switch (param->kind) {
	case RFL_PARAM_CONV_WEIGHT:
	case RFL_PARAM_LINEAR_WEIGHT:
		return (struct rfl_fill_rule){ RFL_FILL_SCALED, (float)sqrt(3.0 / (double)fan_in) };
	case RFL_PARAM_NORM_WEIGHT:
		return (struct rfl_fill_rule){ RFL_FILL_ONE_PLUS, 0.1f };
	case RFL_PARAM_RUNNING_VAR:
		return (struct rfl_fill_rule){ RFL_FILL_ONE_PLUS_ABS, 0.1f };
	case RFL_PARAM_EMBEDDING_WEIGHT:
		return (struct rfl_fill_rule){ RFL_FILL_SCALED, (float)(0.02 * sqrt(3.0)) };
	case RFL_PARAM_OTHER:
		return (struct rfl_fill_rule){ RFL_FILL_SCALED, 0.02f };
	default: /* biases and running means */
		return (struct rfl_fill_rule){ RFL_FILL_SCALED, 0.1f };
	}
}

void rfl_fill_values(struct rfl_fill_rule rule, uint32_t p, uint64_t first, size_t n, float *out)
{
	rfl_fill_variant(0)(rule, (uint64_t)p << 32 | first, n, out);
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

/* Threads take blocks from one counter, which also distributes the cost of page faults. */
struct work {
	const struct rfl_fill_job *jobs;
	size_t njobs;
	atomic_size_t next; /* the next block, counted over all jobs */
};

/* Each thread gets ascending blocks, so it iterates over the jobs only once. */
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

void rfl_fill_run(const struct rfl_fill_job *jobs, size_t njobs, int threads)
{
	struct work work = { .jobs = jobs, .njobs = njobs };
	pthread_t helper[MAX_THREADS];
	int n = 0;

	atomic_init(&work.next, 0);
	/* if a thread cannot start, the others do its share */
	while (n < threads - 1 && n < MAX_THREADS &&
	       pthread_create(&helper[n], NULL, work_run, &work) == 0)
		n++;
	(void)work_run(&work);
	while (n > 0)
		(void)pthread_join(helper[--n], NULL);
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

enum rfl_rc rfl_fill_images(const struct rfl_shape *shape, int64_t first, int64_t n,
			    enum rfl_layout layout, int threads, float *out, struct rfl_err *err)
{
	const int64_t image = rfl_shape_numel(shape);
	struct rfl_fill_job job = {
		.rule = { .form = RFL_FILL_SCALED, .scale = 1.0f },
		.p = RFL_FILL_IMAGE,
		.first = (uint64_t)(first * image),
		.n = (size_t)(layout == RFL_LAYOUT_NCHW ? n * image : image),
		.out = out,
	};
	int64_t channels, pixels;

	if (shape->ndim != 3)
		return rfl_fail(err, RFL_EINVAL, 0, "fill: an image has 3 dimensions, not %d",
				shape->ndim);
	if (layout == RFL_LAYOUT_NCHW) {
		rfl_fill_run(&job, 1, threads);
		return RFL_OK;
	}
	job.out = rfl_alloc_array(job.n, sizeof(*job.out));
	channels = shape->dim[0];
	pixels = shape->dim[1] * shape->dim[2];
	for (int64_t b = 0; b < n; b++, job.first += job.n, out += image) {
		rfl_fill_run(&job, 1, threads);
		for (int64_t c = 0; c < channels; c++)
			for (int64_t i = 0; i < pixels; i++)
				out[i * channels + c] = job.out[c * pixels + i];
	}
	free(job.out);
	return RFL_OK;
}

/* ---- test vectors from an independent program, one tensor of each kind: they prove that the
 * weights equal those loaded into PyTorch ---- */

#define CHUNK ((size_t)1 << 16)

static const struct rfl_fill_vector vectors[] = {
	/* clang-format off */
	{ .name = "resnet18 conv1.weight",
	  .param = { .kind = RFL_PARAM_CONV_WEIGHT, .ndim = 4, .dim = { 64, 3, 7, 7 }, .numel = 9408, .position = 0 },
	  .first5 = { 0x3de04aa5, 0x3c9bcac0, 0x3cd56f9c, 0xbde22fd3, 0xbca06ec0 },
	  .bitsum = 0x5a4a9bcf },
	{ .name = "resnet18 bn1.weight",
	  .param = { .kind = RFL_PARAM_NORM_WEIGHT, .ndim = 1, .dim = { 64 }, .numel = 64, .position = 1 },
	  .first5 = { 0x3f86d13c, 0x3f6cda50, 0x3f8524d3, 0x3f8366d1, 0x3f7a2d20 },
	  .bitsum = 0xdf28118e },
	{ .name = "resnet18 bn1.bias",
	  .param = { .kind = RFL_PARAM_NORM_BIAS, .ndim = 1, .dim = { 64 }, .numel = 64, .position = 2 },
	  .first5 = { 0x3da5ea2a, 0x3d5b44d7, 0x3d00b6c7, 0x3db02820, 0xbd558ce0 },
	  .bitsum = 0xc05f89e9 },
	{ .name = "resnet18 bn1.running_mean",
	  .param = { .kind = RFL_PARAM_RUNNING_MEAN, .ndim = 1, .dim = { 64 }, .numel = 64, .position = 3 },
	  .first5 = { 0xbd1aa180, 0x3a52ef33, 0xbdbd7033, 0xbd8eebab, 0x3cf6f5c0 },
	  .bitsum = 0xc1d05281 },
	{ .name = "resnet18 bn1.running_var",
	  .param = { .kind = RFL_PARAM_RUNNING_VAR, .ndim = 1, .dim = { 64 }, .numel = 64, .position = 4 },
	  .first5 = { 0x3f81c391, 0x3f81d76b, 0x3f89ec1a, 0x3f821d49, 0x3f8c717f },
	  .bitsum = 0xe195d14f },
	{ .name = "resnet18 fc.weight",
	  .param = { .kind = RFL_PARAM_LINEAR_WEIGHT, .ndim = 2, .dim = { 1000, 512 }, .numel = 512000, .position = 100 },
	  .first5 = { 0x3cd41387, 0x3d51d2c2, 0x3b9b08c7, 0xbd55a5c0, 0xba07b790 },
	  .bitsum = 0x4f4a022d },
	{ .name = "resnet18 fc.bias",
	  .param = { .kind = RFL_PARAM_LINEAR_BIAS, .ndim = 1, .dim = { 1000 }, .numel = 1000, .position = 101 },
	  .first5 = { 0xbd53941d, 0xbc600f67, 0xbd90243f, 0xbb6a3ecd, 0x3c85bfa0 },
	  .bitsum = 0x2a9e4835 },
	{ .name = "vgg16 classifier.0.weight",
	  .param = { .kind = RFL_PARAM_LINEAR_WEIGHT, .ndim = 2, .dim = { 4096, 25088 }, .numel = 102760448, .position = 26 },
	  .first5 = { 0x3bf1f110, 0xbbaec56b, 0xbbaf323e, 0xb9da7a3f, 0x3bdc463d },
	  .bitsum = 0x36c98eba },
	{ .name = "tiny_lm token_embeddings.weight",
	  .param = { .kind = RFL_PARAM_EMBEDDING_WEIGHT, .ndim = 2, .dim = { 256, 64 }, .numel = 16384, .position = 0 },
	  .first5 = { 0x3cd98d20, 0x3b971c36, 0x3bcf059a, 0xbcdb63b9, 0xbb9b9c83 },
	  .bitsum = 0x4bf48ee6 },
	{ .name = "kind other",
	  .param = { .kind = RFL_PARAM_OTHER, .ndim = 1, .dim = { 768 }, .numel = 768, .position = 0 },
	  .first5 = { 0x3c7b34e1, 0x3b2e7cae, 0x3b6f0c5c, 0xbc7d5447, 0xbb33af3d },
	  .bitsum = 0xd245cd5e },
	/* clang-format on */
};

const struct rfl_fill_vector *rfl_fill_vector_at(size_t i)
{
	return i < RFL_ARRAY_LEN(vectors) ? &vectors[i] : NULL;
}

void rfl_fill_vector_run(const struct rfl_fill_vector *vector, uint32_t first5[5], uint32_t *bitsum)
{
	const struct rfl_fill_rule rule = rfl_fill_rule_of(&vector->param);
	const size_t total = (size_t)vector->param.numel;
	RFL_AUTOFREE float *values = rfl_alloc_array(CHUNK, sizeof(*values));

	*bitsum = 0;
	for (size_t first = 0; first < total; first += CHUNK) {
		const size_t n = total - first < CHUNK ? total - first : CHUNK;

		rfl_fill_values(rule, vector->param.position, first, n, values);
		if (first == 0)
			memcpy(first5, values, 5 * sizeof(*first5));
		*bitsum += rfl_fill_bitsum(values, n);
	}
}
