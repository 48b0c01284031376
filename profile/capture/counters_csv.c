/* counters_csv.c - writes captures as rows of counters.csv, and reads them. */
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/file.h"
#include "base/input.h"
#include "profile/capture/impl.h"

#define MEMBER(type, name, meaning) RFL_FIELD_C_##type name;
struct row {
	RFL_COUNTER_COLUMNS(MEMBER)
};

#define FIELD(type, name, meaning) RFL_FIELD(type, struct row, name, meaning),
static const struct rfl_field columns[] = { RFL_COUNTER_COLUMNS(FIELD) };

#define COLUMN_ID(type, name, meaning) COLUMN_##name,
enum { RFL_COUNTER_COLUMNS(COLUMN_ID) COLUMNS };

#define COLUMN_NAME(type, name, meaning) #name,
static const char *const header[] = { RFL_COUNTER_COLUMNS(COLUMN_NAME) };

/* The keywords of column `kind`. */
enum row_kind { ROW_CAPTURE, ROW_QUANTITY, ROW_METRIC, ROW_REFUSAL, ROW_NOTE };
static const char *const row_names[] = { "capture", "quantity", "metric", "refusal", "note", NULL };

/* ---- writing ---- */

/* Rows to be written borrow their strings. */
static char *text(const char *borrowed)
{
	return (char *)(uintptr_t)borrowed;
}

/* A row with the fields of the capture and the range. @param r  NULL: the total */
static struct row row_of(const struct rfl_capture *c, const struct rfl_range *r, enum row_kind kind)
{
	struct row row;

	rfl_fields_clear(columns, COLUMNS, &row);
	row.schema_version = RFL_COUNTERS_SCHEMA;
	row.label = text(c->label);
	row.run_id = text(c->run_id);
	row.timestamp_utc = text(c->time_utc);
	row.source = text(c->source);
	row.file = text(c->path);
	row.device = text(c->device);
	row.chip = text(c->chip);
	row.family = text(c->family);
	row.steps = c->steps;
	row.passes = c->passes;
	row.kind = text(row_names[kind]);
	if (kind == ROW_REFUSAL || kind == ROW_NOTE)
		return row;
	row.range_kind = text(r ? rfl_range_kind_names[r->kind] : "total");
	row.range = text(r ? r->name : rfl_range_kind_names[c->total_kind]);
	if (r) {
		row.block = text(r->block);
		row.grid = text(r->grid);
		row.launches = r->launches;
	}
	return row;
}

static void write_amount(const struct rfl_capture *c, const struct rfl_range *r,
			 enum rfl_quantity q, struct rfl_buf *out)
{
	const struct rfl_quantity_info *info = rfl_quantity_info(q);
	const struct rfl_amount *a = r ? &r->amount[q] : &c->total[q];
	struct row row = row_of(c, r, ROW_QUANTITY);

	row.metric = text(info->name);
	row.unit = text(info->unit);
	row.value = a->value;
	row.counted_launches = a->launches;
	row.validity = text(rfl_validity_names[a->validity]);
	row.rule = text(a->rule);
	row.reason = text(a->reason);
	rfl_fields_write(columns, COLUMNS, &row, out);
}

static void write_range(const struct rfl_capture *c, const struct rfl_range *r, struct rfl_buf *out)
{
	const size_t before = out->len;

	for (const struct rfl_metric *m = r->metrics; m < r->metrics + r->nmetrics; m++) {
		struct row row = row_of(c, r, ROW_METRIC);

		row.metric = text(m->name);
		row.unit = text(m->unit);
		row.rollup = text(rfl_rollup_names[m->rollup]);
		row.value = m->value;
		row.counted_launches = m->launches;
		row.pass = m->pass;
		row.validity = text(rfl_validity_names[m->validity]);
		row.reason = text(m->reason);
		rfl_fields_write(columns, COLUMNS, &row, out);
	}
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++) {
		const struct rfl_amount *a = &r->amount[q], *total = &c->total[q];

		/* a range without a row for a quantity has the reason of the total */
		if (!isnan(a->value) || !isnan(total->value) || a->launches != 0 || a->rule ||
		    a->validity != RFL_VALID_UNAVAILABLE || !a->reason || !total->reason ||
		    strcmp(a->reason, total->reason) != 0)
			write_amount(c, r, q, out);
	}
	if (out->len == before) /* every range needs a row */
		write_amount(c, r, RFL_QUANTITY_TIME, out);
}

/* Write a row without a range. */
static void write_other(const struct rfl_capture *c, enum row_kind kind, const char *metric,
			double value, const char *reason, struct rfl_buf *out)
{
	struct row row = row_of(c, NULL, kind);

	row.metric = text(metric);
	row.value = value;
	row.reason = text(reason);
	if (kind == ROW_REFUSAL)
		row.validity = text(rfl_validity_names[RFL_VALID_UNAVAILABLE]);
	rfl_fields_write(columns, COLUMNS, &row, out);
}

void rfl_counters_write(struct rfl_buf *out, const struct rfl_captures *captures, bool with_header)
{
	if (with_header)
		rfl_fields_write_header(columns, COLUMNS, out);
	for (size_t k = 0; k < captures->n; k++) {
		const struct rfl_capture *c = captures->captures[k];

		write_other(c, ROW_CAPTURE, "rows_left_out", (double)c->rows_left_out, NULL, out);
		for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
			write_amount(c, NULL, q, out);
		for (size_t i = 0; i < c->nranges; i++)
			write_range(c, &c->ranges[i], out);
		for (size_t i = 0; i < c->nrefusals; i++)
			write_other(c, ROW_REFUSAL, c->refusals[i].set, NAN, c->refusals[i].reason,
				    out);
		if (c->unused_metrics > 0)
			write_other(c, ROW_NOTE, "unused_metrics", (double)c->unused_metrics, NULL,
				    out);
		for (size_t i = 0; i < c->nnotes; i++)
			write_other(c, ROW_NOTE, NULL, NAN, c->notes[i], out);
	}
}

enum rfl_rc rfl_counters_check(const char *path, struct rfl_err *err)
{
	return rfl_file_size(path) == 0 ? RFL_OK : rfl_csv_check_header(path, header, COLUMNS, err);
}

enum rfl_rc rfl_counters_append(const char *path, const struct rfl_captures *captures,
				struct rfl_err *err)
{
	RFL_AUTO(buf) rows = { .max = (size_t)1 << 30 };

	rfl_counters_write(&rows, captures, false);
	enum rfl_rc rc = rfl_buf_check(&rows, path, err);
	if (rc == RFL_OK)
		rc = rfl_csv_append_rows(path, header, COLUMNS, &rows, err);
	return rc;
}

/* ---- reading ---- */

/* The maximum number of launches, steps or rows, so that sums cannot overflow. */
#define COUNT_MOST INT64_C(1000000000000)

/* `rc` keeps the first failure; anything read after it is ignored. */
struct reader {
	struct rfl_csv *csv;
	int column[COLUMNS];
	struct row row; /* the current row; strings are borrowed, NULL if empty */
	struct rfl_captures *to;
	enum rfl_rc rc;
	struct rfl_err *err;

	/* the current capture; an amount with -1 launches has no row yet */
	struct rfl_capture_builder *b;
	struct rfl_keys seen; /* range, name and unit of each metric */
};

/* Report "file:line: column 'name': problem". */
RFL_PRINTF(3, 4) static void bad(struct reader *rd, int column, const char *fmt, ...)
{
	char what[128];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (rd->rc == RFL_OK)
		rd->rc = rfl_fail(rd->err, RFL_EFORMAT, 0, "%s:%zu: column '%s': %s", rd->csv->path,
				  rd->csv->line, columns[column].name, what);
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* The index of `text` in `names`. */
static int choose(struct reader *rd, int column, const char *text, const char *const *names)
{
	for (int i = 0; names[i]; i++)
		if (rfl_text_same(text, names[i]))
			return i;
	bad(rd, column, "unknown value '%.63s'", or_empty(text));
	return 0;
}

/* The value of the row as a count; 0 if empty. */
static int64_t value_as_count(struct reader *rd)
{
	int64_t n = 0;

	if (rd->rc == RFL_OK)
		rd->rc = rfl_csv_int(rd->csv, rd->column[COLUMN_value], 0, &n, rd->err);
	if (n < 0)
		bad(rd, COLUMN_value, "a count cannot be negative");
	if (n > COUNT_MOST)
		bad(rd, COLUMN_value, "a count cannot exceed 1,000,000,000,000");
	return n;
}

/* The validity of the row, which must be consistent with its value. */
static enum rfl_validity validity_of(struct reader *rd)
{
	const enum rfl_validity validity = (enum rfl_validity)choose(
		rd, COLUMN_validity, rd->row.validity, rfl_validity_names);

	if (isnan(rd->row.value) && validity != RFL_VALID_UNAVAILABLE)
		bad(rd, COLUMN_value, "is empty, but 'validity' is not 'unavailable'");
	if (!isnan(rd->row.value) && validity == RFL_VALID_UNAVAILABLE)
		bad(rd, COLUMN_value, "has a value, but 'validity' is 'unavailable'");
	return validity;
}

/* ---- captures ---- */

/* Mark an amount as unavailable if it has no row. */
static void default_amount(struct rfl_amount *a, const char *reason)
{
	if (a->launches < 0)
		*a = (struct rfl_amount){ .value = NAN,
					  .validity = RFL_VALID_UNAVAILABLE,
					  .reason = reason };
}

/* Append the current capture, if any. A quantity without a row gets the reason of the total. */
static void end_capture(struct reader *rd)
{
	struct rfl_capture_builder *b = rd->b;

	if (!b || rd->rc != RFL_OK)
		return;
	struct rfl_capture *c = &b->capture;
	struct rfl_range *ranges = rfl_arena_array(b->arena, b->nranges, sizeof(*ranges));
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
		default_amount(&c->total[q], "the file has no total of this quantity");
	for (size_t i = 0; i < b->nranges; i++) {
		const struct rfl_range_sum *from = b->ranges[i];
		const size_t n = from->range.nmetrics;
		struct rfl_metric *metrics = rfl_arena_array(b->arena, n, sizeof(*metrics));

		if (n > 0)
			memcpy(metrics, from->metrics, n * sizeof(*metrics));
		ranges[i] = from->range;
		ranges[i].metrics = metrics;
		for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
			default_amount(&ranges[i].amount[q],
				       isnan(c->total[q].value) ? c->total[q].reason : NULL);
	}
	c->ranges = ranges;
	c->nranges = b->nranges;
	/* older files do not mark values that cover only some launches as partial */
	int64_t launches = rfl_capture_launches_of_total(c);
	for (struct rfl_amount *a = c->total; a < c->total + RFL_QUANTITY_COUNT; a++)
		if (a->validity < RFL_VALID_PARTIAL && a->launches > 0 && a->launches < launches)
			a->validity = RFL_VALID_PARTIAL;
	rfl_capture__hand_over(b, rd->to);
	rd->b = NULL;
	rd->seen = (struct rfl_keys){ 0 };
}

static void capture_row(struct reader *rd)
{
	const struct row *row = &rd->row;

	end_capture(rd);
	rd->b = rfl_capture__empty_builder();
	struct rfl_capture *c = &rd->b->capture;
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
		c->total[q].launches = -1;
	c->run_id = rfl_capture__keep(rd->b, row->run_id);
	c->time_utc = rfl_capture__keep(rd->b, row->timestamp_utc);
	c->path = rfl_capture__keep(rd->b, row->file);
	c->device = rfl_capture__keep(rd->b, row->device);
	c->chip = rfl_capture__keep(rd->b, row->chip);
	c->family = rfl_capture__keep(rd->b, row->family);
	c->label = rfl_capture__keep(rd->b, or_empty(row->label));
	c->source = rfl_capture__keep(rd->b, or_empty(row->source));
	c->steps = row->steps;
	c->passes = row->passes;
	c->total_kind =
		(enum rfl_range_kind)choose(rd, COLUMN_range, row->range, rfl_range_kind_names);
	c->rows_left_out = value_as_count(rd);
}

/* ---- ranges ---- */

/* The range of the row; NULL on failure. All its rows have the same number of launches. */
static struct rfl_range_sum *find_range(struct reader *rd)
{
	const struct row *row = &rd->row;
	const char *name = or_empty(row->range);
	const enum rfl_range_kind kind = (enum rfl_range_kind)choose(
		rd, COLUMN_range_kind, row->range_kind, rfl_range_kind_names);
	const size_t before = rd->b->nranges;

	if (rd->rc != RFL_OK)
		return NULL;
	struct rfl_range_sum *found = rfl_capture__range(rd->b, kind, name, row->block, row->grid);
	if ((rd->rc = rfl_capture__check(rd->b, rd->err)) != RFL_OK)
		return NULL;
	struct rfl_range *r = &found->range;
	if (rd->b->nranges > before) {
		r->launches = row->launches;
		for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
			r->amount[q].launches = -1;
	}
	if (row->launches != r->launches)
		bad(rd, COLUMN_launches, "differs from an earlier row of this range");
	if (row->counted_launches > row->launches)
		bad(rd, COLUMN_counted_launches, "exceeds the launches of this range");
	return rd->rc == RFL_OK ? found : NULL;
}

static void quantity_row(struct reader *rd)
{
	const struct row *row = &rd->row;
	const enum rfl_quantity q = rfl_quantity_find(or_empty(row->metric));
	struct rfl_range_sum *range = NULL;

	if (q == RFL_QUANTITY_COUNT)
		bad(rd, COLUMN_metric, "unknown value '%.63s'", or_empty(row->metric));
	else if (!rfl_text_same(row->range_kind, "total"))
		range = find_range(rd);
	struct rfl_amount a = { .value = row->value,
				.validity = validity_of(rd),
				.launches = row->counted_launches,
				.rule = rfl_capture__keep(rd->b, row->rule),
				.reason = rfl_capture__keep(rd->b, row->reason) };
	if (a.value < 0)
		bad(rd, COLUMN_value, "a quantity cannot be negative");
	if (rd->rc != RFL_OK)
		return;
	struct rfl_amount *to = range ? &range->range.amount[q] : &rd->b->capture.total[q];
	if (to->launches >= 0)
		bad(rd, COLUMN_metric, "occurs twice in this range");
	*to = a;
}

/* A metric occurs once per unit in a range. Names and units are interned: compare pointers. */
static void metric_row(struct reader *rd)
{
	const struct row *row = &rd->row;
	struct rfl_range_sum *range = find_range(rd);
	const struct rfl_metric m = {
		.name = rfl_capture__keep(rd->b, or_empty(row->metric)),
		.unit = rfl_capture__keep(rd->b, or_empty(row->unit)),
		.rollup = (enum rfl_rollup)choose(rd, COLUMN_rollup, row->rollup, rfl_rollup_names),
		.value = row->value,
		.validity = validity_of(rd),
		.launches = row->counted_launches,
		.pass = (int)row->pass,
		.reason = rfl_capture__keep(rd->b, row->reason),
	};
	const void *const key[] = { range, m.name, m.unit };
	bool added;

	if (!row->metric)
		bad(rd, COLUMN_metric, "the name of the metric is missing");
	if (row->pass > INT_MAX)
		bad(rd, COLUMN_pass, "the pass number is too large");
	if (!range || rd->rc != RFL_OK)
		return;
	(void)rfl_keys_add(&rd->seen, rd->b->scratch, key, sizeof(key), &added);
	if (!added)
		bad(rd, COLUMN_metric, "occurs twice in this range");
	*(struct rfl_metric *)rfl_arena_append(rd->b->scratch, &range->metrics,
					       &range->range.nmetrics) = m;
}

/* Read the fields of the columns from `first` up to, but not including, `end`. */
static void read_columns(struct reader *rd, int first, int end)
{
	if (rd->rc == RFL_OK)
		rd->rc = rfl_fields_read(columns + first, (size_t)(end - first), rd->csv,
					 rd->column + first, NULL, &rd->row, rd->err);
	for (int i = first; i < end; i++) {
		const int64_t n = columns[i].kind == RFL_FIELD_INT
					  ? *rfl_field_int_at(&columns[i], &rd->row)
					  : 0;

		if (n > COUNT_MOST && i != COLUMN_pass)
			bad(rd, i, "a count cannot exceed 1,000,000,000,000");
	}
}

static void read_row(struct reader *rd)
{
	struct row *row = &rd->row;

	read_columns(rd, COLUMN_schema_version, COLUMN_schema_version + 1);
	if (row->schema_version != RFL_COUNTERS_SCHEMA)
		bad(rd, COLUMN_schema_version, "is not supported; this program reads version 1");
	read_columns(rd, COLUMN_range_kind, COLUMNS);
	if (row->launches == RFL_UNKNOWN)
		row->launches = 1;
	if (row->counted_launches == RFL_UNKNOWN)
		row->counted_launches = 0;
	int kind = choose(rd, COLUMN_kind, row->kind, row_names);
	if (kind != ROW_CAPTURE && !rd->b)
		bad(rd, COLUMN_kind, "no row of kind 'capture' precedes this row");
	if (rd->rc != RFL_OK)
		return;
	switch (kind) {
	case ROW_CAPTURE: /* these columns are the same in all rows of a capture */
		read_columns(rd, COLUMN_label, COLUMN_range_kind);
		capture_row(rd);
		break;
	case ROW_QUANTITY:
		quantity_row(rd);
		break;
	case ROW_METRIC:
		metric_row(rd);
		break;
	case ROW_REFUSAL:
		if (!row->metric)
			bad(rd, COLUMN_metric, "the set of the refusal is missing");
		else if (!row->reason)
			bad(rd, COLUMN_reason, "the reason of the refusal is missing");
		else
			rfl_capture_refuse(rd->b, row->metric, row->reason);
		break;
	default: /* ROW_NOTE */
		if (rfl_text_same(row->metric, "unused_metrics"))
			rd->b->capture.unused_metrics = value_as_count(rd);
		else if (!row->reason)
			bad(rd, COLUMN_reason, "the text of the note is missing");
		else
			rfl_capture_note(rd->b, "%s", row->reason);
	}
}

enum rfl_rc rfl_counters_read(struct rfl_input *in, struct rfl_captures *to, struct rfl_err *err)
{
	struct reader rd = { .to = to, .err = err };
	const size_t before = to->n;
	bool more = true;

	rd.rc = rfl_csv_open_input(in, &rd.csv, err);
	if (rd.rc != RFL_OK)
		return rd.rc;
	if (rfl_csv_find(rd.csv, columns[COLUMN_range_kind].name) < 0)
		rd.rc = rfl_fail(
			err, RFL_EFORMAT, 0,
			"%s: not a counters.csv file: the header has no column 'range_kind'; "
			"import files of other profilers with 'roofline counters import'",
			in->name);
	/* all columns are required: each identifies a row or qualifies its value */
	for (size_t i = 0; i < COLUMNS && rd.rc == RFL_OK; i++)
		rd.rc = rfl_csv_need(rd.csv, columns[i].name, &rd.column[i], err);
	while (rd.rc == RFL_OK && (rd.rc = rfl_csv_next(rd.csv, &more, err)) == RFL_OK && more)
		read_row(&rd);
	end_capture(&rd);
	rfl_capture_builder_free(rd.b);
	rfl_csv_close(rd.csv);
	while (rd.rc != RFL_OK && to->n > before) /* on failure, leave `to` unchanged */
		rfl_arena_free(to->captures[--to->n]->arena);
	return rd.rc;
}

enum rfl_rc rfl_counters_load(const char *path, const char *text, size_t len,
			      struct rfl_captures *to, struct rfl_err *err)
{
	RFL_AUTOPTR(input) in = NULL;
	enum rfl_rc rc = RFL_OK;

	if (text)
		in = rfl_input_open_text(text, len, path);
	else
		rc = rfl_input_open(path, &in, err);
	if (rc == RFL_OK)
		rc = rfl_counters_read(in, to, err);
	return rc;
}
