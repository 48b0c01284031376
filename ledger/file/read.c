/*
 * read.c - reads rows from metrics.csv by the column names in its header, or from any other table
 * by a list that assigns a source to each column.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stats.h"
#include "base/text.h"
#include "ledger/file/steps.h"
#include "ledger/runs.h"

struct reader {
	struct rfl_csv *csv;
	const struct rfl_ledger_source *from;
	struct rfl_ledger_row blank; /* constant values, the same in all rows */
	struct rfl_ledger *to;
	size_t left_out; /* incomplete rows */
	size_t negative; /* numbers that are unknown because of it */
};

/* Read an integer of another program's table. Accepts "True", and "32.0" for 32, which some
 * programs write if the column has an empty cell. */
static enum rfl_rc read_foreign_int(const struct reader *r, const struct rfl_ledger_source *s,
				    bool positive, int64_t *ret, struct rfl_err *err)
{
	static const char *const truths[] = { "false", "true", "no", "yes", "off", "on" };
	const char *text = rfl_csv_text(r->csv, s->column);
	double value = NAN;
	enum rfl_rc rc;

	for (size_t i = 0; i < RFL_ARRAY_LEN(truths); i++)
		if (strcasecmp(truths[i], text) == 0) {
			*ret = i % 2;
			return RFL_OK;
		}
	rc = rfl_csv_double(r->csv, s->column, &value, err);
	if (rc != RFL_OK || isnan(value))
		return rc;
	value = s->scale != 0 ? value * s->scale : value;
	if (value != floor(value) || value < (positive ? 1 : RFL_UNKNOWN) ||
	    value > 9007199254740992.0)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: column '%s': '%s' is not %s; correct the value",
				r->csv->path, r->csv->line, r->csv->columns[s->column], text,
				positive    ? "a positive integer"
				: value < 0 ? "0 or more"
					    : "an integer");
	*ret = (int64_t)value;
	return RFL_OK;
}

/* Insert the values of a row into a pattern. An empty value makes the result empty. */
static enum rfl_rc expand(const struct reader *r, const char *pattern, struct rfl_buf *out,
			  struct rfl_err *err)
{
	const char *name;

	for (; (name = strchr(pattern, '{')); pattern = strchr(name, '}') + 1) {
		const int column = rfl_column_map__named(r->csv, name + 1, strchr(name, '}'));
		const char *value = rfl_csv_text(r->csv, column);

		if (!*value) {
			rfl_buf_reset(out);
			return RFL_OK;
		}
		rfl_buf_printf(out, "%.*s%s", (int)(name - pattern), pattern, value);
	}
	rfl_buf_puts(out, pattern);
	return rfl_buf_check(out, r->csv->path, err);
}

/* Read a cell such as "1.74 \xc2\xb1 0.19". @param std  set only if the cell has one */
static enum rfl_rc read_mean(const struct reader *r, int column, double *ret, double *std,
			     struct rfl_err *err)
{
	static const char *const signs[] = { "\xc2\xb1", "+/-", "+-" };
	const char *text = rfl_csv_text(r->csv, column), *at = NULL;
	struct rfl_span mean, spread;
	size_t i = 0;

	while (i < RFL_ARRAY_LEN(signs) && !(at = strstr(text, signs[i])))
		i++;
	if (!at) {
		if (rfl_csv_double(r->csv, column, ret, NULL) == RFL_OK)
			return RFL_OK;
		mean = rfl_span_trim(rfl_span_of(text));
		*ret = NAN;
		return rfl_num_is_missing(mean.at, mean.len) ||
				       rfl_span_grouped(mean, '.', ret, NULL)
			       ? RFL_OK
			       : rfl_csv_double(r->csv, column, ret, err);
	}
	mean = rfl_span_trim((struct rfl_span){ text, (size_t)(at - text) });
	spread = rfl_span_trim(rfl_span_of(at + strlen(signs[i])));
	*ret = rfl_num_plain(mean.at, mean.len);
	*std = rfl_num_plain(spread.at, spread.len);
	return *std >= 0 && !isnan(*ret) ? RFL_OK : rfl_csv_double(r->csv, column, ret, err);
}

/* Read a real of another program's table. A negative number in a column that has none is unknown.
 * A mean of repeats also sets their deviation and, if each has a column, their number. */
static enum rfl_rc read_foreign_real(struct reader *r, const struct rfl_ledger_source *s,
				     const struct rfl_field *f, struct rfl_ledger_row *row,
				     struct rfl_err *err)
{
	double *ret = rfl_field_real_at(f, row), std = NAN, values[RFL_LEDGER__RUNS_MOST];
	enum rfl_rc rc = read_mean(r, s->column, ret, &std, err);
	struct rfl_stats stats;
	size_t n = 0;

	for (int i = 0; i < s->nruns && rc == RFL_OK; i++) {
		rc = rfl_csv_double(r->csv, s->column + i, &values[n], err);
		n += rc == RFL_OK && !isnan(values[n]);
	}
	if (n > 0) {
		stats = rfl_stats_of(values, n);
		*ret = stats.mean;
		std = stats.std;
		row->samples_per_s_n = (int64_t)n;
	}
	std = s->scale != 0 ? std * s->scale : std;
	if (s->of_runs && !isnan(std))
		row->samples_per_s_std = std;
	if (f == &rfl_ledger_fields[RFL_LEDGER_AT_attained_gflops] && !isnan(std))
		row->attained_gflops_std = std;
	if (f == &rfl_ledger_fields[RFL_LEDGER_AT_tflops] && !isnan(std))
		row->attained_gflops_std = 1e3 * std;

	if (rc == RFL_OK && *ret < 0 && !f->is_signed) {
		if (r->negative++ < RFL_LEDGER__NAMED_MAX)
			rfl_log(RFL_LOG_WARN, "%s:%zu: column '%s': %s is negative, and skipped",
				r->csv->path, r->csv->line, r->csv->columns[s->column],
				rfl_csv_text(r->csv, s->column));
		*ret = NAN;
	}
	return rc;
}

static enum rfl_rc read_field(struct reader *r, size_t i, struct rfl_ledger_row *row,
			      struct rfl_err *err)
{
	const struct rfl_ledger_source *s = &r->from[i];
	const struct rfl_field *f = &rfl_ledger_fields[i];
	const char *text, *before;
	RFL_AUTO(buf) made = { .max = 1 << 16 };
	char **to;
	bool unique;
	enum rfl_rc rc = RFL_OK;

	if (f->kind == RFL_FIELD_INT && s->foreign)
		return read_foreign_int(r, s, i == RFL_LEDGER_AT_batch, rfl_field_int_at(f, row),
					err);
	if (f->kind != RFL_FIELD_TEXT) {
		rc = s->foreign ? read_foreign_real(r, s, f, row, err)
				: rfl_field_read_number(f, r->csv, s->column, row, err);
		if (rc == RFL_OK && s->scale != 0 && f->kind == RFL_FIELD_REAL)
			*rfl_field_real_at(f, row) *= s->scale;
		return rc;
	}
	if (s->pattern)
		rc = expand(r, s->pattern, &made, err);
	text = s->pattern ? rfl_buf_str(&made) : rfl_csv_text(r->csv, s->column);
	if (rc != RFL_OK || !*text) /* empty: unknown */
		return rc;
	unique = i == RFL_LEDGER_AT_run_id || i == RFL_LEDGER_AT_timestamp_utc ||
		 i == RFL_LEDGER_AT_label || i == RFL_LEDGER_AT_error_text ||
		 i == RFL_LEDGER_AT_loss_hash; /* these differ in every row */
	to = rfl_field_text_at(f, row);
	before = r->to->nrows && !unique ? *rfl_field_text_at(f, row - 1) : NULL;
	if (before && strcmp(before, text) == 0)
		*to = *rfl_field_text_at(f, row - 1);
	else if (unique && r->to->of_batch)
		*to = rfl_arena_strdup(r->to->of_batch, text);
	else
		*to = unique ? rfl_texts_copy(&r->to->texts, text)
			     : rfl_texts_keep(&r->to->texts, text);
	return rc;
}

/* Set a column to its constant value in all rows. */
static enum rfl_rc set_constant(struct reader *r, size_t i, struct rfl_err *err)
{
	const struct rfl_field *f = &rfl_ledger_fields[i];
	const char *text = r->from[i].text;

	if (!*text)
		return RFL_OK; /* unknown */
	if (f->kind == RFL_FIELD_INT)
		return rfl_num_parse_int(text, f->name, rfl_field_int_at(f, &r->blank), err);
	if (f->kind == RFL_FIELD_REAL)
		return rfl_num_parse_double(text, f->name, rfl_field_real_at(f, &r->blank), err);
	*rfl_field_text_at(f, &r->blank) = rfl_texts_keep(&r->to->texts, text);
	return RFL_OK;
}

static void leave_out(struct reader *r)
{
	if (r->left_out++ < RFL_LEDGER__NAMED_MAX)
		rfl_log(RFL_LOG_WARN, "%s:%zu: the incomplete row is skipped", r->csv->path,
			r->csv->line);
	r->to->torn = true;
}

enum rfl_rc rfl_ledger__read(struct rfl_csv *csv,
			     const struct rfl_ledger_source from[RFL_LEDGER_NREAD],
			     struct rfl_ledger *to, bool *more, struct rfl_err *err)
{
	const struct rfl_ledger_source *version = &from[RFL_LEDGER_AT_version];
	/* Every row of a ledger has a version in its last column, so a row without it is torn. */
	const bool versioned = version->column >= 0 && !version->foreign &&
			       from[RFL_LEDGER_AT_schema_version].column >= 0;
	const bool torn_before = to->torn;
	const size_t first = to->nrows;
	struct reader r = { .csv = csv, .from = from, .to = to };
	struct rfl_err why = RFL_ERR_INIT;
	size_t used[RFL_LEDGER_NREAD], nused = 0; /* indices of the columns in the table */
	bool whole = true;                        /* the last row is complete or was omitted */
	enum rfl_rc rc;

	rfl_ledger_row_init(&r.blank);
	for (size_t i = 0; i < RFL_LEDGER_NREAD; i++)
		if (from[i].column >= 0)
			used[nused++] = i;
		else if (from[i].text && (rc = set_constant(&r, i, err)))
			return rc;
	to->torn = false; /* set for this table only */
	if (to->hashed)
		csv->hashed = true;
	for (;;) {
		struct rfl_ledger_row *row;

		rc = RFL_OK;
		whole = *more = true;
		if (to->batch && to->nrows - first == to->batch && !csv->torn)
			break;
		rc = rfl_csv_next(csv, more, &why);
		if (rc == RFL_EFORMAT && csv->torn && version->foreign) {
			leave_out(&r); /* the row ends inside quotes */
			*more = false;
			rc = RFL_OK;
			break;
		}
		if (rc) {
			(void)rfl_err_pass(err, &why);
			break;
		}
		whole = to->torn || !csv->torn;
		if (!*more)
			break;
		if (versioned && !*rfl_csv_text(csv, version->column)) {
			leave_out(&r);
			continue;
		}
		rfl_reserve(&to->rows, &to->cap, to->nrows + 1);
		row = &to->rows[to->nrows];
		*row = r.blank;
		row->line = csv->line;
		for (size_t i = 0; i < nused && rc == RFL_OK; i++)
			rc = read_field(&r, used[i], row, err);
		if (rc)
			break;
		to->nrows++;
	}
	if (rc == RFL_OK && !whole && !version->foreign) {
		/* The row may be complete except for the newline. */
		rfl_log(RFL_LOG_WARN, "%s: the incomplete last line is skipped", csv->path);
		to->nrows--;
		to->torn = true;
	}
	if (r.negative > RFL_LEDGER__NAMED_MAX)
		rfl_log(RFL_LOG_WARN, "%s: %zu more negative numbers are skipped", csv->path,
			r.negative - RFL_LEDGER__NAMED_MAX);
	if (r.left_out > RFL_LEDGER__NAMED_MAX)
		rfl_log(RFL_LOG_WARN, "%s: %zu more incomplete rows are skipped", csv->path,
			r.left_out - RFL_LEDGER__NAMED_MAX);
	to->torn = to->torn || torn_before;
	if (to->hashed)
		rfl_hash64_text(csv->hash, to->hash);
	return rc;
}

void rfl_ledger__bind(const struct rfl_csv *csv, const bool *wanted,
		      struct rfl_ledger_source from[RFL_LEDGER_NREAD])
{
	for (size_t i = 0; i < RFL_LEDGER_NREAD; i++)
		from[i] = (struct rfl_ledger_source){
			.column = i < RFL_LEDGER_NCOLUMNS && (!wanted || wanted[i])
					  ? rfl_csv_find(csv, rfl_ledger_fields[i].name)
					  : -1
		};
}

void rfl_ledger_free(struct rfl_ledger *ledger)
{
	if (!ledger)
		return;
	rfl_texts_fini(&ledger->texts);
	rfl_arena_free(ledger->of_batch);
	free(ledger->rows);
	free(ledger);
}

enum rfl_rc rfl_ledger__read_file(const char *path, rfl_ledger__reader *read, void *ctx,
				  struct rfl_ledger *to, struct rfl_err *err)
{
	const size_t before = to->nrows;
	struct rfl_err why = RFL_ERR_INIT;
	RFL_AUTOPTR(csv) csv = NULL;
	RFL_AUTOPTR(csv) whole = NULL;
	RFL_AUTO(buf) text = { .max = RFL_LEDGER__BYTES_MAX };
	uint64_t hash;
	int lock = -1;
	enum rfl_rc rc;

	/* No append is in progress while the lock is held. */
	if ((rc = rfl_file_lock_shared(path, &lock, &why)) ||
	    (rc = rfl_csv_open(path, &csv, &why)) || (rc = read(csv, to, ctx, &why))) {
		if (rc != RFL_EFORMAT || !csv || !rfl_foreign_is_ours(csv) ||
		    rfl_file_size(path) == 0) { /* a pipe is read once */
			(void)rfl_err_pass(err, &why);
			goto done;
		}
		/* The file is a ledger with torn rows: read all other rows. */
		to->nrows = before; /* texts of the discarded rows stay in the arena */
		if ((rc = rfl_ledger__open_whole(path, &why, &text, &hash, &whole, err)) ||
		    (rc = read(whole, to, ctx, err)))
			goto done;
		to->torn = true;
		if (to->hashed)
			rfl_hash64_text(hash, to->hash); /* hash of the unchanged file */
	}
done:
	if (lock >= 0)
		(void)!rfl_file_unlock(lock, path, NULL); /* nothing was written */
	return rc;
}

#define BATCH 1024 /* rows in memory */

struct request {
	bool wanted[RFL_LEDGER_NCOLUMNS];
	size_t since;
	rfl_ledger_visitor *visit; /* NULL: keep the rows */
	void *ctx;
};

static enum rfl_rc read_wanted(struct rfl_csv *csv, struct rfl_ledger *to, void *ctx,
			       struct rfl_err *err)
{
	struct rfl_ledger_source from[RFL_LEDGER_NREAD];
	const struct request *request = ctx;
	enum rfl_rc rc = RFL_OK;
	bool more;

	if (request->since && (rc = rfl_csv_seek(csv, request->since, err)) != RFL_OK)
		return rc;
	rfl_ledger__bind(csv, request->wanted, from);
	if (!request->visit)
		return rfl_ledger__read(csv, from, to, &more, err);
	request->visit(NULL, request->ctx);
	for (more = true; more && rc == RFL_OK; to->nrows = 0) {
		rfl_arena_free(to->of_batch);
		to->of_batch = rfl_arena_new();
		rc = rfl_ledger__read(csv, from, to, &more, err);
		for (size_t i = 0; i < to->nrows && rc == RFL_OK; i++)
			request->visit(&to->rows[i], request->ctx);
	}
	return rc;
}

/* Read a file into a ledger, or visit its rows. */
static enum rfl_rc load_file(const char *path, const char *columns, struct request *request,
			     struct rfl_ledger **ret, struct rfl_err *err)
{
	struct rfl_ledger *l = rfl_alloc_array(1, sizeof(*l));
	enum rfl_rc rc = RFL_OK;
	int lock = -1;

	l->hashed = !columns;
	l->batch = request->visit ? BATCH : 0;
	memset(request->wanted, !columns, sizeof(request->wanted));
	/* the last two are needed to detect torn rows */
	rfl_ledger_want(columns ? columns : "", request->wanted);
	rfl_ledger_want("version schema_version", request->wanted);
	/* A ledger with an incomplete header (a power failure) has no rows. */
	if (rfl_file_size(path) > 0 && rfl_file_lock_shared(path, &lock, NULL) == RFL_OK) {
		l->torn = rfl_ledger__is_cut_header(path);
		(void)!rfl_file_unlock(lock, path, NULL);
	}
	if (l->torn)
		rfl_log(RFL_LOG_WARN,
			"%s: the header is incomplete and there are no rows; the next run repairs "
			"the file",
			path);
	else
		rc = rfl_ledger__read_file(path, read_wanted, request, l, err);
	if (rc == RFL_OK)
		*ret = l;
	else
		rfl_ledger_free(l);
	return rc;
}

enum rfl_rc rfl_ledger_load_columns(const char *path, const char *columns, size_t since,
				    struct rfl_ledger **ret, struct rfl_err *err)
{
	struct request request = { .since = since };

	return load_file(path, columns, &request, ret, err);
}

enum rfl_rc rfl_ledger_each(const char *path, const char *columns, size_t since,
			    rfl_ledger_visitor *visit, void *ctx, struct rfl_err *err)
{
	struct request request = { .since = since, .visit = visit, .ctx = ctx };
	RFL_AUTOPTR(ledger) l = NULL;
	enum rfl_rc rc = load_file(path, columns, &request, &l, err);

	return rc;
}

enum rfl_rc rfl_ledger_load(const char *path, struct rfl_ledger **ret, struct rfl_err *err)
{
	return rfl_ledger_load_columns(path, NULL, 0, ret, err);
}
