/* row_index.h - a hash table that assigns the same number to items that are alike. */
#ifndef RFL_LEDGER_ROW_INDEX_H
#define RFL_LEDGER_ROW_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct rfl_row_index {
	uint64_t (*hash)(const void *row); /**< equal for items that are alike */
	bool (*alike)(const void *a, const void *b);
	size_t n;          /**< the next number; 0 to n - 1 are in use */
	const void **rows; /**< first row with each number */
	uint64_t *hashes;
	size_t *slots; /* number + 1; 0: free */
	size_t nslots, cap;
};

/** Initialise by zeroing everything except hash and alike. */
void rfl_row_index_fini(struct rfl_row_index *ix);

/** Return the number of a row. SIZE_MAX: not found. */
size_t rfl_row_index_find(const struct rfl_row_index *ix, const void *row);

/** Return the number of a row, or assign the next number to it. */
size_t rfl_row_index_put(struct rfl_row_index *ix, const void *row);

/** A set of numbered texts. A zeroed struct is empty. */
struct rfl_texts {
	struct rfl_row_index index;
	struct rfl_arena *arena; /**< owns them */
};
void rfl_texts_fini(struct rfl_texts *t);

/** Copy a text without assigning a number. NULL remains NULL. */
char *rfl_texts_copy(struct rfl_texts *t, const char *text);

/** Return the number of a text, which is copied unless it exists. */
size_t rfl_texts_put(struct rfl_texts *t, const char *text);

/** Add a text unless it exists, and return the copy. NULL remains NULL. */
char *rfl_texts_keep(struct rfl_texts *t, const char *text);

bool rfl_texts_has(const struct rfl_texts *t, const char *text);

/** Fail with RFL_ENOTFOUND: no run has the value `asked` of `what`. The message lists the known
 * values, and suggests the nearest. */
enum rfl_rc rfl_texts_unknown(const struct rfl_texts *known, const char *what, const char *asked,
			      struct rfl_err *err);

#endif
