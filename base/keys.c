/* keys.c - a hash index with linear probing, at most half full. */
#include "base/keys.h"

/* Eight bytes at a time: names of kernels are long, and hashed for every launch. */
static uint32_t hash_of(const void *key, size_t len)
{
	const char *at = key;
	uint64_t hash = len, word = 0;

	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15;
		hash ^= hash >> 32;
	}
	word = 0;
	if (len > 0)
		memcpy(&word, at, len);
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return (uint32_t)(hash ^ hash >> 32);
}

/* The place of a key, or the empty place for it. */
static struct rfl_key_place *find(const struct rfl_keys *k, uint32_t hash, const void *key,
				  size_t len)
{
	const struct rfl_span wanted = { .at = key, .len = len };

	for (size_t i = hash;; i++) {
		struct rfl_key_place *place = &k->places[i & (k->nplaces - 1)];

		if (place->number == 0 ||
		    (place->hash == hash && rfl_span_same(k->keys[place->number - 1], wanted)))
			return place;
	}
}

uint32_t rfl_keys_find(const struct rfl_keys *k, const void *key, size_t len)
{
	return k->n > 0 ? find(k, hash_of(key, len), key, len)->number : 0;
}

/* Double the number of places. */
static void make_room(struct rfl_keys *k, struct rfl_arena *arena)
{
	const size_t n = k->nplaces ? 2 * k->nplaces : 64;
	struct rfl_key_place *places = rfl_arena_array(arena, n, sizeof(*places));

	for (size_t i = 0; i < k->nplaces; i++) {
		size_t at = k->places[i].hash;

		if (k->places[i].number == 0)
			continue;
		while (places[at & (n - 1)].number != 0)
			at++;
		places[at & (n - 1)] = k->places[i];
	}
	k->places = places;
	k->nplaces = n;
}

uint32_t rfl_keys_add(struct rfl_keys *k, struct rfl_arena *arena, const void *key, size_t len,
		      bool *added)
{
	const uint32_t hash = hash_of(key, len);

	if ((k->n + 1) * 2 > k->nplaces)
		make_room(k, arena);
	struct rfl_key_place *place = find(k, hash, key, len);
	if (added)
		*added = place->number == 0;
	if (place->number != 0)
		return place->number;
	char *copy = rfl_arena_array(arena, len + 1, 1);
	if (len > 0)
		memcpy(copy, key, len);
	*(struct rfl_span *)rfl_arena_append(arena, &k->keys, &k->n) =
		(struct rfl_span){ .at = copy, .len = len };
	*place = (struct rfl_key_place){ .hash = hash, .number = (uint32_t)k->n };
	return place->number;
}
