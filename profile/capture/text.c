/*
 * text.c - texts that are kept once, and the tables by hash that find them and others.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profile/capture/impl.h"

bool rfl_capture__room(void *array, size_t n, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap * 2 : 16;
	void *old, *grown;

	if (n < *cap)
		return true;
	memcpy(&old, array, sizeof(old));
	grown = realloc(old, want * size);
	if (!grown)
		return false;
	memcpy(array, &grown, sizeof(grown));
	*cap = want;
	return true;
}

/* ---- places by hash ---- */

/* FNV's low bits are its good ones. */
size_t rfl_places_first(const struct rfl_places *p, uint64_t hash)
{
	return (size_t)(hash ^ hash >> 32) & (p->size - 1);
}

void rfl_places_put(struct rfl_places *p, uint64_t hash, uint32_t value)
{
	size_t at = rfl_places_first(p, hash);

	while (p->at[at] != 0)
		at = (at + 1) & (p->size - 1);
	p->at[at] = value;
	p->used++;
}

/* Twice as many places; the caller puts everything into them again. */
bool rfl_places_grow(struct rfl_places *p)
{
	size_t size = p->size ? p->size * 2 : 64;
	uint32_t *at = rfl_alloc_array(size, sizeof(*at));

	if (!at)
		return false;
	free(p->at);
	*p = (struct rfl_places){ .at = at, .size = size };
	return true;
}

bool rfl_places_are_full(const struct rfl_places *p)
{
	return (p->used + 1) * 2 > p->size;
}

/* ---- texts ---- */

static bool grow_texts(struct rfl_capture_builder *b)
{
	if (!rfl_places_are_full(&b->text_places))
		return true;
	if (!rfl_places_grow(&b->text_places))
		return false;
	for (size_t i = 0; i < b->ntexts; i++)
		rfl_places_put(&b->text_places, rfl_hash64(0, b->texts[i], strlen(b->texts[i])),
			       (uint32_t)i + 1);
	return true;
}

const char *rfl_capture__intern(struct rfl_capture_builder *b, const char *text, size_t len)
{
	uint64_t hash = rfl_hash64(0, text, len);
	struct rfl_places *p = &b->text_places;
	char *copy;

	if (!grow_texts(b))
		return NULL;
	for (size_t at = rfl_places_first(p, hash); p->at[at] != 0; at = (at + 1) & (p->size - 1)) {
		const char *have = b->texts[p->at[at] - 1];

		if (strncmp(have, text, len) == 0 && have[len] == '\0')
			return have;
	}
	if (!rfl_capture__room(&b->texts, b->ntexts, &b->texts_cap, sizeof(*b->texts)))
		return NULL;
	copy = rfl_arena_array(b->arena, len + 1, 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	b->texts[b->ntexts++] = copy;
	rfl_places_put(p, hash, (uint32_t)b->ntexts);
	return copy;
}

/* A copy of a text that may be NULL; false out of memory. */
bool rfl_capture__keep(struct rfl_capture_builder *b, const char **to, const char *text)
{
	*to = NULL;
	if (!text)
		return true;
	*to = rfl_capture__intern(b, text, strlen(text));
	return *to != NULL;
}
