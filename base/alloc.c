/* alloc.c - allocation that ends the process when memory runs out, growing arrays, and the arena: a
 * chain of zeroed blocks. */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define GROW_FIRST        ((size_t)16)
#define ARENA_BLOCK_FIRST ((size_t)4096)
#define ARENA_BLOCK_MOST  ((size_t)256 << 10)

static void (*on_failure)(void);

void rfl_out_of_memory(void)
{
	if (on_failure)
		on_failure();
	abort();
}

void rfl_set_out_of_memory(void (*handler)(void))
{
	on_failure = handler;
}

void rfl_auto_malloc(void *pointer)
{
	void *p;

	memcpy(&p, pointer, sizeof(p)); /* as in rfl_reserve_bytes() */
	free(p);
}

void *rfl_try_array(size_t n, size_t size)
{
	if (n == 0 || size == 0)
		return calloc(1, 1); /* NULL means failure only */
	if (n > SIZE_MAX / size)     /* calloc() also checks, but aborts under a sanitizer */
		return NULL;
	return calloc(n, size);
}

void *rfl_alloc_array(size_t n, size_t size)
{
	void *p = rfl_try_array(n, size);

	if (!p)
		rfl_out_of_memory();
	return p;
}

char *rfl_strdup(const char *s)
{
	const size_t size = s ? strlen(s) + 1 : 0;

	return s ? memcpy(rfl_alloc_array(size, 1), s, size) : NULL;
}

/* The next capacity of an array that needs more. */
static size_t next_cap(size_t cap, size_t need, size_t size)
{
	const size_t most = SIZE_MAX / size;
	size_t n = cap < most / 2 ? cap * 2 : most;

	if (n < GROW_FIRST)
		n = GROW_FIRST < most ? GROW_FIRST : most;
	return n < need ? need : n;
}

void rfl_reserve_bytes(void *items, size_t *cap, size_t need, size_t size)
{
	size_t n;
	void *p;

	if (need <= *cap)
		return;
	n = next_cap(*cap, need, size);
	/* Copy bytes: reading a T * through a void ** would violate the aliasing rules. */
	memcpy(&p, items, sizeof(p));
	p = n > SIZE_MAX / size ? NULL : realloc(p, n * size);
	if (!p)
		rfl_out_of_memory();
	memcpy(items, &p, sizeof(p));
	*cap = n;
}

struct block {
	struct block *next;
	size_t used, size; /* size of `data` and bytes used */
	max_align_t data[];
};

struct rfl_arena {
	struct block *head; /* newest block; only this one has free space */
	size_t next_size;
};

struct rfl_arena *rfl_arena_new(void)
{
	struct rfl_arena *a = rfl_alloc_array(1, sizeof(*a));

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

	if ((size && n > SIZE_MAX / size) || bytes > SIZE_MAX - align - sizeof(*b))
		rfl_out_of_memory();
#ifdef RFL_ARENA_DEBUG
	padded = want = bytes; /* one block per object, so that overruns are detected */
	b = NULL;
#else
	padded = (bytes + align - 1) / align * align;
	want = padded > a->next_size ? padded : a->next_size;
	b = a->head;
#endif
	if (!b || b->size - b->used < padded) {
		b = rfl_alloc_array(1, sizeof(*b) + want);
		b->next = a->head;
		b->size = want;
		a->head = b;
		if (a->next_size < ARENA_BLOCK_MOST)
			a->next_size *= 2;
	}
	b->used += padded;
	return (char *)b->data + b->used - padded;
}

void rfl_arena_reserve_bytes(struct rfl_arena *a, void *items, size_t *cap, size_t need,
			     size_t size)
{
	size_t n;
	void *old, *p;

	if (need <= *cap)
		return;
	n = next_cap(*cap, need, size);
	memcpy(&old, items, sizeof(old));
	p = rfl_arena_array(a, n, size);
	if (*cap > 0)
		memcpy(p, old, *cap * size);
	memcpy(items, &p, sizeof(p));
	*cap = n;
}

void *rfl_arena_append_bytes(struct rfl_arena *a, void *items, size_t *n, size_t size)
{
	char *p, *more;

	memcpy(&p, items, sizeof(p)); /* as in rfl_reserve_bytes() */
	if ((*n & (*n - 1)) == 0) {   /* 0 or a power of two: it is full */
		more = rfl_arena_array(a, *n ? 2 * *n : 1, size);
		p = *n ? memcpy(more, p, *n * size) : more;
		memcpy(items, &p, sizeof(p));
	}
	return p + (*n)++ * size;
}

void rfl_arena_join(struct rfl_arena *a, struct rfl_arena *take_other)
{
	struct block **last = &a->head;

	while (*last)
		last = &(*last)->next;
	*last = take_other->head;
	free(take_other);
}

char *rfl_arena_strdup(struct rfl_arena *a, const char *s)
{
	const size_t size = s ? strlen(s) + 1 : 0;

	return s ? memcpy(rfl_arena_array(a, size, 1), s, size) : NULL;
}

char *rfl_arena_printf(struct rfl_arena *a, const char *fmt, ...)
{
	char small[256]; /* long enough for most strings */
	va_list ap;
	char *p;
	int len;

	va_start(ap, fmt);
	len = rfl_num_vprint(small, sizeof(small), fmt, ap);
	va_end(ap);
	p = rfl_arena_array(a, len < 0 ? 1 : (size_t)len + 1, 1);
	if (len < 0) /* an argument longer than INT_MAX */
		return p;
	if ((size_t)len < sizeof(small))
		return memcpy(p, small, (size_t)len + 1);
	va_start(ap, fmt);
	(void)rfl_num_vprint(p, (size_t)len + 1, fmt, ap);
	va_end(ap);
	return p;
}
