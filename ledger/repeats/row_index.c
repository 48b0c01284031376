/*
 * row_index.c - an open hash table from rows to numbers.
 */
#include "ledger/repeats/row_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void rfl_row_index_fini(struct rfl_row_index *ix)
{
	free(ix->rows);
	free(ix->hashes);
	free(ix->slots);
	ix->rows = NULL;
	ix->hashes = NULL;
	ix->slots = NULL;
	ix->n = ix->nslots = ix->cap = 0;
}

/* The slot of rows like this one, or the free one where they would be. */
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

static bool grow(struct rfl_row_index *ix)
{
	size_t cap = ix->cap, hcap = ix->cap, nslots, *slots;

	if (rfl_grow(&ix->rows, &cap, ix->n + 1, SIZE_MAX, NULL) != RFL_OK ||
	    rfl_grow(&ix->hashes, &hcap, ix->n + 1, SIZE_MAX, NULL) != RFL_OK)
		return false;
	for (nslots = 64; nslots < 2 * cap;)
		nslots *= 2;
	slots = rfl_alloc_array(nslots, sizeof(*slots));
	if (!slots)
		return false;
	free(ix->slots);
	ix->slots = slots;
	ix->nslots = nslots;
	ix->cap = cap;
	for (size_t i = 0; i < ix->n; i++)
		slots[slot_of(ix, ix->rows[i], ix->hashes[i])] = i + 1;
	return true;
}

enum rfl_rc rfl_row_index_put(struct rfl_row_index *ix, const void *row, size_t *ret,
			      struct rfl_err *err)
{
	uint64_t hash = ix->hash(row);
	size_t slot;

	if (ix->n == ix->cap && !grow(ix))
		return rfl_fail(err, RFL_ENOMEM, 0, "summary of runs: out of memory");
	slot = slot_of(ix, row, hash);
	if (!ix->slots[slot]) {
		ix->rows[ix->n] = row;
		ix->hashes[ix->n] = hash;
		ix->slots[slot] = ++ix->n;
	}
	*ret = ix->slots[slot] - 1;
	return RFL_OK;
}
