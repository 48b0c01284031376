/*
 * selftest_work.c - copies that no cache can hold, and products of matrices of small integers,
 * whose result is exact in every data type.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/cupti/plan.h"
#include "profile/cupti/selftest_impl.h"

/* Small enough to be checked on the host each time; computed by so many blocks alike that every
 * multiprocessor has its share. */
enum { ROWS = 64, COLUMNS = 64, DEPTH = 256, TIMES = 64 };

/* A copy is so much larger than L2 that nothing of it is found there when it is made again. A part
 * of it of the size of L2 is written back after the range, and another one of before may be written
 * back in it, unless CUPTI empties L2 in between: with so many copies in a range both are less than
 * 1 % of what is known. */
#define COPY_LEAST     ((size_t)64 << 20)
#define COPY_PER_L2    16
#define COPY_PER_L2_OK 4
#define RANGE_PER_L2   128

static enum rfl_rc check(const struct rfl_selftest_work *w, int result, const char *call,
			 struct rfl_err *err)
{
	return rfl_cuda_check(w->cuda, result, call, err);
}

/* ------------------------------------------------------------------ products */

static int value_a(size_t row, size_t k)
{
	return (int)((row + k) % 3) - 1;
}

static int value_b(size_t column, size_t k)
{
	return (int)((2 * column + k / 2) % 5) - 2;
}

/* -2 to 2 in the bits of a data type. */
static void put(void *to, enum rfl_selftest_type type, int value)
{
	static const uint16_t halves[] = { 0xc000, 0xbc00, 0x0000, 0x3c00, 0x4000 };
	static const uint16_t bfloats[] = { 0xc000, 0xbf80, 0x0000, 0x3f80, 0x4000 };
	float single = (float)value;

	if (type == RFL_SELFTEST_F16)
		memcpy(to, &halves[value + 2], sizeof(halves[0]));
	else if (type == RFL_SELFTEST_BF16)
		memcpy(to, &bfloats[value + 2], sizeof(bfloats[0]));
	else
		memcpy(to, &single, sizeof(single));
}

static enum rfl_rc upload(struct rfl_selftest_work *w, const struct rfl_selftest_kernel *k,
			  size_t lines, int (*value)(size_t, size_t), rfl_cuda_address *ret,
			  struct rfl_err *err)
{
	size_t element = (size_t)k->element_bytes, size = lines * DEPTH * element;
	char *host = malloc(size);
	enum rfl_rc rc;

	if (!host)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the self-test");
	for (size_t line = 0; line < lines; line++)
		for (size_t i = 0; i < DEPTH; i++)
			put(host + (line * DEPTH + i) * element, k->type, value(line, i));
	rc = check(w, w->calls->memory_alloc(ret, size), "cuMemAlloc", err);
	if (rc == RFL_OK)
		rc = check(w, w->calls->copy_to_device(*ret, host, size), "cuMemcpyHtoD", err);
	free(host);
	return rc;
}

static enum rfl_rc launch(struct rfl_selftest_work *w, struct rfl_selftest_product *p,
			  struct rfl_err *err)
{
	const struct rfl_selftest_kernel *k = p->kernel;
	uint32_t columns = COLUMNS, bytes = DEPTH * (uint32_t)k->element_bytes;
	void *arguments[] = { &p->a, &p->b, &p->c, &columns, &bytes };
	enum rfl_rc rc;

	rc = check(w,
		   w->calls->launch(p->function, COLUMNS / (unsigned)k->tile_columns,
				    ROWS / (unsigned)k->tile_rows, TIMES, (unsigned)k->threads, 1,
				    1, 0, NULL, arguments, NULL),
		   "cuLaunchKernel", err);
	if (rc == RFL_OK)
		rc = check(w, w->calls->context_synchronize(), "cuCtxSynchronize", err);
	return rc;
}

static enum rfl_rc compare(const struct rfl_selftest_kernel *k, const float *c, struct rfl_err *err)
{
	for (size_t row = 0; row < ROWS; row++)
		for (size_t column = 0; column < COLUMNS; column++) {
			int sum = 0;

			for (size_t i = 0; i < DEPTH; i++)
				sum += value_a(row, i) * value_b(column, i);
			if (c[row * COLUMNS + column] != (float)sum)
				return rfl_fail(err, RFL_EFAILED, 0,
						"the kernel %s computed %g where %d is right (row "
						"%zu, column %zu): this GPU or its driver does "
						"not work",
						k->name, (double)c[row * COLUMNS + column], sum,
						row, column);
		}
	return RFL_OK;
}

static enum rfl_rc verify(struct rfl_selftest_work *w, struct rfl_selftest_product *p,
			  struct rfl_err *err)
{
	const size_t size = sizeof(float) * ROWS * COLUMNS;
	float *c = malloc(size);
	enum rfl_rc rc;

	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the self-test");
	rc = check(w, w->calls->copy_from_device(c, p->c, size), "cuMemcpyDtoH", err);
	if (rc == RFL_OK)
		rc = compare(p->kernel, c, err);
	free(c);
	return rc;
}

/* @param k  NULL: the kernel that copies */
static enum rfl_rc load(struct rfl_selftest_work *w, const struct rfl_selftest_kernel *k,
			struct rfl_cuda_module **module, struct rfl_cuda_function **function,
			struct rfl_err *err)
{
	const char *name = k ? k->name : RFL_SELFTEST_COPY;
	struct rfl_buf ptx;
	enum rfl_rc rc;

	rfl_buf_init(&ptx, 1 << 20);
	if (k)
		rfl_selftest_ptx(k, &ptx);
	else
		rfl_selftest_copy_ptx(&ptx);
	rc = rfl_buf_check(&ptx, name, err);
	if (rc == RFL_OK)
		rc = check(w, w->calls->module_load(module, rfl_buf_str(&ptx)), "cuModuleLoadData",
			   err);
	if (rc == RFL_OK)
		rc = check(w, w->calls->module_function(function, *module, name),
			   "cuModuleGetFunction", err);
	rfl_buf_fini(&ptx);
	return rc;
}

static enum rfl_rc make_product(struct rfl_selftest_work *w, const struct rfl_selftest_kernel *k,
				struct rfl_err *err)
{
	struct rfl_selftest_product *p = &w->product;
	enum rfl_rc rc;

	*p = (struct rfl_selftest_product){ .kernel = k,
					    .flops = 2.0 * ROWS * COLUMNS * DEPTH * TIMES };
	rc = load(w, k, &p->module, &p->function, err);
	if (rc == RFL_OK)
		rc = upload(w, k, ROWS, value_a, &p->a, err);
	if (rc == RFL_OK)
		rc = upload(w, k, COLUMNS, value_b, &p->b, err);
	if (rc == RFL_OK)
		rc = check(w, w->calls->memory_alloc(&p->c, sizeof(float) * ROWS * COLUMNS),
			   "cuMemAlloc", err);
	if (rc == RFL_OK)
		rc = launch(w, p, err);
	return rc == RFL_OK ? verify(w, p, err) : rc;
}

/* ------------------------------------------------------------------ the copy */

static enum rfl_rc copy(struct rfl_selftest_work *w, struct rfl_err *err)
{
	void *arguments[] = { &w->to, &w->from };
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < w->copies && rc == RFL_OK; i++)
		rc = check(w,
			   w->calls->launch(w->copy_function,
					    (unsigned)(w->copy_bytes / RFL_SELFTEST_COPY_BYTES), 1,
					    1, RFL_SELFTEST_COPY_THREADS, 1, 1, 0, NULL, arguments,
					    NULL),
			   "cuLaunchKernel", err);
	if (rc == RFL_OK)
		rc = check(w, w->calls->context_synchronize(), "cuCtxSynchronize", err);
	return rc;
}

static enum rfl_rc verify_copy(struct rfl_selftest_work *w, uint32_t word, struct rfl_err *err)
{
	uint32_t last[RFL_SELFTEST_COPY_BYTES / sizeof(word)];
	enum rfl_rc rc;

	rc = check(w,
		   w->calls->copy_from_device(last, w->to + w->copy_bytes - sizeof(last),
					      sizeof(last)),
		   "cuMemcpyDtoH", err);
	for (size_t i = 0; rc == RFL_OK && i < RFL_ARRAY_LEN(last); i++)
		if (last[i] != word)
			rc = rfl_fail(err, RFL_EFAILED, 0,
				      "the kernel %s copied something else than what was there: "
				      "this GPU or its driver does not work",
				      RFL_SELFTEST_COPY);
	return rc;
}

/* Beyond L2 many times, but no more than an eighth of what is free. */
static void choose_size(struct rfl_selftest_work *w)
{
	const size_t l2 = (size_t)rfl_cuda_l2_bytes(w->cuda);
	size_t size = COPY_PER_L2 * l2, free_bytes = 0, total = 0;
	const char *why = NULL;

	if (size < COPY_LEAST)
		size = COPY_LEAST;
	if (w->calls->memory_info &&
	    w->calls->memory_info(&free_bytes, &total) == RFL_CUDA_SUCCESS && size > free_bytes / 8)
		size = free_bytes / 8;
	size -= size % RFL_SELFTEST_COPY_BYTES;
	if (l2 == 0)
		why = "the driver does not tell the size of L2, beyond which a copy has to be";
	else if (size == 0 || size < COPY_PER_L2_OK * l2)
		why = "too little free device memory for a copy much larger than L2";
	if (why) {
		snprintf(w->copy_reason, sizeof(w->copy_reason), "%s", why);
		return;
	}
	w->copy_bytes = size;
	w->copies = (RANGE_PER_L2 * l2 + size - 1) / size;
}

/* Once in front of the counted ones, so that L2 is full of copies when they begin. */
static enum rfl_rc make_copy(struct rfl_selftest_work *w, struct rfl_err *err)
{
	const uint32_t word = 0x3f803f80;
	enum rfl_rc rc;

	choose_size(w);
	if (w->copy_bytes == 0)
		return RFL_OK;
	rc = load(w, NULL, &w->copy_module, &w->copy_function, err);
	if (rc == RFL_OK)
		rc = check(w, w->calls->memory_alloc(&w->from, w->copy_bytes), "cuMemAlloc", err);
	if (rc == RFL_OK)
		rc = check(w, w->calls->memory_alloc(&w->to, w->copy_bytes), "cuMemAlloc", err);
	if (rc == RFL_OK)
		rc = check(w, w->calls->set_words(w->from, word, w->copy_bytes / sizeof(word)),
			   "cuMemsetD32", err);
	if (rc == RFL_OK)
		rc = copy(w, err);
	return rc == RFL_OK ? verify_copy(w, word, err) : rc;
}

/* ------------------------------------------------------------------ all of it */

enum rfl_rc rfl_selftest__work_init(struct rfl_selftest_work *w, struct rfl_cuda *cuda,
				    const char *precision, unsigned set, struct rfl_err *err)
{
	const struct rfl_selftest_kernel *k;
	enum rfl_rc rc = RFL_OK;

	*w = (struct rfl_selftest_work){ .cuda = cuda, .calls = rfl_cuda_calls(cuda) };
	for (size_t i = 0; rc == RFL_OK && (k = rfl_selftest_kernel_at(i)); i++)
		if (rfl_selftest_kernel_serves(k, precision) &&
		    rfl_cuda_capability(cuda) >= k->min_capability &&
		    rfl_metric_set_of(k->quantity, precision) == set)
			rc = make_product(w, k, err);
	return rc == RFL_OK && set == RFL_SET_CORE ? make_copy(w, err) : rc;
}

void rfl_selftest__work_fini(struct rfl_selftest_work *w)
{
	const struct rfl_selftest_product *p = &w->product;
	const rfl_cuda_address blocks[] = { p->a, p->b, p->c, w->from, w->to };
	struct rfl_cuda_module *const modules[] = { p->module, w->copy_module };

	for (size_t i = 0; i < RFL_ARRAY_LEN(blocks); i++)
		if (blocks[i])
			(void)w->calls->memory_free(blocks[i]);
	for (size_t i = 0; i < RFL_ARRAY_LEN(modules); i++)
		if (modules[i])
			(void)w->calls->module_unload(modules[i]);
	*w = (struct rfl_selftest_work){ .cuda = NULL };
}

enum rfl_rc rfl_selftest__work_run(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct rfl_selftest_work *w = ctx;
	enum rfl_rc rc = RFL_OK;

	if (w->copy_bytes) {
		rc = ranges->begin(ranges, RFL_RANGE_SELF_TEST, "copy", err);
		if (rc == RFL_OK)
			rc = copy(w, err);
	}
	if (rc == RFL_OK && w->product.kernel) {
		rc = ranges->begin(ranges, RFL_RANGE_SELF_TEST, w->product.kernel->name, err);
		if (rc == RFL_OK)
			rc = launch(w, &w->product, err);
	}
	return rc == RFL_OK ? ranges->end(ranges, err) : rc;
}
