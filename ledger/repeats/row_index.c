/* row_index.c - an open-addressing hash table from rows to numbers, and a set of texts. */
#include "ledger/repeats/row_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

#define LISTED_MOST 20 /* values in a message */

void rfl_row_index_fini(struct rfl_row_index *ix)
{
	free(ix->rows);
	free(ix->hashes);
	free(ix->slots);
	*ix = (struct rfl_row_index){ .hash = ix->hash, .alike = ix->alike };
}

/* Return the slot of a row, or a free slot for it. */
static size_t slot_of(const struct rfl_row_index *ix, const void *row, uint64_t hash)
{
	size_t i = (size_t)hash & (ix->nslots - 1);

	while (ix->slots[i]) {
		size_t number = ix->slots[i] - 1;

		if (ix->hashes[number] == hash && ix->alike(ix->rows[number], row))
			return i;
		i = (i + 1) & (ix->nslots - 1);
	}
	return i;
}

size_t rfl_row_index_find(const struct rfl_row_index *ix, const void *row)
{
	size_t slot;

	if (ix->n == 0)
		return SIZE_MAX;
	slot = slot_of(ix, row, ix->hash(row));
	return ix->slots[slot] ? ix->slots[slot] - 1 : SIZE_MAX;
}

size_t rfl_row_index_put(struct rfl_row_index *ix, const void *row)
{
	const uint64_t hash = ix->hash(row);
	size_t cap = ix->cap, slot;

	if (ix->n == ix->cap) {
		rfl_reserve(&ix->rows, &cap, ix->n + 1);
		rfl_reserve(&ix->hashes, &ix->cap, ix->n + 1);
		for (ix->nslots = 64; ix->nslots < 2 * ix->cap;)
			ix->nslots *= 2;
		free(ix->slots);
		ix->slots = rfl_alloc_array(ix->nslots, sizeof(*ix->slots));
		for (size_t i = 0; i < ix->n; i++)
			ix->slots[slot_of(ix, ix->rows[i], ix->hashes[i])] = i + 1;
	}
	slot = slot_of(ix, row, hash);
	if (!ix->slots[slot]) {
		ix->rows[ix->n] = row;
		ix->hashes[ix->n] = hash;
		ix->slots[slot] = ++ix->n;
	}
	return ix->slots[slot] - 1;
}

static uint64_t text_hash(const void *text)
{
	return rfl_hash64(0, text, strlen(text));
}

static bool text_alike(const void *a, const void *b)
{
	return strcmp(a, b) == 0;
}

char *rfl_texts_copy(struct rfl_texts *t, const char *text)
{
	if (!t->arena)
		t->arena = rfl_arena_new();
	return rfl_arena_strdup(t->arena, text);
}

size_t rfl_texts_put(struct rfl_texts *t, const char *text)
{
	const size_t number = rfl_row_index_find(&t->index, text);

	t->index.hash = text_hash;
	t->index.alike = text_alike;
	return number != SIZE_MAX ? number : rfl_row_index_put(&t->index, rfl_texts_copy(t, text));
}

char *rfl_texts_keep(struct rfl_texts *t, const char *text)
{
	const size_t number = text ? rfl_texts_put(t, text) : 0; /* may move the rows */

	return text ? (char *)(uintptr_t)t->index.rows[number] : NULL;
}

bool rfl_texts_has(const struct rfl_texts *t, const char *text)
{
	return rfl_row_index_find(&t->index, text) != SIZE_MAX;
}

enum rfl_rc rfl_texts_unknown(const struct rfl_texts *known, const char *what, const char *asked,
			      struct rfl_err *err)
{
	const size_t n = known->index.n < LISTED_MOST ? known->index.n : LISTED_MOST;
	const char *names[LISTED_MOST + 1] = { NULL }, *near;
	RFL_AUTO(buf) list = { .max = 1 << 16 };

	for (size_t i = 0; i < n; i++) {
		names[i] = known->index.rows[i];
		rfl_buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
	}
	near = rfl_text_nearest(asked, names);
	(void)rfl_fail(err, RFL_ENOTFOUND, 0, "no run has %s '%s' (known: %s%s)%s%s%s", what, asked,
		       n ? rfl_buf_str(&list) : "none", n < known->index.n ? ", ..." : "",
		       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return RFL_ENOTFOUND;
}

void rfl_texts_fini(struct rfl_texts *t)
{
	rfl_row_index_fini(&t->index);
	rfl_arena_free(t->arena);
	*t = (struct rfl_texts){ .arena = NULL };
}
