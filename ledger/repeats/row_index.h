/* row_index.h - a hash table that gives items which are alike the same number. */
#ifndef RFL_LEDGER_ROW_INDEX_H
#define RFL_LEDGER_ROW_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct rfl_row_index {
	uint64_t (*hash)(const void *row); /**< equal for rows that are alike */
	bool (*alike)(const void *a, const void *b);
	size_t n;          /**< numbers are 0 to n - 1 */
	const void **rows; /**< the first row of each number */
	uint64_t *hashes;
	size_t *slots; /* numbers + 1; 0: free */
	size_t nslots, cap;
};

/** To start, zero everything except hash and alike. */
void rfl_row_index_fini(struct rfl_row_index *ix);

/** The number of rows like this one; SIZE_MAX: none yet. */
size_t rfl_row_index_find(const struct rfl_row_index *ix, const void *row);

/** The number of rows like this one, or the next free number. RFL_ENOMEM. */
enum rfl_rc rfl_row_index_put(struct rfl_row_index *ix, const void *row, size_t *ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** A set of numbered texts. A zeroed struct is empty. */
struct rfl_texts {
	struct rfl_row_index index;
	struct rfl_arena *arena; /**< owns them */
};
void rfl_texts_fini(struct rfl_texts *t);

/** Copy a text without a number; NULL out of memory. */
char *rfl_texts_copy(struct rfl_texts *t, const char *text) RFL_WARN_UNUSED;

/** Add a text unless it exists. @param ret  its number. @return the copy; NULL out of memory */
char *rfl_texts_put(struct rfl_texts *t, const char *text, size_t *ret) RFL_WARN_UNUSED;

bool rfl_texts_has(const struct rfl_texts *t, const char *text);

#endif
