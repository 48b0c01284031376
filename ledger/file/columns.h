/*
 * columns.h - inside ledger/: the columns of the ledger as a table, and the fields of a row by
 * it.
 */
#ifndef RFL_LEDGER_LEDGER_COLUMNS_H
#define RFL_LEDGER_LEDGER_COLUMNS_H

#include "ledger/ledger.h"

struct rfl_ledger__column {
	const char *name;
	const char *meaning;
	enum rfl_ledger_kind kind;
	size_t offset; /* in struct rfl_ledger_row */
};

extern const struct rfl_ledger__column rfl_ledger__columns[RFL_LEDGER_NCOLUMNS];

static inline char **rfl_ledger__text_at(struct rfl_ledger_row *row,
					 const struct rfl_ledger__column *c)
{
	return (char **)(void *)((char *)row + c->offset);
}

static inline int64_t *rfl_ledger__int_at(struct rfl_ledger_row *row,
					  const struct rfl_ledger__column *c)
{
	return (int64_t *)(void *)((char *)row + c->offset);
}

static inline double *rfl_ledger__real_at(struct rfl_ledger_row *row,
					  const struct rfl_ledger__column *c)
{
	return (double *)(void *)((char *)row + c->offset);
}

#endif
