/*
 * kernels.c - records the launches of kernels, classifies kernels by name, and reports their times.
 * CUPTI requests buffers and returns full ones on a separate thread; they are read when the
 * workload has ended.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/num.h"
#include "profile/cupti/impl.h"

const char *const rfl_kernel_class_names[] = {
	[RFL_KERNEL_MATRIX] = "GEMMs",        [RFL_KERNEL_NORMALISATION] = "normalisation",
	[RFL_KERNEL_OPTIMIZER] = "optimizer", [RFL_KERNEL_REDUCTION] = "reduction",
	[RFL_KERNEL_POOLING] = "pooling",     [RFL_KERNEL_ELEMENTWISE] = "elementwise",
	[RFL_KERNEL_COPY] = "copies",         [RFL_KERNEL_COLLECTIVE] = "collectives",
	[RFL_KERNEL_OTHER] = "other",
};

/* The first row with a word that occurs in the name decides. The order matters: "im2col" and
 * "converttensor" are not convolutions, and "splitkreduce" is part of a GEMM. */
static const struct {
	enum rfl_kernel_class is;
	const char *words; /* lower-case words, each followed by a space */
} rules[] = {
	{ RFL_KERNEL_COLLECTIVE, "nccl allreduce " },
	{ RFL_KERNEL_COPY, "direct_copy_kernel converttensor nchwtonhwc nhwctonchw "
			   "catarraybatchedcopy memcpy memset foldednhwc nhwcaddpadding "
			   "im2col vol2col " },
	/* col2im adds up where patches overlap */
	{ RFL_KERNEL_ELEMENTWISE, "col2im indexing_backward " },
	{ RFL_KERNEL_COPY, "transpose_readwrite fillfunctor index_select indexselect " },
	{ RFL_KERNEL_OPTIMIZER, "multi_tensor_apply multitensorapply fusedadam fusedsgd " },
	{ RFL_KERNEL_NORMALISATION, "batch_norm batchnorm bn_fw bn_bw bn_inf layer_norm "
				    "layernorm rowwisemoments gammabeta group_norm groupnorm "
				    "rms_norm rmsnorm " },
	/* fused kernels, which also contain the names of the fused operations */
	{ RFL_KERNEL_MATRIX, "triton_tem " },
	{ RFL_KERNEL_REDUCTION, "triton_red triton_per " },
	{ RFL_KERNEL_ELEMENTWISE, "triton_poi " },
	{ RFL_KERNEL_MATRIX, "gemm gemv splitkreduce xmma nvjet cutlass scudnn 884cudnn "
			     "1688cudnn 16816cudnn wgrad dgrad fprop bprop winograd fft2d "
			     "implicit conv flash_fwd flash_bwd fmha attention attn sdpa "
			     "dot_kernel " },
	{ RFL_KERNEL_POOLING, "pool " },
	{ RFL_KERNEL_REDUCTION, "softmax nll_loss nllloss reduce reduction " },
	{ RFL_KERNEL_ELEMENTWISE, "elementwise dropout activation op_tensor op_generic_tensor "
				  "add_tensor scaletensor scalepackedtensor distribution_ " },
	{ RFL_KERNEL_COPY, "copy transpose gather index " },
};

static enum rfl_kernel_class classify(const char *text, size_t len)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(rules); i++)
		for (const char *word = rules[i].words; *word; word = strchr(word, ' ') + 1) {
			const size_t n = strcspn(word, " ");

			for (size_t at = 0; at + n <= len; at++)
				if (strncasecmp(text + at, word, n) == 0)
					return rules[i].is;
		}
	return RFL_KERNEL_OTHER;
}

enum rfl_kernel_class rfl_kernel_classify(const char *name)
{
	size_t own = strcspn(name, "<");

	if (name[own] == '\0')
		own = strcspn(name, "(");
	if (own == 0) /* "<unnamed>::..." */
		own = strlen(name);
	enum rfl_kernel_class is = classify(name, own);
	if (is != RFL_KERNEL_ELEMENTWISE && is != RFL_KERNEL_OTHER)
		return is;
	/* The template arguments of an elementwise kernel name its operation; only copies matter.
	 */
	enum rfl_kernel_class inner = classify(name + own, strlen(name + own));
	return is == RFL_KERNEL_OTHER || inner == RFL_KERNEL_COPY ? inner : is;
}

#define BUFFER_SIZE ((size_t)1 << 20) /* enough for about 5000 kernels */

struct buffers {
	struct buffer {
		uint8_t *data;
		size_t valid;
	} * items;
	size_t n, cap;
};

/* Full buffers; global because the callbacks of CUPTI have no user argument. */
static struct buffers full;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- buffers ---- */

static void requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = rfl_alloc_array(BUFFER_SIZE, 1); /* aligned for any type */
	*size = BUFFER_SIZE;
	*max_records = 0;
}

static void completed(struct rfl_cuda_context *context, uint32_t stream, uint8_t *data, size_t size,
		      size_t valid)
{
	(void)context;
	(void)stream;
	(void)size;
	pthread_mutex_lock(&lock);
	rfl_reserve(&full.items, &full.cap, full.n + 1);
	full.items[full.n++] = (struct buffer){ .data = data, .valid = valid };
	pthread_mutex_unlock(&lock);
}

/* Pass the buffers filled so far to the caller. */
static struct buffers take_buffers(void)
{
	pthread_mutex_lock(&lock);
	struct buffers taken = full;
	full = (struct buffers){ .n = 0 };
	pthread_mutex_unlock(&lock);
	return taken;
}

static void free_buffers(struct buffers b)
{
	for (size_t i = 0; i < b.n; i++)
		free(b.items[i].data);
	free(b.items);
}

/* ---- records ---- */

typedef char *demangler(const char *name, char *out, size_t *size, int *status);

struct reader {
	struct rfl_kernel_launches *to;
	demangler *demangle; /* from the C++ library, which comes with libtorch; may be NULL */
	const char *last_raw, *last_name; /* the same kernel is often launched repeatedly */
};

static void add_record(struct reader *r, const struct rfl_cupti_kernel_record *k)
{
	struct rfl_kernel_launches *to = r->to;
	struct rfl_kernel_launch *l;

	if (!k->name || k->start_ns == 0 || k->end_ns < k->start_ns) {
		to->untimed++; /* a time of 0: not collected, or not ended */
		return;
	}
	if (!r->last_raw || strcmp(r->last_raw, k->name) != 0) {
		int status = 0;
		char *text = r->demangle && strncmp(k->name, "_Z", 2) == 0
				     ? r->demangle(k->name, NULL, NULL, &status)
				     : NULL;

		r->last_raw = k->name;
		r->last_name = rfl_arena_strdup(to->arena, text ? text : k->name);
		free(text);
	}
	l = rfl_arena_append(to->arena, &to->launches, &to->n);
	*l = (struct rfl_kernel_launch){ .name = r->last_name,
					 .time_s = 1e-9 * (double)(k->end_ns - k->start_ns),
					 .begin_ns = k->start_ns,
					 .end_ns = k->end_ns };
	memcpy(l->grid, k->grid, sizeof(l->grid));
	memcpy(l->block, k->block, sizeof(l->block));
}

static int by_begin(const void *a, const void *b)
{
	const struct rfl_kernel_launch *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Call it after all kernels have ended: CUPTI does not wait for them. */
static enum rfl_rc read_all(struct rfl_cupti *lib, struct rfl_kernel_launches *ret,
			    struct rfl_err *err)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++abi.so.1", NULL };
	struct reader r = { .to = ret };
	const struct rfl_dl_symbol symbol = { "__cxa_demangle", &r.demangle, false };
	struct rfl_dl *dl = NULL;
	enum rfl_rc rc;

	if ((rc = RFL_CUPTI_CALL(lib, activity_flush, err, RFL_CUPTI_FLUSH_FORCED)) != RFL_OK ||
	    (rc = RFL_CUPTI_CALL(lib, activity_dropped, err, NULL, 0, &ret->lost)) != RFL_OK)
		return rc;
	struct buffers taken = take_buffers();
	ret->arena = rfl_arena_new();
	if (rfl_dl_open(libraries, RFL_DL_LOAD, &symbol, 1, &dl, NULL) == RFL_OK)
		rfl_dl_close(dl); /* the library stays loaded */
	for (size_t i = 0; i < taken.n && rc == RFL_OK; i++) {
		const struct buffer *b = &taken.items[i];
		struct rfl_cupti_record *record = NULL;
		int code = RFL_CUPTI_SUCCESS;

		while ((code = lib->calls.activity_next(b->data, b->valid, &record)) ==
		       RFL_CUPTI_SUCCESS)
			if (record->kind == RFL_CUPTI_ACTIVITY_CONCURRENT_KERNEL ||
			    record->kind == RFL_CUPTI_ACTIVITY_KERNEL)
				add_record(&r, (const void *)record);
		if (code != RFL_CUPTI_MAX_LIMIT_REACHED)
			rc = rfl_cupti_check(lib, code, rfl_cupti_symbols.activity_next, err);
	}
	free_buffers(taken);
	if (ret->n > 0)
		qsort(ret->launches, ret->n, sizeof(*ret->launches), by_begin);
	return rc;
}

enum rfl_rc rfl_cupti_kernels(struct rfl_cupti *lib, struct rfl_replay *work,
			      struct rfl_counted *ranges, struct rfl_kernel_launches *ret,
			      struct rfl_err *err)
{
	enum rfl_rc rc;

	*ret = (struct rfl_kernel_launches){ .arena = NULL };
	*ranges = (struct rfl_counted){ .arena = NULL };
	free_buffers(take_buffers());
	if ((rc = rfl_replay_ready(work, err)) != RFL_OK ||
	    (rc = RFL_CUPTI_CALL(lib, activity_register, err, requested, completed)) != RFL_OK ||
	    (rc = RFL_CUPTI_CALL(lib, activity_enable, err,
				 RFL_CUPTI_ACTIVITY_CONCURRENT_KERNEL)) != RFL_OK)
		return rc;
	rc = rfl_counted_walk(work, ranges, err);
	if (rc == RFL_OK)
		rc = read_all(lib, ret, err);
	else /* discard these records, or the next run would get them */
		(void)lib->calls.activity_flush(RFL_CUPTI_FLUSH_FORCED);
	/* CUPTI of CUDA 13.0, before Update 1, may hang here */
	if (lib->version != 130000)
		(void)lib->calls.activity_disable(RFL_CUPTI_ACTIVITY_CONCURRENT_KERNEL);
	free_buffers(take_buffers());
	return rc;
}

void rfl_kernel_launches_fini(struct rfl_kernel_launches *l)
{
	rfl_arena_free(l->arena);
	*l = (struct rfl_kernel_launches){ .arena = NULL };
}

/* ---- in a capture ---- */

/* Add a note on the share of each class of kernels. */
static void note_classes(const struct rfl_kernel_launches *launches, struct rfl_capture_builder *b)
{
	double time_s[RFL_KERNEL_CLASSES] = { 0 }, total_s = 0;
	enum rfl_kernel_class *is = NULL;
	struct rfl_keys names = { 0 };
	RFL_AUTO(buf) rest = { 0 };
	size_t cap = 0;
	char total[32];

	for (size_t i = 0; i < launches->n; i++) {
		const struct rfl_kernel_launch *l = &launches->launches[i];
		bool added;
		const uint32_t number =
			rfl_keys_add(&names, launches->arena, l->name, strlen(l->name), &added);

		rfl_arena_reserve(launches->arena, &is, &cap, number);
		if (added)
			is[number - 1] = rfl_kernel_classify(l->name);
		time_s[is[number - 1]] += l->time_s;
		total_s += l->time_s;
	}
	for (int c = 0; c < RFL_KERNEL_CLASSES; c++)
		if (c != RFL_KERNEL_MATRIX && time_s[c] > 0)
			rfl_buf_printf(&rest, ", %s %.1f %%", rfl_kernel_class_names[c],
				       100 * time_s[c] / total_s);
	rfl_capture_note(
		b,
		"kernels: %zu launches of %zu kernels take %s: %s %.1f %%%s (classified by name)",
		launches->n, names.n, rfl_num_si(total_s, "s", 4, total, sizeof(total)),
		rfl_kernel_class_names[RFL_KERNEL_MATRIX],
		100 * time_s[RFL_KERNEL_MATRIX] / total_s, rfl_buf_str(&rest));
}

/* Add a note on the time in which no kernel runs. Concurrent kernels count once. `step_s` is the
 * time of a step without recording, which makes steps longer but not their kernels. */
static void note_idle(const struct rfl_kernel_launches *launches, double step_s,
		      struct rfl_capture_builder *b)
{
	uint64_t busy_ns = 0, until_ns = 0;
	char busy[32], step[32];

	for (size_t i = 0; i < launches->n; i++) {
		const struct rfl_kernel_launch *l = &launches->launches[i];
		const uint64_t from = l->begin_ns > until_ns ? l->begin_ns : until_ns;

		if (l->end_ns > from)
			busy_ns += l->end_ns - from;
		until_ns = l->end_ns > until_ns ? l->end_ns : until_ns;
	}
	rfl_capture_note(
		b, "idle: kernels run for %s of a step of %s; no kernel runs for %.1f %% of it",
		rfl_num_si(1e-9 * (double)busy_ns, "s", 4, busy, sizeof(busy)),
		rfl_num_si(step_s, "s", 4, step, sizeof(step)),
		fmax(0, 100 * (1 - 1e-9 * (double)busy_ns / step_s)));
}

void rfl_kernel_launches_add(const struct rfl_kernel_launches *launches, double step_s,
			     struct rfl_capture_builder *b)
{
	static const char metric[] = "gpu__time_duration.sum";
	const int id = rfl_capture_metric_id(b, metric, strlen(metric), "s");

	for (size_t i = 0; i < launches->n; i++) {
		const struct rfl_kernel_launch *l = &launches->launches[i];
		char block[48], grid[48];

		snprintf(block, sizeof(block), "(%d, %d, %d)", l->block[0], l->block[1],
			 l->block[2]);
		snprintf(grid, sizeof(grid), "(%d, %d, %d)", l->grid[0], l->grid[1], l->grid[2]);
		rfl_capture_begin(b, RFL_RANGE_KERNEL, l->name, block, grid);
		(void)rfl_capture_metric(b, id, l->time_s, RFL_VALID, -1, NULL);
	}
	if (launches->lost)
		rfl_capture_note(b,
				 "CUPTI lost the records of %zu kernels: the times of kernels are "
				 "a lower bound",
				 launches->lost);
	if (launches->untimed)
		rfl_capture_note(b,
				 "CUPTI has no times for %zu launches of kernels: the times of "
				 "kernels are a lower bound",
				 launches->untimed);
	if (launches->n + launches->lost + launches->untimed == 0)
		rfl_capture_note(b, "CUPTI recorded no kernels: nothing ran on a GPU");
	if (launches->n == 0)
		return;
	note_classes(launches, b);
	if (step_s > 0 && launches->lost + launches->untimed == 0)
		note_idle(launches, step_s, b);
}
