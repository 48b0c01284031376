/*
 * counters_csv.c - captures as rows of counters.csv, and back.
 */
#include "profile/capture/counters_csv.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "base/file.h"
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

const char *rfl_counters_column(size_t i, const char **meaning)
{
	if (i >= COLUMNS)
		return NULL;
	if (meaning)
		*meaning = columns[i].meaning;
	return columns[i].name;
}

/* ---- writing ---- */

/* Rows are only read from: texts stay their owner's. */
static char *text(const char *borrowed)
{
	return (char *)(uintptr_t)borrowed;
}

static void write_row(const struct row *row, struct rfl_buf *out)
{
	rfl_fields_write(columns, COLUMNS, row, out);
}

/* A row of a range, or of the total where `r` is NULL, with what a capture says of all its rows. */
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
	write_row(&row, out);
}

/* A reader takes the total's reason where a range has no row. */
static bool is_as_total(const struct rfl_amount *a, const struct rfl_amount *total)
{
	return isnan(a->value) && isnan(total->value) && a->launches == 0 && !a->rule &&
	       a->validity == RFL_VALID_UNAVAILABLE && a->reason && total->reason &&
	       strcmp(a->reason, total->reason) == 0;
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
		write_row(&row, out);
	}
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (!is_as_total(&r->amount[q], &c->total[q]))
			write_amount(c, r, (enum rfl_quantity)q, out);
	if (out->len == before) /* so that the range is there */
		write_amount(c, r, RFL_QUANTITY_TIME, out);
}

static void write_capture(const struct rfl_capture *c, struct rfl_buf *out)
{
	struct row row = row_of(c, NULL, ROW_CAPTURE);

	row.metric = text("rows_left_out");
	row.value = (double)c->rows_left_out;
	write_row(&row, out);
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		write_amount(c, NULL, (enum rfl_quantity)q, out);
	for (size_t i = 0; i < c->nranges; i++)
		write_range(c, &c->ranges[i], out);
	for (size_t i = 0; i < c->nrefusals; i++) {
		row = row_of(c, NULL, ROW_REFUSAL);
		row.metric = text(c->refusals[i].set);
		row.validity = text(rfl_validity_names[RFL_VALID_UNAVAILABLE]);
		row.reason = text(c->refusals[i].reason);
		write_row(&row, out);
	}
	if (c->unused_metrics > 0) {
		row = row_of(c, NULL, ROW_NOTE);
		row.metric = text("unused_metrics");
		row.value = (double)c->unused_metrics;
		write_row(&row, out);
	}
	for (size_t i = 0; i < c->nnotes; i++) {
		row = row_of(c, NULL, ROW_NOTE);
		row.reason = text(c->notes[i]);
		write_row(&row, out);
	}
}

void rfl_counters_write(struct rfl_buf *out, const struct rfl_captures *captures, bool with_header)
{
	if (with_header)
		rfl_fields_write_header(columns, COLUMNS, out);
	for (size_t i = 0; i < captures->n; i++)
		write_capture(captures->captures[i], out);
}

enum rfl_rc rfl_counters_check(const char *path, struct rfl_err *err)
{
	return rfl_file_size(path) == 0 ? RFL_OK : rfl_csv_check_header(path, header, COLUMNS, err);
}

enum rfl_rc rfl_counters_append(const char *path, const struct rfl_captures *captures,
				struct rfl_err *err)
{
	struct rfl_buf rows;
	enum rfl_rc rc;

	rfl_buf_init(&rows, (size_t)1 << 30);
	rfl_counters_write(&rows, captures, false);
	rc = rfl_buf_check(&rows, path, err);
	if (rc == RFL_OK)
		rc = rfl_csv_append_rows(path, header, COLUMNS, &rows, err);
	rfl_buf_fini(&rows);
	return rc;
}

/* ---- reading ---- */

/* Of launches, steps and rows: sums of them do not overflow. */
#define COUNT_MOST INT64_C(1000000000000)

/* Ranges of one capture: kernels by block and grid. */
#define RANGES_MOST 500000

/* A range while its rows are read: its metrics are in an array that grows. */
struct open_range {
	struct rfl_range r;
	struct rfl_metric *metrics;
	size_t cap;
	bool has_amount[RFL_QUANTITY_COUNT];
};

/* A metric that a range has, to notice when it comes again. */
struct seen {
	uint32_t range, metric;
};

/* A failure stays in `rc`; what is read after it is of no use, and does no harm. */
struct reader {
	struct rfl_csv *csv;
	int column[COLUMNS];
	struct rfl_captures *to;
	enum rfl_rc rc;
	struct rfl_err *err;

	/* the capture at hand; a builder keeps its texts and its notes */
	struct rfl_capture_builder *b;
	bool has_total[RFL_QUANTITY_COUNT];
	struct open_range *ranges;
	size_t nranges, cap;
	struct rfl_places range_places;
	size_t last; /* range: most rows are of the one before */
	struct seen *seen;
	size_t nseen, seen_cap;
	struct rfl_places seen_places;
};

static void no_memory(struct reader *rd)
{
	if (rd->rc == RFL_OK)
		rd->rc = rfl_fail(rd->err, RFL_ENOMEM, 0, "%s: out of memory", rd->csv->path);
}

/* "file:line: column 'name': what" */
static void bad(struct reader *rd, int column, const char *what)
{
	if (rd->rc == RFL_OK)
		rd->rc = rfl_fail(rd->err, RFL_EFORMAT, 0, "%s:%zu: column '%s': %s", rd->csv->path,
				  rd->csv->line, columns[column].name, what);
}

/* The field of the row in a column, until the next row. */
static const char *field(const struct reader *rd, int column)
{
	return rfl_csv_text(rd->csv, rd->column[column]);
}

static bool is_field(const struct reader *rd, int column, const char *text)
{
	return strcmp(field(rd, column), text ? text : "") == 0;
}

static void bad_word(struct reader *rd, int column)
{
	char what[96];

	(void)snprintf(what, sizeof(what), "'%.63s' is not known", field(rd, column));
	bad(rd, column, what);
}

/* The field for the life of the capture; never NULL. */
static const char *take_name(struct reader *rd, int column)
{
	const char *kept = rfl_capture__keep(rd->b, field(rd, column));

	if (!kept)
		no_memory(rd);
	return kept ? kept : "";
}

/* The same; NULL where it is empty. */
static const char *take_text(struct reader *rd, int column)
{
	return field(rd, column)[0] ? take_name(rd, column) : NULL;
}

/* A count. @param none  where it is empty */
static int64_t take_count(struct reader *rd, int column, int64_t none)
{
	int64_t n = none;

	if (rd->rc == RFL_OK)
		rd->rc = rfl_csv_int(rd->csv, rd->column[column], none, &n, rd->err);
	if (n < none && n < 0)
		bad(rd, column, "a count is not below 0");
	if (n > COUNT_MOST)
		bad(rd, column, "a count is not above 1,000,000,000,000");
	return n;
}

/* The index of the row's keyword among `names`. */
static int take_choice(struct reader *rd, int column, const char *const *names)
{
	for (int i = 0; names[i]; i++)
		if (is_field(rd, column, names[i]))
			return i;
	bad_word(rd, column);
	return 0;
}

/* The value, which agrees with the validity. */
static double take_value(struct reader *rd, enum rfl_validity *validity)
{
	double value = NAN;

	if (rd->rc == RFL_OK)
		rd->rc = rfl_csv_double(rd->csv, rd->column[COLUMN_value], &value, rd->err);
	*validity = (enum rfl_validity)take_choice(rd, COLUMN_validity, rfl_validity_names);
	if (isnan(value) && *validity != RFL_VALID_UNAVAILABLE)
		bad(rd, COLUMN_value, "is empty, and 'validity' does not say unavailable");
	if (!isnan(value) && *validity == RFL_VALID_UNAVAILABLE)
		bad(rd, COLUMN_value, "is there, and 'validity' says unavailable");
	return value;
}

/* ---- captures ---- */

static void free_ranges(struct reader *rd)
{
	for (size_t i = 0; i < rd->nranges; i++)
		free(rd->ranges[i].metrics);
	free(rd->ranges);
	free(rd->seen);
	rfl_places_fini(&rd->range_places);
	rfl_places_fini(&rd->seen_places);
	rd->ranges = NULL;
	rd->nranges = rd->cap = 0;
	rd->seen = NULL;
	rd->nseen = rd->seen_cap = 0;
}

static struct rfl_amount unavailable(const char *reason)
{
	return (struct rfl_amount){ .value = NAN,
				    .validity = RFL_VALID_UNAVAILABLE,
				    .reason = reason };
}

/* The ranges into the capture; what a range does not say of a quantity its total does. */
static void move_ranges(struct reader *rd)
{
	struct rfl_capture *c = &rd->b->capture;
	struct rfl_range *ranges = rfl_arena_array(rd->b->arena, rd->nranges, sizeof(*ranges));

	if (!ranges) {
		no_memory(rd);
		return;
	}
	for (size_t i = 0; i < rd->nranges; i++) {
		struct open_range *from = &rd->ranges[i];
		const size_t n = from->r.nmetrics;
		struct rfl_metric *metrics = rfl_arena_array(rd->b->arena, n, sizeof(*metrics));

		if (!metrics) {
			no_memory(rd);
			return;
		}
		if (n > 0)
			memcpy(metrics, from->metrics, n * sizeof(*metrics));
		from->r.metrics = metrics;
		for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
			if (!from->has_amount[q])
				from->r.amount[q] = unavailable(
					isnan(c->total[q].value) ? c->total[q].reason : NULL);
		ranges[i] = from->r;
	}
	c->ranges = ranges;
	c->nranges = rd->nranges;
}

/* Hand out the capture at hand, if there is one. */
static void end_capture(struct reader *rd)
{
	struct rfl_capture *c;
	int64_t launches;

	if (!rd->b || rd->rc != RFL_OK)
		return;
	c = &rd->b->capture;
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (!rd->has_total[q])
			c->total[q] = unavailable("the file has no total of it");
	move_ranges(rd);
	/* older files call a part of the launches by how well it is known */
	launches = rfl_capture_launches_of_total(c);
	for (struct rfl_amount *a = c->total; a < c->total + RFL_QUANTITY_COUNT; a++)
		if (a->validity < RFL_VALID_PARTIAL && a->launches > 0 && a->launches < launches)
			a->validity = RFL_VALID_PARTIAL;
	if (rd->rc == RFL_OK)
		rd->rc = rfl_capture__hand_over(rd->b, rd->to, rd->err);
	rfl_capture_builder_free(rd->b);
	rd->b = NULL;
	free_ranges(rd);
}

static void capture_row(struct reader *rd)
{
	struct rfl_capture *c;

	end_capture(rd);
	if (rd->rc != RFL_OK)
		return;
	rd->b = rfl_capture__empty_builder();
	if (!rd->b) {
		no_memory(rd);
		return;
	}
	memset(rd->has_total, 0, sizeof(rd->has_total));
	c = &rd->b->capture;
	c->run_id = take_text(rd, COLUMN_run_id);
	c->time_utc = take_text(rd, COLUMN_timestamp_utc);
	c->path = take_text(rd, COLUMN_file);
	c->device = take_text(rd, COLUMN_device);
	c->chip = take_text(rd, COLUMN_chip);
	c->family = take_text(rd, COLUMN_family);
	c->label = take_name(rd, COLUMN_label);
	c->source = take_name(rd, COLUMN_source);
	c->steps = take_count(rd, COLUMN_steps, -1);
	c->passes = take_count(rd, COLUMN_passes, -1);
	c->total_kind = (enum rfl_range_kind)take_choice(rd, COLUMN_range, rfl_range_kind_names);
	c->rows_left_out = take_count(rd, COLUMN_value, 0);
}

/* ---- rows ---- */

static void note_row(struct reader *rd)
{
	if (is_field(rd, COLUMN_metric, "unused_metrics"))
		rd->b->capture.unused_metrics = take_count(rd, COLUMN_value, 0);
	else if (is_field(rd, COLUMN_reason, ""))
		bad(rd, COLUMN_reason, "a note has no text");
	else
		rfl_capture__note(rd->b, field(rd, COLUMN_reason));
}

static void refusal_row(struct reader *rd)
{
	if (is_field(rd, COLUMN_metric, ""))
		bad(rd, COLUMN_metric, "a refusal names no set");
	else if (is_field(rd, COLUMN_reason, ""))
		bad(rd, COLUMN_reason, "a refusal has no reason");
	else
		rfl_capture_refuse(rd->b, field(rd, COLUMN_metric), field(rd, COLUMN_reason));
}

static bool is_range(const struct reader *rd, const struct rfl_range *r)
{
	return is_field(rd, COLUMN_range_kind, rfl_range_kind_names[r->kind]) &&
	       is_field(rd, COLUMN_range, r->name) && is_field(rd, COLUMN_block, r->block) &&
	       is_field(rd, COLUMN_grid, r->grid);
}

static void add_range(struct reader *rd, uint64_t hash)
{
	struct open_range range = { .r.nmetrics = 0 };

	if (rd->nranges == RANGES_MOST)
		bad(rd, COLUMN_range, "a capture has 500,000 ranges at most");
	range.r.kind =
		(enum rfl_range_kind)take_choice(rd, COLUMN_range_kind, rfl_range_kind_names);
	range.r.name = take_name(rd, COLUMN_range);
	range.r.block = take_text(rd, COLUMN_block);
	range.r.grid = take_text(rd, COLUMN_grid);
	range.r.launches = take_count(rd, COLUMN_launches, 1);
	if (rd->rc != RFL_OK)
		return;
	if (rfl_grow(&rd->ranges, &rd->cap, rd->nranges + 1, RANGES_MOST, NULL) != RFL_OK ||
	    !rfl_places_put(&rd->range_places, hash, (uint32_t)rd->nranges + 1)) {
		no_memory(rd);
		return;
	}
	rd->last = rd->nranges;
	rd->ranges[rd->nranges++] = range;
}

/* The range that the row is of, mostly that of the row before; NULL after a failure. All rows of a
 * range have its launches, and none counts more of them. */
static struct open_range *find_range(struct reader *rd)
{
	static const int parts[] = { COLUMN_range_kind, COLUMN_range, COLUMN_block, COLUMN_grid };
	int64_t launches, counted;
	uint64_t hash = 0;
	uint32_t number = 0;

	if (rd->last >= rd->nranges || !is_range(rd, &rd->ranges[rd->last].r)) {
		for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++)
			hash = rfl_hash64(hash, field(rd, parts[i]),
					  strlen(field(rd, parts[i])) + 1);
		for (size_t at = 0; (number = rfl_places_next(&rd->range_places, hash, &at));)
			if (is_range(rd, &rd->ranges[number - 1].r))
				break;
		if (number == 0)
			add_range(rd, hash);
		else
			rd->last = number - 1;
	}
	if (rd->rc != RFL_OK)
		return NULL;
	launches = take_count(rd, COLUMN_launches, 1);
	counted = take_count(rd, COLUMN_counted_launches, 0);
	if (launches != rd->ranges[rd->last].r.launches)
		bad(rd, COLUMN_launches, "a row before has another number for this range");
	if (counted > launches)
		bad(rd, COLUMN_counted_launches, "is more than the launches of this range");
	return rd->rc == RFL_OK ? &rd->ranges[rd->last] : NULL;
}

static void quantity_row(struct reader *rd)
{
	const enum rfl_quantity q = rfl_quantity_find(field(rd, COLUMN_metric));
	const bool is_total = is_field(rd, COLUMN_range_kind, "total");
	struct open_range *range;
	struct rfl_amount a = { 0 };
	bool *has;

	if (q == RFL_QUANTITY_COUNT)
		bad_word(rd, COLUMN_metric);
	if (rd->rc != RFL_OK)
		return;
	range = is_total ? NULL : find_range(rd);
	a.value = take_value(rd, &a.validity);
	a.launches = take_count(rd, COLUMN_counted_launches, 0);
	a.rule = take_text(rd, COLUMN_rule);
	a.reason = take_text(rd, COLUMN_reason);
	if (a.value < 0)
		bad(rd, COLUMN_value, "a quantity is not below 0");
	if (rd->rc != RFL_OK)
		return;
	has = range ? &range->has_amount[q] : &rd->has_total[q];
	if (*has)
		bad(rd, COLUMN_metric, "this range has it already");
	*has = true;
	*(range ? &range->r.amount[q] : &rd->b->capture.total[q]) = a;
}

/* Add a metric to the range at hand, once. Both of its texts are interned. */
static void add_metric(struct reader *rd, struct open_range *range, const struct rfl_metric *m)
{
	const uint64_t hash = rfl_hash64(rfl_hash64(rd->last, m->name, strlen(m->name) + 1),
					 m->unit, strlen(m->unit));
	uint32_t number;

	for (size_t at = 0; (number = rfl_places_next(&rd->seen_places, hash, &at));) {
		const struct seen *seen = &rd->seen[number - 1];
		const struct rfl_metric *have = &rd->ranges[seen->range].metrics[seen->metric];

		if (seen->range == rd->last && have->name == m->name && have->unit == m->unit) {
			bad(rd, COLUMN_metric, "this range has it already");
			return;
		}
	}
	if (rfl_grow(&rd->seen, &rd->seen_cap, rd->nseen + 1, UINT32_MAX, NULL) != RFL_OK ||
	    rfl_grow(&range->metrics, &range->cap, range->r.nmetrics + 1, UINT32_MAX, NULL) !=
		    RFL_OK ||
	    !rfl_places_put(&rd->seen_places, hash, (uint32_t)rd->nseen + 1)) {
		no_memory(rd);
		return;
	}
	rd->seen[rd->nseen++] =
		(struct seen){ .range = (uint32_t)rd->last, .metric = (uint32_t)range->r.nmetrics };
	range->metrics[range->r.nmetrics++] = *m;
}

static void metric_row(struct reader *rd)
{
	struct open_range *range = find_range(rd);
	struct rfl_metric m = { 0 };
	int64_t pass;

	m.name = take_name(rd, COLUMN_metric);
	if (m.name[0] == '\0')
		bad(rd, COLUMN_metric, "a metric has no name");
	m.unit = take_name(rd, COLUMN_unit);
	m.rollup = (enum rfl_rollup)take_choice(rd, COLUMN_rollup, rfl_rollup_names);
	m.value = take_value(rd, &m.validity);
	m.launches = take_count(rd, COLUMN_counted_launches, 0);
	pass = take_count(rd, COLUMN_pass, -1);
	m.reason = take_text(rd, COLUMN_reason);
	if (pass > INT_MAX)
		bad(rd, COLUMN_pass, "there are not so many passes");
	m.pass = (int)pass;
	if (range && rd->rc == RFL_OK)
		add_metric(rd, range, &m);
}

static void read_row(struct reader *rd)
{
	static void (*const read[])(struct reader *) = {
		[ROW_CAPTURE] = capture_row, [ROW_QUANTITY] = quantity_row,
		[ROW_METRIC] = metric_row,   [ROW_REFUSAL] = refusal_row,
		[ROW_NOTE] = note_row,
	};
	int64_t version = 0;
	int kind;

	rd->rc = rfl_csv_int(rd->csv, rd->column[COLUMN_schema_version], 0, &version, rd->err);
	if (version != RFL_COUNTERS_SCHEMA)
		bad(rd, COLUMN_schema_version, "this program reads version 1");
	kind = take_choice(rd, COLUMN_kind, row_names);
	if (kind != ROW_CAPTURE && !rd->b)
		bad(rd, COLUMN_kind, "a row of kind 'capture' is missing before this one");
	if (rd->rc == RFL_OK)
		read[kind](rd);
	if (rd->b && rd->b->no_memory)
		no_memory(rd);
}

/* All columns are needed: each distinguishes one row from another, or a number from a guess. */
static void find_columns(struct reader *rd)
{
	if (rfl_csv_find(rd->csv, columns[COLUMN_range_kind].name) < 0)
		rd->rc = rfl_fail(
			rd->err, RFL_EFORMAT, 0,
			"%s: is not a counters.csv: the header has no column 'range_kind'; "
			"'roofline counters import' reads the files of other profilers",
			rd->csv->path);
	for (size_t i = 0; i < COLUMNS && rd->rc == RFL_OK; i++)
		rd->rc = rfl_csv_need(rd->csv, columns[i].name, &rd->column[i], rd->err);
}

enum rfl_rc rfl_counters_load(const char *path, const char *text, size_t len,
			      struct rfl_captures *to, struct rfl_err *err)
{
	struct reader rd = { .to = to, .err = err };
	const size_t before = to->n;
	bool more = true;

	rd.rc = text ? rfl_csv_open_text(text, len, path, &rd.csv, err)
		     : rfl_csv_open(path, &rd.csv, err);
	if (rd.rc != RFL_OK)
		return rd.rc;
	find_columns(&rd);
	while (rd.rc == RFL_OK) {
		rd.rc = rfl_csv_next(rd.csv, &more, err);
		if (rd.rc != RFL_OK || !more)
			break;
		read_row(&rd);
	}
	end_capture(&rd);
	rfl_capture_builder_free(rd.b);
	free_ranges(&rd);
	rfl_csv_close(rd.csv);
	while (rd.rc != RFL_OK && to->n > before) /* on failure `to` is as it was */
		rfl_arena_free(to->arenas[--to->n]);
	return rd.rc;
}
