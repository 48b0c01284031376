/*
 * read.c - the rows of a table as rows of the ledger: of our own metrics.csv by the names of its
 * header, or of any other by a list that says where each column is found.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "ledger/file/steps.h"
#include "ledger/foreign.h"

/* --- texts ----------------------------------------------------------------------------------- */

/* An arena of texts, and a hash table of those of them that are shared: what is in many rows, such
 * as the name of a device, is kept once. */
#define SLOTS_FIRST ((size_t)256) /* a power of two */

struct rfl_ledger_texts {
	struct rfl_arena *arena;
	char **slots; /* open addressing */
	size_t nslots, used;
};

static void texts_free(struct rfl_ledger_texts *t)
{
	if (!t)
		return;
	rfl_arena_free(t->arena);
	free(t->slots);
	free(t);
}

static struct rfl_ledger_texts *texts_new(void)
{
	struct rfl_ledger_texts *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->arena = rfl_arena_new(SIZE_MAX / 2);
	t->slots = rfl_alloc_array(SLOTS_FIRST, sizeof(*t->slots));
	t->nslots = SLOTS_FIRST;
	if (!t->arena || !t->slots) {
		texts_free(t);
		return NULL;
	}
	return t;
}

/* Where a text is, or where it would be put. */
static char **slot_of(const struct rfl_ledger_texts *t, const char *text)
{
	size_t i = (size_t)rfl_hash64(0, text, strlen(text)) & (t->nslots - 1);

	while (t->slots[i] && strcmp(t->slots[i], text) != 0)
		i = (i + 1) & (t->nslots - 1);
	return &t->slots[i];
}

static bool grow(struct rfl_ledger_texts *t)
{
	char **old = t->slots;
	size_t n = t->nslots;

	t->slots = rfl_alloc_array(2 * n, sizeof(*t->slots));
	if (!t->slots) {
		t->slots = old;
		return false;
	}
	t->nslots = 2 * n;
	for (size_t i = 0; i < n; i++)
		if (old[i])
			*slot_of(t, old[i]) = old[i];
	free(old);
	return true;
}

char *rfl_ledger__text(struct rfl_ledger_texts *t, const char *text, bool shared)
{
	char **slot;

	if (!shared)
		return rfl_arena_strdup(t->arena, text);
	if (t->used >= t->nslots / 2 && !grow(t))
		return NULL;
	slot = slot_of(t, text);
	if (*slot)
		return *slot;
	*slot = rfl_arena_strdup(t->arena, text);
	t->used += *slot != NULL;
	return *slot;
}

/* --- fields ---------------------------------------------------------------------------------- */

/* What every row has of its own. */
static bool is_unique(size_t i)
{
	return i == RFL_LEDGER_AT_run_id || i == RFL_LEDGER_AT_timestamp_utc ||
	       i == RFL_LEDGER_AT_label || i == RFL_LEDGER_AT_error_text ||
	       i == RFL_LEDGER_AT_loss_hash;
}

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
	char **field = rfl_field_text_at(&rfl_ledger_fields[i], row);

	if (!*text)
		return RFL_OK; /* not known, as it is */
	if (r->to->nrows && !is_unique(i)) {
		char *before = *rfl_field_text_at(&rfl_ledger_fields[i], row - 1);

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
	const struct rfl_field *f = &rfl_ledger_fields[i];
	enum rfl_rc rc;

	if (f->kind == RFL_FIELD_TEXT)
		return set_text(r, i, rfl_csv_text(r->csv, s->column), row, err);
	if (f->kind == RFL_FIELD_INT && s->foreign)
		return read_foreign_int(r, s, rfl_field_int_at(f, row), err);
	rc = rfl_field_read_number(f, r->csv, s->column, row, err);
	if (rc == RFL_OK && s->scale != 0 && f->kind == RFL_FIELD_REAL)
		*rfl_field_real_at(f, row) *= s->scale;
	return rc;
}

/* What a list says that all rows have. */
static enum rfl_rc set_constant(struct reader *r, size_t i, struct rfl_err *err)
{
	const struct rfl_field *f = &rfl_ledger_fields[i];
	const char *text = r->from[i].text;

	if (!*text)
		return RFL_OK; /* not known, as it is */
	if (f->kind == RFL_FIELD_INT)
		return rfl_num_parse_int(text, f->name, rfl_field_int_at(f, &r->blank), err);
	if (f->kind == RFL_FIELD_REAL)
		return rfl_num_parse_double(text, f->name, rfl_field_real_at(f, &r->blank), err);
	*rfl_field_text_at(f, &r->blank) = rfl_ledger__text(r->to->texts, text, true);
	return *rfl_field_text_at(f, &r->blank) ? RFL_OK : fail_no_memory(r, err);
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

static enum rfl_rc read_row(struct reader *r, struct rfl_err *err)
{
	struct rfl_ledger *to = r->to;
	struct rfl_ledger_row *row;
	enum rfl_rc rc = RFL_OK;

	if (rfl_grow(&to->rows, &to->cap, to->nrows + 1, SIZE_MAX, NULL) != RFL_OK)
		return fail_no_memory(r, err);
	row = &to->rows[to->nrows];
	*row = r->blank;
	row->line = rfl_csv_line(r->csv);
	for (size_t i = 0; i < r->nused && rc == RFL_OK; i++)
		rc = read_field(r, r->used[i], row, err);
	to->nrows += rc == RFL_OK;
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

enum rfl_rc rfl_ledger__read(struct rfl_csv *csv,
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

struct rfl_ledger *rfl_ledger__new(void)
{
	struct rfl_ledger *l = calloc(1, sizeof(*l));

	if (l)
		l->texts = texts_new();
	if (l && l->texts)
		return l;
	free(l);
	return NULL;
}

void rfl_ledger_free(struct rfl_ledger *ledger)
{
	if (!ledger)
		return;
	texts_free(ledger->texts);
	free(ledger->rows);
	free(ledger);
}

/* A ledger of ours that a power cut tore: all but the torn rows. */
static enum rfl_rc read_whole_rows(const char *path, const struct rfl_err *why,
				   rfl_ledger__reader *read, void *ctx, struct rfl_ledger *to,
				   struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	struct rfl_buf text;
	uint64_t hash;
	enum rfl_rc rc;

	rfl_buf_init(&text, RFL_LEDGER__BYTES_MAX);
	rc = rfl_ledger__open_whole(path, why, &text, &hash, &csv, err);
	if (rc == RFL_OK)
		rc = read(csv, to, ctx, err);
	if (rc == RFL_OK) {
		to->torn = true;
		if (to->hashed)
			rfl_hash64_text(hash, to->hash); /* of the file as it is */
	}
	rfl_csv_close(csv);
	rfl_buf_fini(&text);
	return rc;
}

enum rfl_rc rfl_ledger__read_file(const char *path, rfl_ledger__reader *read, void *ctx,
				  struct rfl_ledger *to, struct rfl_err *err)
{
	const size_t before = to->nrows;
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	enum rfl_rc rc;
	int lock = -1;

	rc = rfl_file_lock_shared(path, &lock, &why); /* an append is over, or has not begun */
	if (rc == RFL_OK)
		rc = rfl_csv_open(path, &csv, &why);
	if (rc == RFL_OK)
		rc = read(csv, to, ctx, &why);
	if (rc == RFL_EFORMAT && csv && rfl_foreign_is_ours(csv)) {
		to->nrows = before; /* the texts of the others stay in its arena */
		if (to->again)
			to->again(to);
		rc = read_whole_rows(path, &why, read, ctx, to, err);
	} else if (rc != RFL_OK) {
		rc = rfl_fail(err, rc, why.native, "%s", why.msg);
	}
	rfl_csv_close(csv);
	if (lock >= 0)
		(void)!rfl_file_unlock(lock, path, NULL); /* nothing was written */
	return rc;
}

static enum rfl_rc read_wanted(struct rfl_csv *csv, struct rfl_ledger *to, void *ctx,
			       struct rfl_err *err)
{
	struct rfl_ledger_source from[RFL_LEDGER_NCOLUMNS];
	const bool *wanted = ctx;
	bool more;

	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++) {
		/* these two mark a row that is torn */
		const bool read = !wanted || wanted[i] || i == RFL_LEDGER_AT_version ||
				  i == RFL_LEDGER_AT_schema_version;

		from[i] = (struct rfl_ledger_source){
			.column = read ? rfl_csv_find(csv, rfl_ledger_fields[i].name) : -1
		};
	}
	return rfl_ledger__read(csv, from, to, &more, err);
}

enum rfl_rc rfl_ledger_load_columns(const char *path, const bool wanted[RFL_LEDGER_NCOLUMNS],
				    struct rfl_ledger **ret, struct rfl_err *err)
{
	struct rfl_ledger *l = rfl_ledger__new();
	enum rfl_rc rc = RFL_OK;
	int lock = -1;

	if (!l)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
	l->hashed = !wanted;
	/* a table without rows whose header a power cut tore is one without rows all the same */
	if (rfl_file_size(path) > 0 && rfl_file_lock_shared(path, &lock, NULL) == RFL_OK) {
		l->torn = rfl_ledger__is_cut_header(path);
		(void)!rfl_file_unlock(lock, path, NULL);
	}
	if (l->torn)
		rfl_log(RFL_LOG_WARN,
			"%s: has an incomplete header and no row; the next row mends it", path);
	else
		rc = rfl_ledger__read_file(path, read_wanted, (void *)(uintptr_t)wanted, l, err);
	if (rc == RFL_OK) {
		*ret = l;
		l = NULL;
	}
	rfl_ledger_free(l);
	return rc;
}

enum rfl_rc rfl_ledger_load(const char *path, struct rfl_ledger **ret, struct rfl_err *err)
{
	return rfl_ledger_load_columns(path, NULL, ret, err);
}
