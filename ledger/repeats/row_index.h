/*
 * row_index.h - inside ledger/: rows, or runs, that are alike in some way get one number, found by
 * a hash table.
 */
#ifndef RFL_LEDGER_ROW_INDEX_H
#define RFL_LEDGER_ROW_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "ledger/ledger.h"

struct rfl_row_index {
	uint64_t (*hash)(const void *row); /**< equal for rows that are alike */
	bool (*alike)(const void *a, const void *b);
	size_t n;          /**< numbers given: 0 to n - 1 */
	const void **rows; /**< the first row of each number */
	uint64_t *hashes;
	size_t *slots; /* numbers + 1; 0: free */
	size_t nslots, cap;
};

/** Zeroed but for hash and alike. Release with rfl_row_index_fini(). */
void rfl_row_index_fini(struct rfl_row_index *ix);

/** The number of rows like this one; SIZE_MAX: there is none yet. */
size_t rfl_row_index_find(const struct rfl_row_index *ix, const void *row);

/** The same; the next number when there is none yet. RFL_ENOMEM. */
enum rfl_rc rfl_row_index_put(struct rfl_row_index *ix, const void *row, size_t *ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

#endif
