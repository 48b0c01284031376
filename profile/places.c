/* places.c - a hash index with linear probing, at most half full. */
#include "profile/places.h"

#include <stdlib.h>

#include "base/alloc.h"

/* Fold the high bits of the hash into the low bits. */
static uint32_t fold(uint64_t hash)
{
	return (uint32_t)(hash ^ hash >> 32);
}

static void put(struct rfl_places *p, struct rfl_place place)
{
	size_t at = place.hash & (p->size - 1);

	while (p->at[at].number != 0)
		at = (at + 1) & (p->size - 1);
	p->at[at] = place;
	p->used++;
}

bool rfl_places_put(struct rfl_places *p, uint64_t hash, uint32_t number)
{
	if ((p->used + 1) * 2 > p->size) {
		struct rfl_places more = { .size = p->size ? p->size * 2 : 64 };

		more.at = rfl_alloc_array(more.size, sizeof(*more.at));
		if (!more.at)
			return false;
		for (size_t i = 0; i < p->size; i++)
			if (p->at[i].number != 0)
				put(&more, p->at[i]);
		free(p->at);
		*p = more;
	}
	put(p, (struct rfl_place){ .hash = fold(hash), .number = number });
	return true;
}

uint32_t rfl_places_next(const struct rfl_places *p, uint64_t hash, size_t *at)
{
	while (p->size > 0) {
		const struct rfl_place *place = &p->at[(fold(hash) + (*at)++) & (p->size - 1)];

		if (place->number == 0 || place->hash == fold(hash))
			return place->number;
	}
	return 0;
}

void rfl_places_fini(struct rfl_places *p)
{
	free(p->at);
	*p = (struct rfl_places){ 0 };
}
