/*
 * table_impl.h - what table.c fills and table_render.c reads. For these two files only.
 */
#ifndef RFL_BASE_TABLE_IMPL_H
#define RFL_BASE_TABLE_IMPL_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/table.h"

enum rfl_table__kind { RFL_TABLE__NULL, RFL_TABLE__TEXT, RFL_TABLE__INT, RFL_TABLE__REAL };

struct rfl_table__cell {
	enum rfl_table__kind kind;
	union {
		const char *text;
		int64_t integer;
		double real;
	};
};

struct rfl_table {
	struct rfl_arena *arena; /* texts and notes */
	struct rfl_column *columns;
	size_t ncolumns;
	struct rfl_table__cell *cells; /* row by row */
	size_t ncells, cells_cap;
	const char **notes;
	size_t nnotes, notes_cap;
	bool failed; /* out of memory on the way */
};

#endif
