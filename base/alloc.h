/* alloc.h - heap memory with overflow checks, and arenas. */
#ifndef RFL_BASE_ALLOC_H
#define RFL_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h> /* SIZE_MAX */

#include "base/err.h"

/** Allocate n * size zeroed bytes; release with free(). NULL on overflow or out of memory. */
void *rfl_alloc_array(size_t n, size_t size) RFL_WARN_UNUSED;

/** Fail with RFL_ENOMEM and "<what>: out of memory". @return RFL_ENOMEM */
enum rfl_rc rfl_no_memory(struct rfl_err *err, const char *what);

/**
 * Make room for `need` elements in a growing array owned by the caller:
 *
 *     rc = rfl_grow(&list->items, &list->cap, list->n + 1, MAX_ITEMS, err);
 *
 * The capacity at least doubles; new elements are not zeroed. To grow several arrays of one length,
 * pass each a copy of the capacity and store it after all have grown.
 *
 * @param items  address of the caller's pointer, NULL at first; free() releases the array
 * @param cap    elements that fit; 0 at first
 * @param max    maximum of `need`; SIZE_MAX for no limit
 * @return RFL_OK, RFL_EOVERFLOW above max, RFL_ENOMEM; array and capacity are unchanged on failure
 */
#define rfl_grow(items, cap, need, max, err) \
	rfl_grow_bytes((items), (cap), (need), sizeof(**(items)), (max), (err))

/** Used by rfl_grow(): `items` is the address of a pointer to objects of `size` bytes. */
enum rfl_rc rfl_grow_bytes(void *items, size_t *cap, size_t need, size_t size, size_t max,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** An arena: objects that are all freed together. Not thread-safe. Memory is zeroed and aligned for
 * any type. With RFL_ARENA_DEBUG (the asan preset) each object has a separate malloc block, so that
 * the address sanitizer detects overruns. */
struct rfl_arena;

/** Create an arena that does not grow beyond max_bytes (0: 1 GiB). NULL if out of memory. */
struct rfl_arena *rfl_arena_new(size_t max_bytes) RFL_WARN_UNUSED;

/** Release every object. Accepts NULL. */
void rfl_arena_free(struct rfl_arena *a);

/** Allocate n * size zeroed bytes in the arena; NULL on overflow, above its limit, on error, and if
 * the arena is NULL because it could not be created. */
void *rfl_arena_array(struct rfl_arena *a, size_t n, size_t size) RFL_WARN_UNUSED;

/** RFL_ENOMEM if the arena is NULL or any allocation in it has failed: a caller that can do without
 * an object until the end checks only once. The message begins with `what`. */
enum rfl_rc rfl_arena_check(const struct rfl_arena *a, const char *what,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Let `a` own the objects of another arena as well; they do not count towards its limit. */
void rfl_arena_join(struct rfl_arena *a, struct rfl_arena *take_other);

/** Copy a string into the arena; NULL on failure. */
char *rfl_arena_strdup(struct rfl_arena *a, const char *s) RFL_WARN_UNUSED;

/** Format a string in the arena; NULL on failure. */
char *rfl_arena_printf(struct rfl_arena *a, const char *fmt, ...) RFL_PRINTF(2, 3) RFL_WARN_UNUSED;

#endif
