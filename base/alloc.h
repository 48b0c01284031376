/*
 * alloc.h - heap memory with overflow checks, and the arena that owns trees.
 */
#ifndef RFL_BASE_ALLOC_H
#define RFL_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h> /* SIZE_MAX */

#include "base/err.h"

/** n * size zeroed bytes for free(); NULL when the product overflows or out of memory. */
void *rfl_alloc_array(size_t n, size_t size) RFL_WARN_UNUSED;

/**
 * Make room for `need` elements in a growing array that the caller owns:
 *
 *     rc = rfl_grow(&list->items, &list->cap, list->n + 1, MAX_ITEMS, err);
 *
 * Capacity at least doubles; new elements are not zeroed. For several arrays of one length pass
 * each a copy of the capacity, and store it when all have grown.
 *
 * @param items  address of the caller's pointer, NULL at first; free() releases the array
 * @param cap    elements that fit; 0 at first
 * @param max    largest `need` allowed; SIZE_MAX for no limit
 * @return RFL_OK, RFL_EOVERFLOW past the maximum, RFL_ENOMEM; after a failure both are unchanged
 */
#define rfl_grow(items, cap, need, max, err) \
	rfl_grow_bytes((items), (cap), (need), sizeof(**(items)), (max), (err))

/** What rfl_grow() calls: `items` is the address of a pointer to objects of `size` bytes. */
enum rfl_rc rfl_grow_bytes(void *items, size_t *cap, size_t need, size_t size, size_t max,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * An arena: many objects, freed at once. Not thread-safe. Memory comes zeroed and aligned for any
 * type. With RFL_ARENA_DEBUG (the asan preset) each object is a malloc block of its own, so that
 * the address sanitizer sees an overrun.
 */
struct rfl_arena;

/** A new arena that refuses to grow beyond max_bytes (0: 1 GiB). NULL when memory is short. */
struct rfl_arena *rfl_arena_new(size_t max_bytes) RFL_WARN_UNUSED;

/** Release every object. Accepts NULL. */
void rfl_arena_free(struct rfl_arena *a);

/** n * size zeroed bytes owned by the arena; NULL on overflow, at the maximum, or out of memory. */
void *rfl_arena_array(struct rfl_arena *a, size_t n, size_t size) RFL_WARN_UNUSED;

/** A copy of a string owned by the arena, or NULL. */
char *rfl_arena_strdup(struct rfl_arena *a, const char *s) RFL_WARN_UNUSED;

/** A formatted string owned by the arena, or NULL. */
char *rfl_arena_printf(struct rfl_arena *a, const char *fmt, ...) RFL_PRINTF(2, 3) RFL_WARN_UNUSED;

#endif
