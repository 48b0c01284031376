/*
 * texts.c - an arena of texts, and a hash table of those of them that are shared.
 */
#include "ledger/file/texts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

#define SLOTS_FIRST ((size_t)256) /* a power of two */

struct rfl_ledger_texts {
	struct rfl_arena *arena;
	char **slots; /* open addressing */
	size_t nslots, used;
};

struct rfl_ledger_texts *rfl_ledger__texts_new(void)
{
	struct rfl_ledger_texts *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->arena = rfl_arena_new(SIZE_MAX / 2);
	t->slots = rfl_alloc_array(SLOTS_FIRST, sizeof(*t->slots));
	t->nslots = SLOTS_FIRST;
	if (!t->arena || !t->slots) {
		rfl_ledger__texts_free(t);
		return NULL;
	}
	return t;
}

void rfl_ledger__texts_free(struct rfl_ledger_texts *t)
{
	if (!t)
		return;
	rfl_arena_free(t->arena);
	free(t->slots);
	free(t);
}

/* Where a text is, or where it would be put. */
static char **slot_of(const struct rfl_ledger_texts *t, const char *text)
{
	size_t i = (size_t)rfl_hash64(0, text, strlen(text)) & (t->nslots - 1);

	while (t->slots[i] && strcmp(t->slots[i], text) != 0)
		i = (i + 1) & (t->nslots - 1);
	return &t->slots[i];
}

static bool grow(struct rfl_ledger_texts *t)
{
	char **old = t->slots;
	size_t n = t->nslots;

	t->slots = rfl_alloc_array(2 * n, sizeof(*t->slots));
	if (!t->slots) {
		t->slots = old;
		return false;
	}
	t->nslots = 2 * n;
	for (size_t i = 0; i < n; i++)
		if (old[i])
			*slot_of(t, old[i]) = old[i];
	free(old);
	return true;
}

char *rfl_ledger__text(struct rfl_ledger_texts *t, const char *text, bool shared)
{
	char **slot;

	if (!shared)
		return rfl_arena_strdup(t->arena, text);
	if (t->used >= t->nslots / 2 && !grow(t))
		return NULL;
	slot = slot_of(t, text);
	if (*slot)
		return *slot;
	*slot = rfl_arena_strdup(t->arena, text);
	t->used += *slot != NULL;
	return *slot;
}
