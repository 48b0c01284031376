/*
 * ledger.c - the rows of logs/metrics.csv as text and back. What a row means is decided by whoever
 * fills it (run_row.c); the file itself (locking, quoting, syncing) is base/csv.
 */
#include "ledger/ledger.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/num.h"
#include "ledger/ledger_columns.h"

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

/* ---- whose columns ---- */

/* The columns of version 1 are ours without these. */
static bool is_counter_column(size_t i)
{
#define NAME(kind, name, meaning) #name,
	static const char *const names[] = { RFL_LEDGER_COUNTER_COLUMNS(NAME) };
#undef NAME

	for (size_t k = 0; k < RFL_ARRAY_LEN(names); k++)
		if (strcmp(columns[i].name, names[k]) == 0)
			return true;
	return false;
}

/* The j-th column of a version, or NCOLUMNS. */
static size_t column_of(int64_t version, size_t j)
{
	for (size_t i = 0; i < NCOLUMNS; i++) {
		if (version < 2 && is_counter_column(i))
			continue;
		if (j-- == 0)
			return i;
	}
	return NCOLUMNS;
}

/* The first column in which a table differs from a version's list; SIZE_MAX: none does. */
static size_t first_difference(const struct rfl_csv *csv, int64_t version)
{
	size_t i = 0;

	for (;; i++) {
		size_t want = column_of(version, i);

		if (i >= rfl_csv_columns(csv) && want == NCOLUMNS)
			return SIZE_MAX;
		if (i >= rfl_csv_columns(csv) || want == NCOLUMNS ||
		    strcmp(rfl_csv_column(csv, i), columns[want].name) != 0)
			return i;
	}
}

static enum rfl_rc is_of_another(const struct rfl_csv *csv, size_t i, struct rfl_err *err)
{
	const size_t want = column_of(RFL_LEDGER_SCHEMA, i);
	const char *have = i < rfl_csv_columns(csv) ? rfl_csv_column(csv, i) : "(none)";

	if (want == NCOLUMNS)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: column '%s' is not known: written by another version; give "
				"another --log-dir",
				rfl_csv_path(csv), have);
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: column %zu is '%s' where '%s' belongs: written by another version; "
			"give another --log-dir",
			rfl_csv_path(csv), i + 1, have, columns[want].name);
}

/* The version whose columns a file has; ours when there is none yet. */
static enum rfl_rc version_of(const char *path, int64_t *ret, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	enum rfl_rc rc;
	size_t differs;

	*ret = RFL_LEDGER_SCHEMA;
	if (rfl_file_size(path) == 0) /* also of somebody who is about to write the first row */
		return RFL_OK;
	rc = rfl_csv_open(path, &csv, err);
	if (rc)
		return rc;
	differs = first_difference(csv, RFL_LEDGER_SCHEMA);
	if (differs != SIZE_MAX && first_difference(csv, 1) == SIZE_MAX)
		*ret = 1;
	else if (differs != SIZE_MAX)
		rc = is_of_another(csv, differs, err);
	rfl_csv_close(csv);
	return rc;
}

static enum rfl_rc too_old(const char *path, struct rfl_err *err)
{
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: has the columns of version 1, without those of counters: runs without "
			"--counters go on in it, for one with them give another --log-dir",
			path);
}

enum rfl_rc rfl_ledger_check(const char *path, bool counts, struct rfl_err *err)
{
	int64_t version;
	enum rfl_rc rc = version_of(path, &version, err);

	return rc == RFL_OK && counts && version < 2 ? too_old(path, err) : rc;
}

enum rfl_rc rfl_ledger_append(const char *path, const struct rfl_ledger_row *row,
			      struct rfl_err *err)
{
	char numbers[NCOLUMNS][RFL_NUM_MAX];
	const char *header[NCOLUMNS];
	const char *fields[NCOLUMNS];
	struct rfl_ledger_row r = *row; /* its texts stay the caller's */
	size_t n = 0;
	enum rfl_rc rc = rfl_file_mkdirs_for(path, err);

	if (rc == RFL_OK)
		rc = version_of(path, &r.schema_version, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < NCOLUMNS; i++) {
		header[n] = columns[i].name;
		fields[n] = rfl_ledger_field(&r, i, numbers[n]);
		if (r.schema_version >= 2 || !is_counter_column(i))
			n++;
		else if (fields[n][0])
			return too_old(path, err);
	}
	return rfl_csv_append(path, header, fields, n, err);
}
