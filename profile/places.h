/*
 * places.h - a hash index. It maps hashes to the numbers of items (strings, metrics, ranges); the
 * caller stores and compares the items.
 */
#ifndef RFL_PROFILE_PLACES_H
#define RFL_PROFILE_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rfl_place {
	uint32_t hash, number;
};

/** A zeroed index is empty. */
struct rfl_places {
	struct rfl_place *at;
	size_t size; /* a power of two, or 0 */
	size_t used;
};

void rfl_places_fini(struct rfl_places *p);

/** Add a number above 0. Returns false, with nothing changed, if out of memory. */
bool rfl_places_put(struct rfl_places *p, uint64_t hash, uint32_t number);

/** The next number that may have this hash; 0: no more. Start with `*at` = 0. */
uint32_t rfl_places_next(const struct rfl_places *p, uint64_t hash, size_t *at);

#endif
