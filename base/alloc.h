/*
 * alloc.h - heap memory and arenas.
 *
 * Memory that runs out ends the process: these functions never return NULL, so callers need no
 * checks and no error path that cannot be tested. Only large blocks whose size the user chooses
 * (batches, images, benchmark arrays) come from rfl_try_array(), which can fail.
 */
#ifndef RFL_BASE_ALLOC_H
#define RFL_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h> /* SIZE_MAX */

#include "base/err.h"

RFL_API_BEGIN

/**
 * Set what happens when memory runs out. The handler must not return and must not allocate; a
 * program that embeds the library may leave it with longjmp(). Without a handler, the process
 * aborts. Not thread-safe; call it once, first.
 */
void rfl_set_out_of_memory(void (*handler)(void));

/** Call the handler. For code that allocates through another library. */
RFL_NORETURN void rfl_out_of_memory(void);

/** Free what a pointer points to at the end of its scope: RFL_AUTOFREE char *copy = NULL; */
#define RFL_AUTOFREE RFL_CLEANUP(rfl_auto_malloc)
void rfl_auto_malloc(void *pointer);

/** Allocate n * size zeroed bytes; release with free(). */
void *rfl_alloc_array(size_t n, size_t size) RFL_WARN_UNUSED;

/** As rfl_alloc_array(), but NULL on overflow or if memory runs out. */
void *rfl_try_array(size_t n, size_t size) RFL_WARN_UNUSED;

/** Copy a string; release with free(). NULL remains NULL. */
char *rfl_strdup(const char *s) RFL_WARN_UNUSED;

/**
 * Make room for `need` elements in a growing array owned by the caller:
 *
 *     rfl_reserve(&list->items, &list->cap, list->n + 1);
 *
 * The capacity at least doubles; new elements are not zeroed. To grow several arrays of one length,
 * pass each a copy of the capacity and store it after all have grown.
 *
 * @param items  address of the caller's pointer, NULL at first; free() releases the array
 * @param cap    elements that fit; 0 at first
 */
#define rfl_reserve(items, cap, need) rfl_reserve_bytes((items), (cap), (need), sizeof(**(items)))

/** Used by rfl_reserve(): `items` is the address of a pointer to objects of `size` bytes. */
void rfl_reserve_bytes(void *items, size_t *cap, size_t need, size_t size);

/** An arena: objects that are all freed together. Not thread-safe. Memory is zeroed and aligned for
 * any type. With RFL_ARENA_DEBUG (the asan preset) each object has a separate malloc block, so that
 * the address sanitizer detects overruns. */
struct rfl_arena;

struct rfl_arena *rfl_arena_new(void) RFL_WARN_UNUSED;

/** Release every object. Accepts NULL. */
void rfl_arena_free(struct rfl_arena *a);
RFL_AUTOPTR_TYPE(arena, free);

/** Allocate n * size zeroed bytes in the arena. */
void *rfl_arena_array(struct rfl_arena *a, size_t n, size_t size) RFL_WARN_UNUSED;

/** As rfl_reserve(), for an array in the arena. New elements are zeroed. The memory of the smaller
 * array is not reused. */
#define rfl_arena_reserve(a, items, cap, need) \
	rfl_arena_reserve_bytes((a), (items), (cap), (need), sizeof(**(items)))
void rfl_arena_reserve_bytes(struct rfl_arena *a, void *items, size_t *cap, size_t need,
			     size_t size);

/** Append a zeroed element to a list whose elements have all been appended this way:
 *
 *     struct x *x = rfl_arena_append(a, &list->items, &list->n);
 *
 * The elements move when the list grows. */
#define rfl_arena_append(a, items, n) rfl_arena_append_bytes((a), (items), (n), sizeof(**(items)))

/** Used by rfl_arena_append(): `items` is the address of a pointer to objects of `size` bytes. */
void *rfl_arena_append_bytes(struct rfl_arena *a, void *items, size_t *n, size_t size);

/** Let `a` own the objects of another arena as well. */
void rfl_arena_join(struct rfl_arena *a, struct rfl_arena *take_other);

/** Copy a string into the arena. NULL remains NULL. */
char *rfl_arena_strdup(struct rfl_arena *a, const char *s) RFL_WARN_UNUSED;

/** Format a string in the arena. */
char *rfl_arena_printf(struct rfl_arena *a, const char *fmt, ...) RFL_PRINTF(2, 3) RFL_WARN_UNUSED;

RFL_API_END
#endif
