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
#include "base/log.h"
#include "base/num.h"

enum column_kind { KIND_TEXT, KIND_INT, KIND_REAL };

struct column {
	const char *name;
	const char *meaning;
	enum column_kind kind;
	size_t offset; /* in struct rfl_ledger_row */
};

#define COLUMN(k, n, m)     \
	{ .name = #n,       \
	  .meaning = m,     \
	  .kind = KIND_##k, \
	  .offset = offsetof(struct rfl_ledger_row, n) },
static const struct column columns[] = { RFL_LEDGER_COLUMNS(COLUMN) };
#undef COLUMN

#define NCOLUMNS RFL_ARRAY_LEN(columns)

static char **text_at(struct rfl_ledger_row *row, const struct column *c)
{
	return (char **)(void *)((char *)row + c->offset);
}

static int64_t *int_at(struct rfl_ledger_row *row, const struct column *c)
{
	return (int64_t *)(void *)((char *)row + c->offset);
}

static double *real_at(struct rfl_ledger_row *row, const struct column *c)
{
	return (double *)(void *)((char *)row + c->offset);
}

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

void rfl_ledger_row_init(struct rfl_ledger_row *row)
{
	memset(row, 0, sizeof(*row));
	for (size_t i = 0; i < NCOLUMNS; i++) {
		switch (columns[i].kind) {
		case KIND_TEXT:
			*text_at(row, &columns[i]) = NULL;
			break;
		case KIND_INT:
			*int_at(row, &columns[i]) = -1;
			break;
		case KIND_REAL:
			*real_at(row, &columns[i]) = (double)NAN;
			break;
		}
	}
}

void rfl_ledger_row_fini(struct rfl_ledger_row *row)
{
	for (size_t i = 0; i < NCOLUMNS; i++) {
		if (columns[i].kind != KIND_TEXT)
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

/* A field as the file writes it: the row's own text, or digits in `number`. */
static const char *field_text(const struct rfl_ledger_row *row, const struct column *c,
			      char number[RFL_NUM_MAX])
{
	struct rfl_ledger_row *r = (struct rfl_ledger_row *)(uintptr_t)row; /* only read below */

	number[0] = '\0';
	switch (c->kind) {
	case KIND_TEXT:
		return *text_at(r, c) ? *text_at(r, c) : "";
	case KIND_INT:
		if (*int_at(r, c) != -1)
			snprintf(number, RFL_NUM_MAX, "%" PRId64, *int_at(r, c));
		return number;
	case KIND_REAL:
		return rfl_num_exact(*real_at(r, c), number);
	}
	return number;
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
		fields[n] = field_text(&r, &columns[i], numbers[n]);
		if (r.schema_version >= 2 || !is_counter_column(i))
			n++;
		else if (fields[n][0])
			return too_old(path, err);
	}
	return rfl_csv_append(path, header, fields, n, err);
}

static enum rfl_rc read_field(struct rfl_csv *csv, int at, const struct column *c,
			      struct rfl_ledger_row *row, struct rfl_err *err)
{
	switch (c->kind) {
	case KIND_TEXT:
		return rfl_ledger_set(text_at(row, c), rfl_csv_text(csv, at), err);
	case KIND_INT:
		return rfl_csv_int(csv, at, -1, int_at(row, c), err);
	case KIND_REAL:
		return rfl_csv_double(csv, at, real_at(row, c), err);
	}
	return RFL_OK;
}

/* A write that a power cut tore: this program always writes its version, the last column. */
static bool is_torn(const struct rfl_csv *csv, const int at[])
{
	int version = at[NCOLUMNS - 1], schema = at[0];

	return version >= 0 && schema >= 0 && rfl_csv_text(csv, version)[0] == '\0';
}

static enum rfl_rc read_row(struct rfl_csv *csv, const int at[], struct rfl_ledger_row *row,
			    struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	rfl_ledger_row_init(row);
	row->line = rfl_csv_line(csv);
	for (size_t i = 0; i < NCOLUMNS && rc == RFL_OK; i++) {
		if (at[i] >= 0)
			rc = read_field(csv, at[i], &columns[i], row, err);
	}
	if (rc)
		rfl_ledger_row_fini(row);
	return rc;
}

static struct rfl_ledger_row *grow(struct rfl_ledger *l, size_t *cap)
{
	struct rfl_ledger_row *rows;
	size_t n = *cap ? *cap * 2 : 64;

	if (l->nrows < *cap)
		return &l->rows[l->nrows];
	rows = rfl_alloc_array(n, sizeof(*rows));
	if (!rows)
		return NULL;
	if (l->nrows)
		memcpy(rows, l->rows, l->nrows * sizeof(*rows));
	free(l->rows);
	l->rows = rows;
	*cap = n;
	return &l->rows[l->nrows];
}

static void drop_last(struct rfl_ledger *l)
{
	if (l->nrows)
		rfl_ledger_row_fini(&l->rows[--l->nrows]);
}

static void leave_out(const struct rfl_csv *csv, struct rfl_ledger *l)
{
	rfl_log(RFL_LOG_WARN, "%s:%zu: an incomplete row is left out", rfl_csv_path(csv),
		rfl_csv_line(csv));
	l->torn = true;
}

static enum rfl_rc read_rows(struct rfl_csv *csv, const int at[], struct rfl_ledger *l,
			     struct rfl_err *err)
{
	size_t cap = 0;
	bool more = true;

	for (;;) {
		struct rfl_err why = RFL_ERR_INIT;
		struct rfl_ledger_row *row;
		enum rfl_rc rc = rfl_csv_next(csv, &more, &why);

		if (rc == RFL_EFORMAT && rfl_csv_torn(csv)) { /* the file ends inside quotes */
			leave_out(csv, l);
			return RFL_OK;
		}
		if (rc)
			return rfl_fail(err, rc, why.native, "%s", why.msg);
		if (!more)
			return RFL_OK;
		if (is_torn(csv, at)) {
			leave_out(csv, l);
			continue;
		}
		row = grow(l, &cap);
		if (!row)
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", rfl_csv_path(csv));
		rc = read_row(csv, at, row, err);
		if (rc)
			return rc;
		l->nrows++;
	}
}

enum rfl_rc rfl_ledger_load(const char *path, struct rfl_ledger **ret, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	struct rfl_ledger *l = NULL;
	int at[NCOLUMNS];
	enum rfl_rc rc;

	rc = rfl_csv_open(path, &csv, err);
	if (rc)
		goto done;
	for (size_t i = 0; i < NCOLUMNS; i++)
		at[i] = rfl_csv_find(csv, columns[i].name);
	l = calloc(1, sizeof(*l));
	if (!l) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
		goto done;
	}
	rc = read_rows(csv, at, l, err);
	if (rc)
		goto done;
	if (rfl_csv_torn(csv) && !l->torn) { /* every field is there, but the line did not end */
		rfl_log(RFL_LOG_WARN, "%s: the last line is not complete and is left out", path);
		drop_last(l);
		l->torn = true;
	}
	*ret = l;
	l = NULL;
done:
	rfl_ledger_free(l);
	rfl_csv_close(csv);
	return rc;
}

void rfl_ledger_free(struct rfl_ledger *ledger)
{
	if (!ledger)
		return;
	while (ledger->nrows)
		drop_last(ledger);
	free(ledger->rows);
	free(ledger);
}
