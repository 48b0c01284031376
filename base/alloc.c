/* alloc.c - checked and growing arrays, and the arena: a chain of zeroed blocks. */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROW_FIRST        ((size_t)16)
#define ARENA_MAX_DEFAULT ((size_t)1 << 30)
#define ARENA_BLOCK_FIRST ((size_t)4096)
#define ARENA_BLOCK_MOST  ((size_t)256 << 10)

void *rfl_alloc_array(size_t n, size_t size)
{
	if (n == 0 || size == 0)
		return calloc(1, 1); /* NULL means failure only */
	if (n > SIZE_MAX / size)     /* calloc() also checks, but aborts under a sanitizer */
		return NULL;
	return calloc(n, size);
}

enum rfl_rc rfl_no_memory(struct rfl_err *err, const char *what)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", what);
}

enum rfl_rc rfl_grow_bytes(void *items, size_t *cap, size_t need, size_t size, size_t max,
			   struct rfl_err *err)
{
	const size_t fit = SIZE_MAX / size, most = max < fit ? max : fit;
	size_t n = *cap < most / 2 ? *cap * 2 : most;
	void *p;

	if (need <= *cap)
		return RFL_OK;
	if (need > max)
		return rfl_fail(err, RFL_EOVERFLOW, 0, "more than the %zu elements allowed", max);
	if (n < GROW_FIRST)
		n = GROW_FIRST < most ? GROW_FIRST : most;
	if (n < need)
		n = need;
	/* Copy bytes: reading a T * through a void ** would violate the aliasing rules. */
	memcpy(&p, items, sizeof(p));
	p = n > fit ? NULL : realloc(p, n * size);
	if (!p)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %zu elements of %zu bytes",
				n, size);
	memcpy(items, &p, sizeof(p));
	*cap = n;
	return RFL_OK;
}

struct block {
	struct block *next;
	size_t used, size; /* size of `data` and bytes used */
	max_align_t data[];
};

struct rfl_arena {
	struct block *head; /* newest block; only this one has free space */
	size_t max, total;
	size_t next_size;
	bool failed;
};

struct rfl_arena *rfl_arena_new(size_t max_bytes)
{
	struct rfl_arena *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->max = max_bytes ? max_bytes : ARENA_MAX_DEFAULT;
	a->next_size = ARENA_BLOCK_FIRST;
	return a;
}

void rfl_arena_free(struct rfl_arena *a)
{
	if (!a)
		return;
	for (struct block *b = a->head; b;) {
		struct block *next = b->next;

		free(b);
		b = next;
	}
	free(a);
}

void *rfl_arena_array(struct rfl_arena *a, size_t n, size_t size)
{
	const size_t align = _Alignof(max_align_t), bytes = n * size;
	struct block *b;
	size_t padded, want;

	if (!a)
		return NULL;
	if ((size && n > SIZE_MAX / size) || bytes > a->max - a->total ||
	    bytes > SIZE_MAX - align - sizeof(*b))
		goto failed;
#ifdef RFL_ARENA_DEBUG
	padded = want = bytes; /* one block per object, so that overruns are detected */
	b = NULL;
#else
	padded = (bytes + align - 1) / align * align;
	want = padded > a->next_size ? padded : a->next_size;
	b = a->head;
#endif
	if (!b || b->size - b->used < padded) {
		b = calloc(1, sizeof(*b) + want);
		if (!b)
			goto failed;
		*b = (struct block){ .next = a->head, .size = want };
		a->head = b;
		if (a->next_size < ARENA_BLOCK_MOST)
			a->next_size *= 2;
	}
	b->used += padded;
	a->total += bytes;
	return (char *)b->data + b->used - padded;
failed:
	a->failed = true;
	return NULL;
}

enum rfl_rc rfl_arena_check(const struct rfl_arena *a, const char *what, struct rfl_err *err)
{
	return a && !a->failed ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", what);
}

void rfl_arena_join(struct rfl_arena *a, struct rfl_arena *take_other)
{
	struct block **last = &a->head;

	while (*last)
		last = &(*last)->next;
	*last = take_other->head;
	a->failed = a->failed || take_other->failed;
	free(take_other);
}

char *rfl_arena_strdup(struct rfl_arena *a, const char *s)
{
	size_t size = strlen(s) + 1;
	char *p = rfl_arena_array(a, size, 1);

	if (p)
		memcpy(p, s, size);
	return p;
}

char *rfl_arena_printf(struct rfl_arena *a, const char *fmt, ...)
{
	char small[256]; /* long enough for most strings */
	va_list ap;
	char *p;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (len < 0)
		return NULL;
	p = rfl_arena_array(a, (size_t)len + 1, 1);
	if (!p)
		return NULL;
	if ((size_t)len < sizeof(small)) {
		memcpy(p, small, (size_t)len + 1);
		return p;
	}
	va_start(ap, fmt);
	vsnprintf(p, (size_t)len + 1, fmt, ap);
	va_end(ap);
	return p;
}
