/*
 * activity.c - records of kernels. CUPTI asks for buffers and gives them back full on a
 * thread of its own; they are kept as they are, and read when the workload has ended.
 */
#include "profile/cupti/activity.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/dl.h"
#include "profile/cupti/api.h"

#define BUFFER_SIZE ((size_t)1 << 20) /* about 5000 kernels */

struct buffer {
	struct buffer *next;
	uint8_t *data;
	size_t valid;
};

/* Full buffers. The callbacks of CUPTI carry no argument of ours, and there is one CUPTI. */
static struct {
	pthread_mutex_t lock;
	struct buffer *first, **last;
	bool no_memory;
} full = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ------------------------------------------------------------------ buffers */

static void requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = malloc(BUFFER_SIZE); /* aligned for any type */
	*size = *buffer ? BUFFER_SIZE : 0;
	*max_records = 0;
}

static void completed(struct rfl_cuda_context *context, uint32_t stream, uint8_t *data, size_t size,
		      size_t valid)
{
	struct buffer *b = malloc(sizeof(*b));

	(void)context;
	(void)stream;
	(void)size;
	pthread_mutex_lock(&full.lock);
	if (b && data) {
		*b = (struct buffer){ .data = data, .valid = valid };
		*full.last = b;
		full.last = &b->next;
	} else {
		full.no_memory = true;
		free(data);
		free(b);
	}
	pthread_mutex_unlock(&full.lock);
}

/* The buffers so far, which are the caller's then; whether one is missing for want of memory. */
static struct buffer *take_buffers(bool *no_memory)
{
	struct buffer *first;

	pthread_mutex_lock(&full.lock);
	first = full.first;
	*no_memory = full.no_memory;
	full.first = NULL;
	full.last = &full.first;
	full.no_memory = false;
	pthread_mutex_unlock(&full.lock);
	return first;
}

static void free_buffers(struct buffer *b)
{
	while (b) {
		struct buffer *next = b->next;

		free(b->data);
		free(b);
		b = next;
	}
}

static void forget_buffers(void)
{
	bool no_memory;

	free_buffers(take_buffers(&no_memory));
}

/* ------------------------------------------------------------------ names */

typedef char *demangler(const char *name, char *out, size_t *size, int *status);

/* Of the C++ library, which is in the process when libtorch is; without one names stay mangled. */
static demangler *find_demangler(void)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++abi.so.1", NULL };
	demangler *found = NULL;
	const struct rfl_dl_symbol symbol = { "__cxa_demangle", &found, false };
	struct rfl_dl *dl = NULL;

	if (rfl_dl_open(libraries, &symbol, 1, &dl, NULL) != RFL_OK)
		return NULL;
	rfl_dl_close(dl); /* it stays loaded */
	return found;
}

static const char *readable(struct rfl_arena *arena, const char *name, demangler *demangle)
{
	int status = 0;
	char *text = demangle && strncmp(name, "_Z", 2) == 0 ? demangle(name, NULL, NULL, &status)
							     : NULL;
	const char *kept = rfl_arena_strdup(arena, text ? text : name);

	free(text);
	return kept;
}

/* ------------------------------------------------------------------ records */

struct reader {
	struct rfl_kernel_launches *to;
	demangler *demangle;
	size_t cap;
	const char *last_raw, *last_name; /* the same kernel often follows itself */
};

static enum rfl_rc add_record(struct reader *r, const struct rfl_cupti_kernel_record *k,
			      struct rfl_err *err)
{
	struct rfl_kernel_launches *to = r->to;
	struct rfl_kernel_launch *l;

	if (to->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 1024;
		struct rfl_kernel_launch *more = realloc(to->launches, cap * sizeof(*more));

		if (!more)
			return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for kernels");
		to->launches = more;
		r->cap = cap;
	}
	if (!r->last_raw || strcmp(r->last_raw, k->name) != 0) {
		r->last_raw = k->name;
		r->last_name = readable(to->arena, k->name, r->demangle);
	}
	if (!r->last_name)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for kernels");
	l = &to->launches[to->n++];
	*l = (struct rfl_kernel_launch){ .name = r->last_name,
					 .time_s = 1e-9 * (double)(k->end_ns - k->start_ns),
					 .begin_ns = k->start_ns,
					 .end_ns = k->end_ns };
	memcpy(l->grid, k->grid, sizeof(l->grid));
	memcpy(l->block, k->block, sizeof(l->block));
	return RFL_OK;
}

static enum rfl_rc read_buffer(struct rfl_cupti *lib, const struct buffer *b, struct reader *r,
			       struct rfl_err *err)
{
	const struct rfl_cupti_functions *calls = rfl_cupti_calls(lib);
	struct rfl_cupti_record *record = NULL;
	enum rfl_rc rc = RFL_OK;
	int code;

	while (rc == RFL_OK &&
	       (code = calls->activity_next(b->data, b->valid, &record)) == RFL_CUPTI_SUCCESS) {
		const struct rfl_cupti_kernel_record *k = (const void *)record;

		if (record->kind != RFL_CUPTI_ACTIVITY_CONCURRENT_KERNEL &&
		    record->kind != RFL_CUPTI_ACTIVITY_KERNEL)
			continue;
		if (!k->name || k->start_ns == 0 || k->end_ns < k->start_ns)
			r->to->untimed++; /* 0: could not be collected, or has not ended */
		else
			rc = add_record(r, k, err);
	}
	if (rc == RFL_OK && code != RFL_CUPTI_MAX_LIMIT_REACHED)
		rc = rfl_cupti_check(lib, code, "cuptiActivityGetNextRecord", err);
	return rc;
}

static enum rfl_rc read_buffers(struct rfl_cupti *lib, const struct buffer *first,
				struct rfl_kernel_launches *ret, struct rfl_err *err)
{
	struct reader r = { .to = ret, .demangle = find_demangler() };
	enum rfl_rc rc = RFL_OK;

	ret->arena = rfl_arena_new(0);
	if (!ret->arena)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (const struct buffer *b = first; b && rc == RFL_OK; b = b->next)
		rc = read_buffer(lib, b, &r, err);
	return rc;
}

/* Call with no kernel running any more: CUPTI waits for none. */
static enum rfl_rc read_all(struct rfl_cupti *lib, struct rfl_kernel_launches *ret,
			    struct rfl_err *err)
{
	const struct rfl_cupti_functions *calls = rfl_cupti_calls(lib);
	struct buffer *first;
	bool no_memory;
	enum rfl_rc rc;

	rc = rfl_cupti_check(lib, calls->activity_flush(RFL_CUPTI_FLUSH_FORCED),
			     "cuptiActivityFlushAll", err);
	if (rc == RFL_OK)
		rc = rfl_cupti_check(lib, calls->activity_dropped(NULL, 0, &ret->lost),
				     "cuptiActivityGetNumDroppedRecords", err);
	if (rc != RFL_OK)
		return rc;
	first = take_buffers(&no_memory);
	if (no_memory)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the records of kernels");
	else
		rc = read_buffers(lib, first, ret, err);
	free_buffers(first);
	return rc;
}

enum rfl_rc rfl_cupti_kernels(struct rfl_cupti *lib, struct rfl_replay *work,
			      struct rfl_counted *ranges, struct rfl_kernel_launches *ret,
			      struct rfl_err *err)
{
	const struct rfl_cupti_functions *calls = rfl_cupti_calls(lib);
	enum rfl_rc rc;

	*ret = (struct rfl_kernel_launches){ .arena = NULL };
	*ranges = (struct rfl_counted){ .arena = NULL };
	forget_buffers();
	rc = rfl_replay_ready(work, err);
	if (rc != RFL_OK)
		return rc;
	rc = rfl_cupti_check(lib, calls->activity_register(requested, completed),
			     "cuptiActivityRegisterCallbacks", err);
	if (rc != RFL_OK)
		return rc;
	rc = rfl_cupti_check(lib, calls->activity_enable(RFL_CUPTI_ACTIVITY_CONCURRENT_KERNEL),
			     "cuptiActivityEnable", err);
	if (rc != RFL_OK)
		return rc;
	rc = rfl_counted_walk(work, ranges, err);
	if (rc == RFL_OK)
		rc = read_all(lib, ret, err);
	else /* so that the next one does not get these */
		(void)calls->activity_flush(RFL_CUPTI_FLUSH_FORCED);
	/* CUPTI of CUDA 13.0, before Update 1, may never come back from this */
	if (rfl_cupti_version(lib) != 130000)
		(void)calls->activity_disable(RFL_CUPTI_ACTIVITY_CONCURRENT_KERNEL);
	forget_buffers();
	return rc;
}

void rfl_kernel_launches_fini(struct rfl_kernel_launches *l)
{
	free(l->launches);
	rfl_arena_free(l->arena);
	*l = (struct rfl_kernel_launches){ .arena = NULL };
}
