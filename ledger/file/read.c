/*
 * read.c - the rows of a table as rows of the ledger: of our own metrics.csv by the names of
 * its header, or of any other by a list that says where each column is found.
 */
#include "ledger/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "ledger/foreign.h"
#include "ledger/file/columns.h"
#include "ledger/file/steps.h"
#include "ledger/file/texts.h"

#define columns rfl_ledger__columns

/* What every row has of its own. */
static bool is_unique(size_t i)
{
	return i == RFL_LEDGER_AT_run_id || i == RFL_LEDGER_AT_timestamp_utc ||
	       i == RFL_LEDGER_AT_label || i == RFL_LEDGER_AT_error_text ||
	       i == RFL_LEDGER_AT_loss_hash;
}

/* --- fields ---------------------------------------------------------------------------------- */

/* What is being read: a table, and where in it the columns are that it has. */
struct reader {
	struct rfl_csv *csv;
	const struct rfl_ledger_source *from;
	size_t nused, used[RFL_LEDGER_NCOLUMNS]; /* columns that a row of the table gives */
	struct rfl_ledger_row blank;             /* what all rows have */
	struct rfl_ledger *to;
};

static enum rfl_rc fail_no_memory(const struct reader *r, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", rfl_csv_path(r->csv));
}

static enum rfl_rc set_text(struct reader *r, size_t i, const char *text,
			    struct rfl_ledger_row *row, struct rfl_err *err)
{
	char **field = rfl_ledger__text_at(row, &columns[i]);

	if (!*text)
		return RFL_OK; /* not known, as it is */
	if (r->to->nrows && !is_unique(i)) {
		char *before = *rfl_ledger__text_at(row - 1, &columns[i]);

		if (before && strcmp(before, text) == 0) {
			*field = before;
			return RFL_OK;
		}
	}
	*field = rfl_ledger__text(r->to->texts, text, !is_unique(i));
	return *field ? RFL_OK : fail_no_memory(r, err);
}

/* What other programs write for 1 and 0. */
static bool is_truth(const char *text, int64_t *ret)
{
	static const struct {
		const char *word;
		int64_t value;
	} words[] = {
		{ "true", 1 }, { "yes", 1 }, { "on", 1 }, { "false", 0 }, { "no", 0 }, { "off", 0 },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (strcasecmp(words[i].word, text) == 0) {
			*ret = words[i].value;
			return true;
		}
	return false;
}

/* Also "True", and "32.0", which a table with an empty cell makes of 32. */
static enum rfl_rc read_foreign_int(const struct reader *r, const struct rfl_ledger_source *s,
				    int64_t *ret, struct rfl_err *err)
{
	const char *text = rfl_csv_text(r->csv, s->column);
	double value = NAN;
	enum rfl_rc rc;

	if (is_truth(text, ret))
		return RFL_OK;
	rc = rfl_csv_double(r->csv, s->column, &value, err);
	if (rc != RFL_OK || isnan(value))
		return rc;
	value = s->scale != 0 ? value * s->scale : value;
	if (value != floor(value) || fabs(value) > 9007199254740992.0)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: column '%s': '%s' is not an integer",
				rfl_csv_path(r->csv), rfl_csv_line(r->csv),
				rfl_csv_column(r->csv, (size_t)s->column), text);
	*ret = (int64_t)value;
	return RFL_OK;
}

static enum rfl_rc read_field(struct reader *r, size_t i, struct rfl_ledger_row *row,
			      struct rfl_err *err)
{
	const struct rfl_ledger_source *s = &r->from[i];
	const struct rfl_ledger__column *c = &columns[i];
	enum rfl_rc rc = RFL_OK;

	switch (c->kind) {
	case RFL_LEDGER_TEXT:
		return set_text(r, i, rfl_csv_text(r->csv, s->column), row, err);
	case RFL_LEDGER_INT:
		if (s->foreign)
			return read_foreign_int(r, s, rfl_ledger__int_at(row, c), err);
		return rfl_csv_int(r->csv, s->column, -1, rfl_ledger__int_at(row, c), err);
	case RFL_LEDGER_REAL:
		rc = rfl_csv_double(r->csv, s->column, rfl_ledger__real_at(row, c), err);
		if (rc == RFL_OK && s->scale != 0)
			*rfl_ledger__real_at(row, c) *= s->scale;
		break;
	}
	return rc;
}

/* What a list says that all rows have. */
static enum rfl_rc set_constant(struct reader *r, size_t i, struct rfl_err *err)
{
	const struct rfl_ledger__column *c = &columns[i];
	const char *text = r->from[i].text;

	if (!*text)
		return RFL_OK; /* not known, as it is */
	switch (c->kind) {
	case RFL_LEDGER_TEXT:
		*rfl_ledger__text_at(&r->blank, c) = rfl_ledger__text(r->to->texts, text, true);
		return *rfl_ledger__text_at(&r->blank, c) ? RFL_OK : fail_no_memory(r, err);
	case RFL_LEDGER_INT:
		return rfl_num_parse_int(text, c->name, rfl_ledger__int_at(&r->blank, c), err);
	case RFL_LEDGER_REAL:
		return rfl_num_parse_double(text, c->name, rfl_ledger__real_at(&r->blank, c), err);
	}
	return RFL_OK;
}

static enum rfl_rc begin(struct reader *r, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	rfl_ledger_row_init(&r->blank);
	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS && rc == RFL_OK; i++) {
		if (r->from[i].column >= 0)
			r->used[r->nused++] = i;
		else if (r->from[i].text)
			rc = set_constant(r, i, err);
	}
	return rc;
}

/* --- rows ------------------------------------------------------------------------------------ */

/* Not written by this program, or not as it is. */
static bool is_foreign(const struct reader *r)
{
	return r->from[RFL_LEDGER_AT_version].foreign;
}

/* A write that a power cut tore: this program always writes its version, the last column. */
static bool is_torn(const struct reader *r)
{
	int version = r->from[RFL_LEDGER_AT_version].column;
	int schema = r->from[RFL_LEDGER_AT_schema_version].column;

	return version >= 0 && schema >= 0 && !is_foreign(r) &&
	       rfl_csv_text(r->csv, version)[0] == '\0';
}

static struct rfl_ledger_row *new_row(struct rfl_ledger *l)
{
	struct rfl_ledger_row *rows;
	size_t cap = l->cap ? l->cap * 2 : 64;

	if (l->nrows < l->cap)
		return &l->rows[l->nrows];
	rows = cap > SIZE_MAX / sizeof(*rows) ? NULL : realloc(l->rows, cap * sizeof(*rows));
	if (!rows)
		return NULL;
	l->rows = rows;
	l->cap = cap;
	return &l->rows[l->nrows];
}

static enum rfl_rc read_row(struct reader *r, struct rfl_err *err)
{
	struct rfl_ledger_row *row = new_row(r->to);
	enum rfl_rc rc = RFL_OK;

	if (!row)
		return fail_no_memory(r, err);
	*row = r->blank;
	row->line = rfl_csv_line(r->csv);
	for (size_t i = 0; i < r->nused && rc == RFL_OK; i++)
		rc = read_field(r, r->used[i], row, err);
	r->to->nrows += rc == RFL_OK;
	return rc;
}

static void leave_out(struct reader *r)
{
	rfl_log(RFL_LOG_WARN, "%s:%zu: an incomplete row is left out", rfl_csv_path(r->csv),
		rfl_csv_line(r->csv));
	r->to->torn = true;
}

/* @param whole  the last row was left out already, or there is none that is torn */
static enum rfl_rc read_rows(struct reader *r, bool *whole, bool *more, struct rfl_err *err)
{
	const size_t first = r->to->nrows;

	for (;;) {
		struct rfl_err why = RFL_ERR_INIT;
		enum rfl_rc rc;

		*whole = *more = true;
		if (r->to->batch && r->to->nrows - first == r->to->batch && !rfl_csv_torn(r->csv))
			return RFL_OK;
		rc = rfl_csv_next(r->csv, more, &why);
		if (rc == RFL_EFORMAT && rfl_csv_torn(r->csv) && is_foreign(r)) {
			leave_out(r); /* it ends inside quotes */
			*more = false;
			return RFL_OK;
		}
		if (rc != RFL_OK)
			return rfl_fail(err, rc, why.native, "%s", why.msg);
		*whole = r->to->torn || !rfl_csv_torn(r->csv);
		if (!*more)
			return RFL_OK;
		if (is_torn(r)) {
			leave_out(r);
			continue;
		}
		rc = read_row(r, err);
		if (rc != RFL_OK)
			return rc;
	}
}

enum rfl_rc rfl_ledger_read(struct rfl_csv *csv,
			    const struct rfl_ledger_source from[RFL_LEDGER_NCOLUMNS],
			    struct rfl_ledger *to, bool *more, struct rfl_err *err)
{
	struct reader r = { .csv = csv, .from = from, .to = to };
	bool torn_before = to->torn, whole = true;
	enum rfl_rc rc = begin(&r, err);

	if (rc != RFL_OK)
		return rc;
	to->torn = false; /* of this table */
	if (to->hashed)
		rfl_csv_hash_begin(csv);
	rc = read_rows(&r, &whole, more, err);
	if (rc == RFL_OK && !whole && !is_foreign(&r)) {
		/* every field is there, but the line did not end */
		rfl_log(RFL_LOG_WARN, "%s: the last line is not complete and is left out",
			rfl_csv_path(csv));
		to->nrows--;
		to->torn = true;
	}
	to->torn = to->torn || torn_before;
	if (to->hashed)
		rfl_hash64_text(rfl_csv_hash(csv), to->hash);
	return rc;
}

/* --- files ----------------------------------------------------------------------------------- */

struct rfl_ledger *rfl_ledger_new(void)
{
	struct rfl_ledger *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->texts = rfl_ledger__texts_new();
	if (!l->texts) {
		free(l);
		return NULL;
	}
	return l;
}

void rfl_ledger_free(struct rfl_ledger *ledger)
{
	if (!ledger)
		return;
	rfl_ledger__texts_free(ledger->texts);
	free(ledger->rows);
	free(ledger);
}

/* Read a table of ours. @param take_csv  closed in any case */
static enum rfl_rc load_table(struct rfl_csv *take_csv, const bool wanted[RFL_LEDGER_NCOLUMNS],
			      struct rfl_ledger **ret, struct rfl_err *err)
{
	struct rfl_ledger_source from[RFL_LEDGER_NCOLUMNS];
	struct rfl_ledger *l = rfl_ledger_new();
	enum rfl_rc rc;
	bool more;

	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++) {
		from[i] = (struct rfl_ledger_source){ .column = -1 };
		/* these two tell a row that is torn */
		if (!wanted || wanted[i] || i == RFL_LEDGER_AT_version ||
		    i == RFL_LEDGER_AT_schema_version)
			from[i].column = rfl_csv_find(take_csv, columns[i].name);
	}
	if (l)
		l->hashed = !wanted;
	if (l)
		rc = rfl_ledger_read(take_csv, from, l, &more, err);
	else
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", rfl_csv_path(take_csv));
	if (rc == RFL_OK) {
		*ret = l;
		l = NULL;
	}
	rfl_ledger_free(l);
	rfl_csv_close(take_csv);
	return rc;
}

/* A file that could not be read as it is: without the records that a power cut tore. `why` is the
 * failure so far, which stands when there are none. */
static enum rfl_rc load_whole_rows(const char *path, const bool wanted[RFL_LEDGER_NCOLUMNS],
				   const struct rfl_err *why, struct rfl_ledger **ret,
				   struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	struct rfl_buf text;
	uint64_t hash;
	enum rfl_rc rc;

	rfl_buf_init(&text, RFL_LEDGER__BYTES_MAX);
	rc = rfl_ledger__open_whole(path, why, &text, &hash, &csv, err);
	if (rc == RFL_OK)
		rc = load_table(csv, wanted, ret, err);
	if (rc == RFL_OK) {
		(*ret)->torn = true;
		rfl_hash64_text(hash, (*ret)->hash);
	}
	rfl_buf_fini(&text);
	return rc;
}

/* A table without rows whose header a power cut tore is one without rows all the same. */
static enum rfl_rc load_nothing(const char *path, struct rfl_ledger **ret, struct rfl_err *err)
{
	struct rfl_ledger *l = rfl_ledger_new();

	if (!l)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
	rfl_log(RFL_LOG_WARN, "%s: has an incomplete header and no row; the next row mends it",
		path);
	l->torn = true;
	*ret = l;
	return RFL_OK;
}

enum rfl_rc rfl_ledger_load_columns(const char *path, const bool wanted[RFL_LEDGER_NCOLUMNS],
				    struct rfl_ledger **ret, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	enum rfl_rc rc;
	int lock = -1;
	bool cut, ours = false;

	rc = rfl_file_lock_shared(path, &lock, &why); /* an append is over, or has not begun */
	cut = rc == RFL_OK && rfl_file_size(path) > 0 && rfl_ledger__is_cut_header(path);
	if (cut)
		rc = load_nothing(path, ret, &why);
	if (rc == RFL_OK && !cut)
		rc = rfl_csv_open(path, &csv, &why);
	if (rc == RFL_OK && !cut) {
		ours = rfl_foreign_is_ours(csv);
		rc = load_table(csv, wanted, ret, &why);
	}
	if (rc == RFL_EFORMAT && ours)
		rc = load_whole_rows(path, wanted, &why, ret, err);
	else if (rc != RFL_OK)
		rc = rfl_fail(err, rc, why.native, "%s", why.msg);
	if (lock >= 0)
		(void)!rfl_file_unlock(lock, path, NULL); /* nothing was written */
	return rc;
}

enum rfl_rc rfl_ledger_load(const char *path, struct rfl_ledger **ret, struct rfl_err *err)
{
	return rfl_ledger_load_columns(path, NULL, ret, err);
}
