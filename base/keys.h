/*
 * keys.h - a hash index that numbers keys (strings, or structs without padding) from 1, in the
 * order in which they were added.
 */
#ifndef RFL_BASE_KEYS_H
#define RFL_BASE_KEYS_H

#include <stdint.h>

#include "base/alloc.h"
#include "base/text.h"

/** A zeroed index is empty. All its memory is in the arena of rfl_keys_add(). */
struct rfl_keys {
	struct rfl_span *keys; /**< the key with number i is keys[i - 1] */
	size_t n;
	struct rfl_key_place {
		uint32_t hash, number;
	} * places;
	size_t nplaces; /* a power of two, or 0 */
};

/** The number of a key; 0: absent. */
uint32_t rfl_keys_find(const struct rfl_keys *k, const void *key, size_t len);

/** Find a key or add it, with a NUL-terminated copy. Returns its number.
 * @param added  may be NULL */
uint32_t rfl_keys_add(struct rfl_keys *k, struct rfl_arena *arena, const void *key, size_t len,
		      bool *added);

#endif
