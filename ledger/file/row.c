/*
 * row.c - the columns of the ledger, and the fields of a row by them. What a row means is
 * decided by whoever fills it (run/row.c); the file is file/append.c's and file/read.c's.
 */
#include "ledger/ledger.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "ledger/file/columns.h"

#define COLUMN(k, n, m)           \
	{ .name = #n,             \
	  .meaning = m,           \
	  .kind = RFL_LEDGER_##k, \
	  .offset = offsetof(struct rfl_ledger_row, n) },
const struct rfl_ledger__column rfl_ledger__columns[RFL_LEDGER_NCOLUMNS] = { RFL_LEDGER_COLUMNS(
	COLUMN) };
#undef COLUMN

#define columns  rfl_ledger__columns
#define NCOLUMNS RFL_LEDGER_NCOLUMNS
#define text_at  rfl_ledger__text_at
#define int_at   rfl_ledger__int_at
#define real_at  rfl_ledger__real_at

size_t rfl_ledger_column_count(void)
{
	return NCOLUMNS;
}

const char *rfl_ledger_column_name(size_t i)
{
	return i < NCOLUMNS ? columns[i].name : NULL;
}

const char *rfl_ledger_column_meaning(size_t i)
{
	return i < NCOLUMNS ? columns[i].meaning : NULL;
}

enum rfl_ledger_kind rfl_ledger_column_kind(size_t i)
{
	return columns[i].kind;
}

size_t rfl_ledger_column_find(const char *name)
{
	size_t i = 0;

	while (i < NCOLUMNS && strcmp(columns[i].name, name) != 0)
		i++;
	return i;
}

void rfl_ledger_row_init(struct rfl_ledger_row *row)
{
	memset(row, 0, sizeof(*row));
	for (size_t i = 0; i < NCOLUMNS; i++) {
		switch (columns[i].kind) {
		case RFL_LEDGER_TEXT:
			*text_at(row, &columns[i]) = NULL;
			break;
		case RFL_LEDGER_INT:
			*int_at(row, &columns[i]) = -1;
			break;
		case RFL_LEDGER_REAL:
			*real_at(row, &columns[i]) = (double)NAN;
			break;
		}
	}
}

void rfl_ledger_row_fini(struct rfl_ledger_row *row)
{
	for (size_t i = 0; i < NCOLUMNS; i++) {
		if (columns[i].kind != RFL_LEDGER_TEXT)
			continue;
		free(*text_at(row, &columns[i]));
		*text_at(row, &columns[i]) = NULL;
	}
}

enum rfl_rc rfl_ledger_set(char **field, const char *text, struct rfl_err *err)
{
	char *copy = NULL;

	if (text && *text) {
		copy = strdup(text);
		if (!copy)
			return rfl_fail(err, RFL_ENOMEM, 0, "ledger: out of memory");
	}
	free(*field);
	*field = copy;
	return RFL_OK;
}

const char *rfl_ledger_field(const struct rfl_ledger_row *row, size_t i, char number[RFL_NUM_MAX])
{
	const struct rfl_ledger__column *c = &columns[i];
	struct rfl_ledger_row *r = (struct rfl_ledger_row *)(uintptr_t)row; /* only read below */

	number[0] = '\0';
	switch (c->kind) {
	case RFL_LEDGER_TEXT:
		return *text_at(r, c) ? *text_at(r, c) : "";
	case RFL_LEDGER_INT:
		if (*int_at(r, c) != -1)
			snprintf(number, RFL_NUM_MAX, "%" PRId64, *int_at(r, c));
		return number;
	case RFL_LEDGER_REAL:
		return rfl_num_exact(*real_at(r, c), number);
	}
	return number;
}

double rfl_ledger_real(const struct rfl_ledger_row *row, size_t i)
{
	const struct rfl_ledger__column *c = &columns[i];
	struct rfl_ledger_row *r = (struct rfl_ledger_row *)(uintptr_t)row; /* only read below */

	switch (c->kind) {
	case RFL_LEDGER_TEXT:
		break;
	case RFL_LEDGER_INT:
		return *int_at(r, c) == -1 ? (double)NAN : (double)*int_at(r, c);
	case RFL_LEDGER_REAL:
		return *real_at(r, c);
	}
	return NAN;
}
