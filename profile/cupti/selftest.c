/*
 * selftest.c - work of known size, counted by the same sessions that count a run and turned into
 * quantities by the same formulas: copies that no cache can hold, and products of matrices of small
 * integers, with a result that is exact in every data type.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/cupti/impl.h"
#include "profile/cupti/selftest_ptx.h"

/* ------------------------------------------------------------------ the work */

struct product {
	const struct rfl_selftest_kernel *kernel; /* NULL: none is made */
	struct rfl_cuda_module *module;
	struct rfl_cuda_function *function;
	rfl_cuda_address a, b, c;
	double flops; /* of one launch */
};

/* Memory, kernels and inputs of what a set counts. */
struct work {
	const struct rfl_cuda *cuda;
	const struct rfl_cuda_functions *calls;
	struct rfl_cuda_module *copy_module;
	struct rfl_cuda_function *copy_function;
	rfl_cuda_address from, to;
	size_t copy_bytes;       /* of one copy; 0: none is made */
	size_t copies;           /* of a range */
	const char *copy_reason; /* why none is made; "" */
	struct product product;
};

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

static enum rfl_rc check(const struct work *w, int result, const char *call, struct rfl_err *err)
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

static enum rfl_rc upload(struct work *w, const struct rfl_selftest_kernel *k, size_t lines,
			  int (*value)(size_t, size_t), rfl_cuda_address *ret, struct rfl_err *err)
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

static enum rfl_rc launch(struct work *w, struct product *p, struct rfl_err *err)
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

static enum rfl_rc verify(struct work *w, struct product *p, struct rfl_err *err)
{
	float c[ROWS * COLUMNS];
	enum rfl_rc rc;

	rc = check(w, w->calls->copy_from_device(c, p->c, sizeof(c)), "cuMemcpyDtoH", err);
	for (size_t i = 0; rc == RFL_OK && i < RFL_ARRAY_LEN(c); i++) {
		const size_t row = i / COLUMNS, column = i % COLUMNS;
		int sum = 0;

		for (size_t k = 0; k < DEPTH; k++)
			sum += value_a(row, k) * value_b(column, k);
		if (c[i] != (float)sum)
			rc = rfl_fail(err, RFL_EFAILED, 0,
				      "the kernel %s computed %g where %d is right (row %zu, "
				      "column %zu): this GPU or its driver does not work",
				      p->kernel->name, (double)c[i], sum, row, column);
	}
	return rc;
}

/* @param k  NULL: the kernel that copies */
static enum rfl_rc load(struct work *w, const struct rfl_selftest_kernel *k,
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

static enum rfl_rc make_product(struct work *w, const struct rfl_selftest_kernel *k,
				struct rfl_err *err)
{
	struct product *p = &w->product;
	enum rfl_rc rc;

	*p = (struct product){ .kernel = k, .flops = 2.0 * ROWS * COLUMNS * DEPTH * TIMES };
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

static enum rfl_rc copy(struct work *w, struct rfl_err *err)
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

static enum rfl_rc verify_copy(struct work *w, uint32_t word, struct rfl_err *err)
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
static void choose_size(struct work *w)
{
	const size_t l2 = (size_t)w->cuda->l2_bytes;
	size_t size = COPY_PER_L2 * l2, free_bytes = 0, total = 0;
	const char *why = "";

	if (size < COPY_LEAST)
		size = COPY_LEAST;
	if (w->calls->memory_info &&
	    w->calls->memory_info(&free_bytes, &total) == RFL_CUDA_SUCCESS && size > free_bytes / 8)
		size = free_bytes / 8;
	size -= size % RFL_SELFTEST_COPY_BYTES;
	if (l2 == 0)
		why = "the driver does not say the size of L2, beyond which a copy has to be";
	else if (size == 0 || size < COPY_PER_L2_OK * l2)
		why = "too little free device memory for a copy much larger than L2";
	w->copy_reason = why;
	if (why[0])
		return;
	w->copy_bytes = size;
	w->copies = (RANGE_PER_L2 * l2 + size - 1) / size;
}

/* Once in front of the counted ones, so that L2 is full of copies when they begin. */
static enum rfl_rc make_copy(struct work *w, struct rfl_err *err)
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

static enum rfl_rc work_init(struct work *w, const struct rfl_cuda *cuda, const char *precision,
			     unsigned set, struct rfl_err *err)
{
	const struct rfl_selftest_kernel *k;
	enum rfl_rc rc = RFL_OK;

	*w = (struct work){ .cuda = cuda, .calls = &cuda->calls };
	for (size_t i = 0; rc == RFL_OK && (k = rfl_selftest_kernel_at(i)); i++)
		if (rfl_selftest_kernel_serves(k, precision) &&
		    cuda->capability >= k->min_capability &&
		    rfl_metric_set_of(k->quantity, precision) == set)
			rc = make_product(w, k, err);
	return rc == RFL_OK && set == RFL_SET_CORE ? make_copy(w, err) : rc;
}

static void work_fini(struct work *w)
{
	const struct product *p = &w->product;
	const rfl_cuda_address blocks[] = { p->a, p->b, p->c, w->from, w->to };
	struct rfl_cuda_module *const modules[] = { p->module, w->copy_module };

	for (size_t i = 0; i < RFL_ARRAY_LEN(blocks); i++)
		if (blocks[i])
			(void)w->calls->memory_free(blocks[i]);
	for (size_t i = 0; i < RFL_ARRAY_LEN(modules); i++)
		if (modules[i])
			(void)w->calls->module_unload(modules[i]);
	*w = (struct work){ .cuda = NULL };
}

static enum rfl_rc work_run(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct work *w = ctx;
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

#define ECC_MOST 1.25 /* more than a quarter is not put down to check bits */

/* ------------------------------------------------------------------ what is expected */

static void expect(struct rfl_selftest *t, const char *work, enum rfl_quantity q, double known,
		   const char *reason)
{
	struct rfl_selftest_row *r = &t->rows[t->n++];

	*r = (struct rfl_selftest_row){
		.work = work, .quantity = q, .known = known, .measured = NAN
	};
	snprintf(r->reason, sizeof(r->reason), "%s", reason);
}

static void expect_all(struct rfl_selftest *t, const struct work *w, unsigned set)
{
	const double copied =
		w->copy_bytes ? (double)w->copies * (double)w->copy_bytes : (double)NAN;

	if (set == RFL_SET_CORE) {
		expect(t, "copy", RFL_QUANTITY_DRAM_READ, copied, w->copy_reason);
		expect(t, "copy", RFL_QUANTITY_DRAM_WRITE, copied, w->copy_reason);
	}
	if (w->product.kernel)
		expect(t, w->product.kernel->name, w->product.kernel->quantity, w->product.flops,
		       "");
}

/* ------------------------------------------------------------------ counting */

/* Values of a session into the rows that belong to its ranges. */
static void take(struct rfl_selftest *t, const struct rfl_cupti_plan *plan,
		 const struct rfl_cupti_planned *s, const struct rfl_counted *c)
{
	double amounts[RFL_QUANTITY_COUNT];

	for (size_t i = 0; i < c->n; i++) {
		rfl_cupti_plan_amounts(plan, s, c->ranges[i].values, amounts);
		for (size_t k = 0; k < t->n; k++)
			if (strcmp(t->rows[k].work, c->ranges[i].name) == 0 &&
			    isnan(t->rows[k].measured))
				t->rows[k].measured = amounts[t->rows[k].quantity];
	}
}

static enum rfl_rc count(struct rfl_selftest *t, struct rfl_cupti_target *target,
			 const struct rfl_cupti_plan *plan, const struct rfl_cupti_planned *s,
			 struct work *work, struct rfl_err *err)
{
	struct rfl_replay replay = { .run = work_run, .ctx = work, .max_ranges = 2 };
	struct rfl_cupti_session *session = NULL;
	struct rfl_counted counted = { .arena = NULL };
	enum rfl_rc rc;

	rc = rfl_cupti_session_open(target, s, replay.max_ranges, &session, err);
	if (rc == RFL_OK)
		rc = rfl_cupti_session_count(session, &replay, &counted, err);
	if (rc == RFL_OK)
		take(t, plan, s, &counted);
	rfl_counted_fini(&counted);
	rfl_cupti_session_close(session);
	return rc;
}

/* Rows that the session gave no value get the reason. */
static void explain(struct rfl_selftest *t, const struct rfl_cupti_plan *plan, const char *why)
{
	for (size_t i = 0; i < t->n; i++) {
		struct rfl_selftest_row *r = &t->rows[i];
		const char *impossible = plan->formulas->quantities[r->quantity].impossible;

		if (isnan(r->measured) && !r->reason[0])
			snprintf(r->reason, sizeof(r->reason), "%.*s", (int)sizeof(r->reason) - 1,
				 impossible ? impossible : why);
	}
}

enum rfl_rc rfl_selftest_run(const struct rfl_cuda *cuda, struct rfl_cupti_target *target,
			     const char *precision, unsigned set, struct rfl_selftest *ret,
			     struct rfl_err *err)
{
	struct work work = { .cuda = NULL };
	const struct rfl_cupti_planned *s;
	struct rfl_selftest rows = *ret;
	struct rfl_cupti_plan *plan = NULL;
	enum rfl_rc rc;

	rc = rfl_cupti_plan_new(target->lib, target->chip, target->availability, set, precision,
				&plan, err);
	if (rc == RFL_OK)
		rc = work_init(&work, cuda, precision, set, err);
	if (rc != RFL_OK)
		goto done;
	expect_all(&rows, &work, set);
	s = &plan->sessions[0];
	if (s->why.rc != RFL_OK)
		rc = rfl_fail(err, s->why.rc, s->why.native, "%s", s->why.msg);
	else if (s->metrics.n == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "the chip has no counters for it");
	else
		rc = count(&rows, target, plan, s, &work, err);
	if (rc != RFL_OK)
		goto done;
	explain(&rows, plan, "the counter gave no value");
	rows.ecc = cuda->ecc;
	*ret = rows;
done:
	work_fini(&work);
	rfl_cupti_plan_free(plan);
	return rc;
}

/* ------------------------------------------------------------------ results */

double rfl_selftest_ratio(const struct rfl_selftest_row *row)
{
	return row->known > 0 ? row->measured / row->known : NAN;
}

bool rfl_selftest_is_ecc(const struct rfl_selftest *t, const struct rfl_selftest_row *row)
{
	const double ratio = rfl_selftest_ratio(row);

	return t->ecc && strncmp(rfl_quantity_info(row->quantity)->name, "dram", 4) == 0 &&
	       ratio > 1 && ratio < ECC_MOST;
}

const struct rfl_selftest_row *rfl_selftest_worst(const struct rfl_selftest *t, const char *family)
{
	const struct rfl_selftest_row *worst = NULL;
	double most = RFL_SELFTEST_TOLERANCE;

	for (size_t i = 0; i < t->n; i++) {
		const char *name = rfl_quantity_info(t->rows[i].quantity)->name;
		double off = fabs(rfl_selftest_ratio(&t->rows[i]) - 1);

		/* never true for NaN */
		if (off > most && strncmp(name, family, strlen(family)) == 0) {
			most = off;
			worst = &t->rows[i];
		}
	}
	return worst;
}

static void add_row(const struct rfl_selftest_row *r, struct rfl_capture_builder *b)
{
	static const char *const parts[] = { "known", "measured", "ratio" };
	const struct rfl_quantity_info *info = rfl_quantity_info(r->quantity);
	const double values[] = { r->known, r->measured, rfl_selftest_ratio(r) };

	for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++) {
		const bool none = isnan(values[i]);
		char name[96];
		int id;

		snprintf(name, sizeof(name), "selftest.%s.%s", info->name, parts[i]);
		id = rfl_capture_metric_id(b, name, strlen(name), i < 2 ? info->unit : "");
		(void)rfl_capture_metric(b, id, values[i], none ? RFL_VALID_UNAVAILABLE : RFL_VALID,
					 -1, none ? r->reason : NULL);
	}
}

enum rfl_rc rfl_selftest_add(const struct rfl_selftest *t, struct rfl_capture_builder *b,
			     struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < t->n && rc == RFL_OK;) {
		const char *work = t->rows[i].work;

		rc = rfl_capture_begin(b, RFL_RANGE_SELF_TEST, work, NULL, NULL, err);
		for (; rc == RFL_OK && i < t->n && strcmp(t->rows[i].work, work) == 0; i++)
			add_row(&t->rows[i], b);
		if (rc == RFL_OK)
			rc = rfl_capture_end(b, err);
	}
	rfl_buf_init(&text, RFL_ERR_MSG_MAX);
	for (size_t i = 0; i < t->n; i++) {
		const struct rfl_selftest_row *r = &t->rows[i];

		rfl_buf_printf(&text, "%s%s of %s ", i ? "; " : "",
			       rfl_quantity_info(r->quantity)->name, r->work);
		if (isnan(r->measured))
			rfl_buf_printf(&text, "not counted (%s)", r->reason);
		else
			rfl_buf_printf(&text, "%.4f of what is known", rfl_selftest_ratio(r));
	}
	rfl_capture_note(b, "self-test: %s", rfl_buf_str(&text));
	rfl_buf_fini(&text);
	return rc;
}
