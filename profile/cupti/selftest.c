/*
 * selftest.c - counts work of known size with the same sessions and formulas as a run: copies
 * larger than any cache, and GEMMs of small integers, which are exact in every data
 * type.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "profile/cupti/impl.h"

/* ---- the work ---- */

/* The matrices are small enough to be checked on the host each time. The product is computed TIMES
 * times, so that every multiprocessor has work. */
enum { ROWS = 64, COLUMNS = 64, DEPTH = 256, TIMES = 64 };

/* A copy is so much larger than L2 that repeating it never hits L2. Unless CUPTI flushes L2, up to
 * one L2 of data is written back after the range, and as much from before the range within it; with
 * this many copies in a range, both are less than 1 % of the known bytes. */
#define COPY_LEAST     ((size_t)64 << 20)
#define COPY_PER_L2    16
#define COPY_PER_L2_OK 4
#define RANGE_PER_L2   128

#define ECC_MOST 1.25 /* ECC check bits add at most a quarter to the bytes */

enum { A, B, C, FROM, TO, BLOCKS }; /* blocks of device memory */

/* The memory and kernels for the work of one set. */
struct work {
	const struct rfl_cuda *cuda;
	const struct rfl_selftest_kernel *kernel; /* kernel of the product; NULL: no product */
	struct rfl_cuda_module *product_module, *copy_module;
	struct rfl_cuda_function *product, *copy;
	rfl_cuda_address blocks[BLOCKS];
	size_t copy_bytes;       /* size of one copy; 0: no copies */
	size_t copies;           /* copies in a range */
	const char *copy_reason; /* why there are no copies; "": there are */
};

static int value_a(size_t row, size_t k)
{
	return (int)((row + k) % 3) - 1;
}

static int value_b(size_t column, size_t k)
{
	return (int)((2 * column + k / 2) % 5) - 2;
}

/* Store a value from -2 to 2 in the format of a data type. */
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

static enum rfl_rc upload(struct work *w, size_t lines, int (*value)(size_t, size_t),
			  rfl_cuda_address *ret, struct rfl_err *err)
{
	const size_t element = (size_t)w->kernel->element_bytes, size = lines * DEPTH * element;
	RFL_AUTOFREE char *host = rfl_alloc_array(size, 1);

	for (size_t line = 0; line < lines; line++)
		for (size_t i = 0; i < DEPTH; i++)
			put(host + (line * DEPTH + i) * element, w->kernel->type, value(line, i));
	enum rfl_rc rc = RFL_CUDA_CALL(w->cuda, memory_alloc, err, ret, size);
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(w->cuda, copy_to_device, err, *ret, host, size);
	return rc;
}

/* @param k  NULL: the copy kernel */
static enum rfl_rc load(struct work *w, const struct rfl_selftest_kernel *k,
			struct rfl_cuda_module **module, struct rfl_cuda_function **function,
			struct rfl_err *err)
{
	const char *name = k ? k->name : RFL_SELFTEST_COPY;
	RFL_AUTO(buf) ptx = { 0 };

	if (k)
		rfl_selftest_ptx(k, &ptx);
	else
		rfl_selftest_copy_ptx(&ptx);
	enum rfl_rc rc = RFL_CUDA_CALL(w->cuda, module_load, err, module, rfl_buf_str(&ptx));
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(w->cuda, module_function, err, function, *module, name);
	return rc;
}

static enum rfl_rc synchronize(struct work *w, struct rfl_err *err)
{
	return rfl_cuda_check(w->cuda, w->cuda->calls.context_synchronize(),
			      rfl_cuda_symbols.context_synchronize, err);
}

static enum rfl_rc multiply(struct work *w, struct rfl_err *err)
{
	const struct rfl_selftest_kernel *k = w->kernel;
	uint32_t columns = COLUMNS, bytes = DEPTH * (uint32_t)k->element_bytes;
	void *arguments[] = { &w->blocks[A], &w->blocks[B], &w->blocks[C], &columns, &bytes };
	enum rfl_rc rc =
		RFL_CUDA_CALL(w->cuda, launch, err, w->product, COLUMNS / (unsigned)k->tile_columns,
			      ROWS / (unsigned)k->tile_rows, TIMES, (unsigned)k->threads, 1, 1, 0,
			      NULL, arguments, NULL);

	return rc == RFL_OK ? synchronize(w, err) : rc;
}

static enum rfl_rc make_product(struct work *w, struct rfl_err *err)
{
	float c[ROWS * COLUMNS];
	enum rfl_rc rc;

	if ((rc = load(w, w->kernel, &w->product_module, &w->product, err)) != RFL_OK ||
	    (rc = upload(w, ROWS, value_a, &w->blocks[A], err)) != RFL_OK ||
	    (rc = upload(w, COLUMNS, value_b, &w->blocks[B], err)) != RFL_OK ||
	    (rc = RFL_CUDA_CALL(w->cuda, memory_alloc, err, &w->blocks[C], sizeof(c))) != RFL_OK ||
	    (rc = multiply(w, err)) != RFL_OK ||
	    (rc = RFL_CUDA_CALL(w->cuda, copy_from_device, err, c, w->blocks[C], sizeof(c))) !=
		    RFL_OK)
		return rc;
	for (size_t i = 0; i < RFL_ARRAY_LEN(c); i++) {
		const size_t row = i / COLUMNS, column = i % COLUMNS;
		int sum = 0;

		for (size_t d = 0; d < DEPTH; d++)
			sum += value_a(row, d) * value_b(column, d);
		if (c[i] != (float)sum)
			return rfl_fail(
				err, RFL_EFAILED, 0,
				"the kernel %s computed %g instead of %d (row %zu, column %zu): "
				"the GPU or its driver is faulty; reboot, or use another GPU",
				w->kernel->name, (double)c[i], sum, row, column);
	}
	return RFL_OK;
}

static enum rfl_rc copy(struct work *w, struct rfl_err *err)
{
	const unsigned blocks = (unsigned)(w->copy_bytes / RFL_SELFTEST_COPY_BYTES);
	void *arguments[] = { &w->blocks[TO], &w->blocks[FROM] };
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < w->copies && rc == RFL_OK; i++)
		rc = RFL_CUDA_CALL(w->cuda, launch, err, w->copy, blocks, 1, 1,
				   RFL_SELFTEST_COPY_THREADS, 1, 1, 0, NULL, arguments, NULL);
	return rc == RFL_OK ? synchronize(w, err) : rc;
}

/* Prepare a copy far larger than L2 that uses at most an eighth of the free memory, and run it
 * once, so that L2 is already full of its data when counting begins. */
static enum rfl_rc make_copy(struct work *w, struct rfl_err *err)
{
	const uint32_t word = 0x3f803f80;
	const size_t l2 = (size_t)w->cuda->l2_bytes;
	uint32_t last[RFL_SELFTEST_COPY_BYTES / sizeof(word)];
	size_t size = COPY_PER_L2 * l2, free_bytes = 0, total = 0;
	enum rfl_rc rc;

	if (size < COPY_LEAST)
		size = COPY_LEAST;
	if (w->cuda->calls.memory_info(&free_bytes, &total) == RFL_CUDA_SUCCESS &&
	    size > free_bytes / 8)
		size = free_bytes / 8;
	size -= size % RFL_SELFTEST_COPY_BYTES;
	if (l2 == 0)
		w->copy_reason = "the size of L2 is unknown, and a copy must be much larger";
	else if (size == 0 || size < COPY_PER_L2_OK * l2)
		w->copy_reason = "too little free device memory for a copy much larger than L2";
	if (w->copy_reason[0])
		return RFL_OK;
	w->copy_bytes = size;
	w->copies = (RANGE_PER_L2 * l2 + size - 1) / size;
	if ((rc = load(w, NULL, &w->copy_module, &w->copy, err)) != RFL_OK ||
	    (rc = RFL_CUDA_CALL(w->cuda, memory_alloc, err, &w->blocks[FROM], size)) != RFL_OK ||
	    (rc = RFL_CUDA_CALL(w->cuda, memory_alloc, err, &w->blocks[TO], size)) != RFL_OK ||
	    (rc = RFL_CUDA_CALL(w->cuda, set_words, err, w->blocks[FROM], word,
				size / sizeof(word))) != RFL_OK ||
	    (rc = copy(w, err)) != RFL_OK ||
	    (rc = RFL_CUDA_CALL(w->cuda, copy_from_device, err, last,
				w->blocks[TO] + size - sizeof(last), sizeof(last))) != RFL_OK)
		return rc;
	for (size_t i = 0; i < RFL_ARRAY_LEN(last); i++)
		if (last[i] != word)
			return rfl_fail(err, RFL_EFAILED, 0,
					"the kernel %s copied wrong data: the GPU or its driver is "
					"faulty; reboot, or use another GPU",
					RFL_SELFTEST_COPY);
	return RFL_OK;
}

static enum rfl_rc work_run(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct work *w = ctx;
	enum rfl_rc rc = RFL_OK;

	if (w->copy_bytes &&
	    ((rc = ranges->begin(ranges, RFL_RANGE_SELF_TEST, "copy", err)) != RFL_OK ||
	     (rc = copy(w, err)) != RFL_OK))
		return rc;
	if (w->kernel &&
	    ((rc = ranges->begin(ranges, RFL_RANGE_SELF_TEST, w->kernel->name, err)) != RFL_OK ||
	     (rc = multiply(w, err)) != RFL_OK))
		return rc;
	return rc;
}

static void expect(struct rfl_selftest *t, const char *work, enum rfl_quantity q, double known,
		   const char *reason)
{
	struct rfl_selftest_row *r = &t->rows[t->n++];

	*r = (struct rfl_selftest_row){
		.work = work, .quantity = q, .known = known, .measured = NAN
	};
	snprintf(r->reason, sizeof(r->reason), "%s", reason);
}

/* Count the work in one session and set the measured values of its rows. */
static enum rfl_rc count(struct rfl_selftest *t, struct rfl_cupti_target *target,
			 const struct rfl_cupti_plan *plan, struct work *work, struct rfl_err *err)
{
	const struct rfl_cupti_planned *s = &plan->sessions[0];
	struct rfl_replay replay = { .run = work_run, .ctx = work };
	struct rfl_counted counted;
	double amounts[RFL_QUANTITY_COUNT];

	if (s->why.rc != RFL_OK)
		return rfl_err_pass(err, &s->why);
	if (s->metrics.n == 0)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "this chip cannot count the self-test");
	enum rfl_rc rc = rfl_cupti_count(target, s, 2, &replay, &counted, err);
	for (size_t i = 0; rc == RFL_OK && i < counted.n; i++) {
		rfl_formulas_values(plan->formulas, s->metrics.names, counted.ranges[i].values,
				    s->metrics.n, amounts);
		for (struct rfl_selftest_row *r = t->rows; r < t->rows + t->n; r++)
			if (strcmp(r->work, counted.ranges[i].name) == 0 && isnan(r->measured))
				r->measured = amounts[r->quantity];
	}
	rfl_counted_fini(&counted);
	return rc;
}

enum rfl_rc rfl_selftest_run(const struct rfl_cuda *cuda, struct rfl_cupti_target *target,
			     const char *precision, unsigned set, struct rfl_selftest *ret,
			     struct rfl_err *err)
{
	struct work w = { .cuda = cuda, .copy_reason = "" };
	const struct rfl_selftest_kernel *k;
	struct rfl_selftest rows = *ret;
	RFL_AUTOPTR(cupti_plan) plan = NULL;
	double copied;
	enum rfl_rc rc = rfl_cupti_plan_new(target->lib, target->chip, target->availability, set,
					    precision, &plan, err);

	for (size_t i = 0; (k = rfl_selftest_kernel_at(i)); i++)
		if (cuda->capability >= k->min_capability &&
		    rfl_metric_set_of(k->quantity, precision) == set)
			w.kernel = k;
	if (rc != RFL_OK || (w.kernel && (rc = make_product(&w, err)) != RFL_OK) ||
	    (set == RFL_SET_CORE && (rc = make_copy(&w, err)) != RFL_OK))
		goto done;
	copied = w.copy_bytes ? (double)w.copies * (double)w.copy_bytes : (double)NAN;
	if (set == RFL_SET_CORE) {
		expect(&rows, "copy", RFL_QUANTITY_DRAM_READ, copied, w.copy_reason);
		expect(&rows, "copy", RFL_QUANTITY_DRAM_WRITE, copied, w.copy_reason);
	}
	if (w.kernel)
		expect(&rows, w.kernel->name, w.kernel->quantity,
		       2.0 * ROWS * COLUMNS * DEPTH * TIMES, "");
	if ((rc = count(&rows, target, plan, &w, err)) != RFL_OK)
		goto done;
	for (struct rfl_selftest_row *r = rows.rows; r < rows.rows + rows.n; r++) {
		const char *why = plan->formulas->quantities[r->quantity].impossible;

		if (isnan(r->measured) && !r->reason[0])
			snprintf(r->reason, sizeof(r->reason), "%.*s", (int)sizeof(r->reason) - 1,
				 why ? why : "the counter returned no value");
	}
	rows.ecc = cuda->ecc;
	*ret = rows;
done:
	for (const rfl_cuda_address *block = w.blocks; block < w.blocks + BLOCKS; block++)
		if (*block)
			(void)cuda->calls.memory_free(*block);
	if (w.product_module)
		(void)cuda->calls.module_unload(w.product_module);
	if (w.copy_module)
		(void)cuda->calls.module_unload(w.copy_module);
	return rc;
}

/* ---- results ---- */

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

void rfl_selftest_add(const struct rfl_selftest *t, struct rfl_capture_builder *b)
{
	static const char *const parts[] = { "known", "measured", "ratio" };
	RFL_AUTO(buf) text = { .max = RFL_ERR_MSG_MAX };

	for (size_t i = 0; i < t->n; i++) {
		const struct rfl_selftest_row *r = &t->rows[i];
		const struct rfl_quantity_info *info = rfl_quantity_info(r->quantity);
		const double values[] = { r->known, r->measured, rfl_selftest_ratio(r) };

		if (i == 0 || strcmp(r[-1].work, r->work) != 0)
			rfl_capture_begin(b, RFL_RANGE_SELF_TEST, r->work, NULL, NULL);
		for (size_t k = 0; k < RFL_ARRAY_LEN(parts); k++) {
			char name[96];

			snprintf(name, sizeof(name), "selftest.%s.%s", info->name, parts[k]);
			rfl_capture_put(b, name, k < 2 ? info->unit : "", values[k], RFL_VALID, -1,
					isnan(values[k]) ? r->reason : NULL);
		}
		rfl_buf_printf(&text, "%s%s of %s ", i ? "; " : "", info->name, r->work);
		if (isnan(r->measured))
			rfl_buf_printf(&text, "not counted (%s)", r->reason);
		else
			rfl_buf_printf(&text, "%.4f of the known value", values[2]);
	}
	rfl_capture_note(b, "self-test: %s", rfl_buf_str(&text));
}
