/* alloc_failure.c - the allocation functions, one call of which fails. */
#include "tests/unit/alloc_failure.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/unit/rfl_test.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
char *__wrap_strndup(const char *s, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__real_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved);

static bool counting;
static size_t seen, fail_at; /* fail_at 0: never */
static long live;

static bool fails(void)
{
	return counting && ++seen == fail_at;
}

static void *note(void *p)
{
	if (counting && p)
		live++;
	return p;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : note(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : note(__real_calloc(n, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : note(__real_aligned_alloc(alignment, size));
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : note(__real_strdup(s));
}

char *__wrap_strndup(const char *s, size_t n)
{
	return fails() ? NULL : note(__real_strndup(s, n));
}

char *__wrap_realpath(const char *path, char *resolved)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return note(__real_realpath(path, resolved));
}

void *__wrap_realloc(void *p, size_t size)
{
	if (fails())
		return NULL;
	return p ? __real_realloc(p, size) : note(__real_malloc(size));
}

void __wrap_free(void *p)
{
	if (counting && p)
		live--;
	__real_free(p);
}

/* Run once with the n-th allocation failing. False when there are fewer than n. */
static bool run_once(const struct alloc_operation *op, size_t n)
{
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc;
	bool failed;

	fail_at = n;
	seen = 0;
	live = 0;
	counting = true;
	rc = op->run(&err);
	counting = false;
	failed = seen >= n;
	if (live != 0)
		fail_msg("%s: allocation %zu failing: %ld blocks are left", op->name, n, live);
	/* A failure may be done without (syncing a directory); it may not turn into another one. */
	if (rc != RFL_OK && rc != RFL_ENOMEM)
		fail_msg("%s: allocation %zu failing: %s: %s", op->name, n, rfl_rc_text(rc),
			 err.msg);
	if (!failed && rc != RFL_OK)
		fail_msg("%s: fails without reason: %s", op->name, err.msg);
	return failed;
}

void assert_each_allocation_fails(const struct alloc_operation *op)
{
	size_t n = 1;

	while (run_once(op, n))
		n++;
	if (n - 1 < op->least)
		fail_msg("%s: only %zu allocations were seen", op->name, n - 1);
}

size_t count_allocations(const struct alloc_operation *op)
{
	(void)run_once(op, SIZE_MAX); /* fails the test where the operation fails */
	return seen;
}

void assert_no_allocation(const struct alloc_operation *op)
{
	if (count_allocations(op) != 0)
		fail_msg("%s: %zu allocations were seen", op->name, seen);
}

void watch_allocations(void)
{
	json_set_alloc_funcs(malloc, free); /* the library's own are out of our reach */
}
