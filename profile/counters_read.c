/*
 * counters_read.c - counters.csv back into captures.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "profile/capture_impl.h"
#include "profile/counters_impl.h"

/* A range while its rows are read: its metrics lie in an array that grows. */
struct range {
	struct rfl_range r;
	struct rfl_metric *metrics;
	size_t nmetrics, cap;
	bool has_amount[RFL_QUANTITY_COUNT];
	uint64_t hash;
};

struct reader {
	struct rfl_csv *csv;
	int column[COUNTER_COLUMNS];
	struct rfl_captures *to;
	struct rfl_err *err;

	/* the capture at hand; a builder keeps its texts and its notes */
	struct rfl_capture_builder *b;
	bool has_total[RFL_QUANTITY_COUNT];
	struct range *ranges;
	size_t nranges, cap;
	struct rfl_places places;
	size_t last; /* range, most rows are of the one before */
};

static enum rfl_rc no_memory(const struct reader *rd)
{
	return rfl_fail(rd->err, RFL_ENOMEM, 0, "%s: out of memory", rfl_csv_path(rd->csv));
}

static const char *text_at(const struct reader *rd, int column)
{
	return rfl_csv_text(rd->csv, rd->column[column]);
}

static enum rfl_rc bad(const struct reader *rd, int column, const char *what)
{
	return rfl_fail(rd->err, RFL_EFORMAT, 0, "%s:%zu: column '%s': %s", rfl_csv_path(rd->csv),
			rfl_csv_line(rd->csv), rfl_counters_column((size_t)column, NULL), what);
}

static enum rfl_rc unknown(const struct reader *rd, int column)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%s", text_at(rd, column));
	rfl_text_one_line(text);
	return rfl_fail(rd->err, RFL_EFORMAT, 0, "%s:%zu: column '%s': '%s' is not known",
			rfl_csv_path(rd->csv), rfl_csv_line(rd->csv),
			rfl_counters_column((size_t)column, NULL), text);
}

/* A text of the row, for the life of the capture; NULL where it is empty. */
static enum rfl_rc take_text(const struct reader *rd, int column, const char **ret)
{
	const char *text = text_at(rd, column);

	if (!rfl_capture__keep(rd->b, ret, text[0] ? text : NULL))
		return no_memory(rd);
	return RFL_OK;
}

/* The same, "" where it is empty. */
static enum rfl_rc take_name(const struct reader *rd, int column, const char **ret)
{
	return rfl_capture__keep(rd->b, ret, text_at(rd, column)) ? RFL_OK : no_memory(rd);
}

static enum rfl_rc take_int(const struct reader *rd, int column, int64_t none, int64_t *ret)
{
	enum rfl_rc rc = rfl_csv_int(rd->csv, rd->column[column], none, ret, rd->err);

	if (rc == RFL_OK && *ret < none && *ret < 0)
		return bad(rd, column, "a count is not below 0");
	return rc;
}

/* The index of the row's word among `names`. */
static enum rfl_rc take_choice(const struct reader *rd, int column, const char *const *names,
			       int *ret)
{
	const char *text = text_at(rd, column);

	for (int i = 0; names[i]; i++) {
		if (strcmp(names[i], text) != 0)
			continue;
		*ret = i;
		return RFL_OK;
	}
	return unknown(rd, column);
}

/* The value, and whether it agrees with the validity. */
static enum rfl_rc take_value(const struct reader *rd, double *value, enum rfl_validity *validity)
{
	int choice = 0;
	enum rfl_rc rc = rfl_csv_double(rd->csv, rd->column[COLUMN_value], value, rd->err);

	if (rc == RFL_OK)
		rc = take_choice(rd, COLUMN_validity, rfl_validity_names, &choice);
	if (rc != RFL_OK)
		return rc;
	*validity = (enum rfl_validity)choice;
	if (isnan(*value) && *validity != RFL_VALID_UNAVAILABLE)
		return bad(rd, COLUMN_value, "is empty, and 'validity' does not say unavailable");
	if (!isnan(*value) && *validity == RFL_VALID_UNAVAILABLE)
		return bad(rd, COLUMN_value, "is there, and 'validity' says unavailable");
	return RFL_OK;
}

/* ---- captures ---- */

static void free_ranges(struct reader *rd)
{
	for (size_t i = 0; i < rd->nranges; i++)
		free(rd->ranges[i].metrics);
	free(rd->ranges);
	free(rd->places.at);
	rd->ranges = NULL;
	rd->nranges = rd->cap = 0;
	rd->places = (struct rfl_places){ 0 };
}

/* What a range does not say of a quantity its total does. */
static void fill_amounts(const struct rfl_capture *c, struct range *range)
{
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (!range->has_amount[q])
			range->r.amount[q] = (struct rfl_amount){
				.value = NAN,
				.validity = RFL_VALID_UNAVAILABLE,
				.reason = isnan(c->total[q].value) ? c->total[q].reason : NULL,
			};
}

static enum rfl_rc move_ranges(struct reader *rd)
{
	struct rfl_capture *c = &rd->b->capture;
	struct rfl_range *ranges = rfl_arena_array(rd->b->arena, rd->nranges, sizeof(*ranges));

	if (!ranges)
		return no_memory(rd);
	for (size_t i = 0; i < rd->nranges; i++) {
		struct range *from = &rd->ranges[i];
		struct rfl_metric *metrics =
			rfl_arena_array(rd->b->arena, from->nmetrics, sizeof(*metrics));

		if (!metrics)
			return no_memory(rd);
		if (from->nmetrics > 0)
			memcpy(metrics, from->metrics, from->nmetrics * sizeof(*metrics));
		fill_amounts(c, from);
		ranges[i] = from->r;
		ranges[i].metrics = metrics;
		ranges[i].nmetrics = from->nmetrics;
	}
	c->ranges = ranges;
	c->nranges = rd->nranges;
	return RFL_OK;
}

/* Hand out the capture at hand, if there is one. */
static enum rfl_rc end_capture(struct reader *rd)
{
	enum rfl_rc rc;

	if (!rd->b)
		return RFL_OK;
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (!rd->has_total[q])
			rd->b->capture.total[q] = (struct rfl_amount){
				.value = NAN,
				.validity = RFL_VALID_UNAVAILABLE,
				.reason = "the file has no total of it",
			};
	rc = move_ranges(rd);
	if (rc == RFL_OK)
		rc = rfl_capture__hand_over(rd->b, rd->to, rd->err);
	rfl_capture_builder_free(rd->b);
	rd->b = NULL;
	free_ranges(rd);
	return rc;
}

static enum rfl_rc begin_capture(struct reader *rd)
{
	static const struct {
		int column;
		size_t offset;
	} texts[] = {
		{ COLUMN_run_id, offsetof(struct rfl_capture, run_id) },
		{ COLUMN_timestamp_utc, offsetof(struct rfl_capture, time_utc) },
		{ COLUMN_file, offsetof(struct rfl_capture, path) },
		{ COLUMN_device, offsetof(struct rfl_capture, device) },
		{ COLUMN_chip, offsetof(struct rfl_capture, chip) },
		{ COLUMN_family, offsetof(struct rfl_capture, family) },
	};
	struct rfl_capture *c;
	enum rfl_rc rc = end_capture(rd);

	if (rc != RFL_OK)
		return rc;
	rd->b = rfl_capture__empty_builder();
	if (!rd->b)
		return no_memory(rd);
	c = &rd->b->capture;
	memset(rd->has_total, 0, sizeof(rd->has_total));
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts) && rc == RFL_OK; i++)
		rc = take_text(rd, texts[i].column,
			       (const char **)(void *)((char *)c + texts[i].offset));
	if (rc == RFL_OK)
		rc = take_name(rd, COLUMN_label, &c->label);
	if (rc == RFL_OK)
		rc = take_name(rd, COLUMN_source, &c->source);
	if (rc == RFL_OK)
		rc = take_int(rd, COLUMN_steps, -1, &c->steps);
	if (rc == RFL_OK)
		rc = take_int(rd, COLUMN_passes, -1, &c->passes);
	return rc;
}

/* ---- rows ---- */

/* A whole number in the column `value`. */
static enum rfl_rc take_whole(const struct reader *rd, int64_t *ret)
{
	enum rfl_rc rc = rfl_csv_int(rd->csv, rd->column[COLUMN_value], 0, ret, rd->err);

	return rc == RFL_OK && *ret < 0 ? bad(rd, COLUMN_value, "a count is not below 0") : rc;
}

static enum rfl_rc capture_row(struct reader *rd)
{
	int kind = 0;
	enum rfl_rc rc = begin_capture(rd);

	if (rc == RFL_OK)
		rc = take_choice(rd, COLUMN_range, rfl_range_kind_names, &kind);
	if (rc == RFL_OK)
		rc = take_whole(rd, &rd->b->capture.rows_left_out);
	if (rc == RFL_OK)
		rd->b->capture.total_kind = (enum rfl_range_kind)kind;
	return rc;
}

static enum rfl_rc note_row(struct reader *rd)
{
	if (strcmp(text_at(rd, COLUMN_metric), "unused_metrics") == 0)
		return take_whole(rd, &rd->b->capture.unused_metrics);
	if (text_at(rd, COLUMN_reason)[0] == '\0')
		return bad(rd, COLUMN_reason, "a note has no text");
	rfl_capture__note(rd->b, text_at(rd, COLUMN_reason));
	return rd->b->no_memory ? no_memory(rd) : RFL_OK;
}

static enum rfl_rc refusal_row(struct reader *rd)
{
	if (text_at(rd, COLUMN_metric)[0] == '\0')
		return bad(rd, COLUMN_metric, "a refusal names no set");
	if (text_at(rd, COLUMN_reason)[0] == '\0')
		return bad(rd, COLUMN_reason, "a refusal has no reason");
	rfl_capture_refuse(rd->b, text_at(rd, COLUMN_metric), text_at(rd, COLUMN_reason));
	return rd->b->no_memory ? no_memory(rd) : RFL_OK;
}

static bool is_field(const struct reader *rd, int column, const char *text)
{
	return strcmp(text_at(rd, column), text ? text : "") == 0;
}

static bool is_range(const struct reader *rd, const struct rfl_range *r)
{
	return is_field(rd, COLUMN_range_kind, rfl_range_kind_names[r->kind]) &&
	       is_field(rd, COLUMN_range, r->name) && is_field(rd, COLUMN_block, r->block) &&
	       is_field(rd, COLUMN_grid, r->grid);
}

static uint64_t range_hash(const struct reader *rd)
{
	static const int columns[] = { COLUMN_range_kind, COLUMN_range, COLUMN_block, COLUMN_grid };
	uint64_t hash = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(columns); i++) {
		const char *text = text_at(rd, columns[i]);

		hash = rfl_hash64(hash, text, strlen(text) + 1);
	}
	return hash;
}

static enum rfl_rc add_range(struct reader *rd, uint64_t hash)
{
	struct range *range;
	int kind = 0;
	enum rfl_rc rc;

	if (rfl_places_are_full(&rd->places)) {
		if (!rfl_places_grow(&rd->places))
			return no_memory(rd);
		for (size_t i = 0; i < rd->nranges; i++)
			rfl_places_put(&rd->places, rd->ranges[i].hash, (uint32_t)i + 1);
	}
	if (!rfl_capture__room(&rd->ranges, rd->nranges, &rd->cap, sizeof(*rd->ranges)))
		return no_memory(rd);
	range = &rd->ranges[rd->nranges];
	*range = (struct range){ .hash = hash };
	rc = take_choice(rd, COLUMN_range_kind, rfl_range_kind_names, &kind);
	range->r.kind = (enum rfl_range_kind)kind;
	if (rc == RFL_OK)
		rc = take_name(rd, COLUMN_range, &range->r.name);
	if (rc == RFL_OK)
		rc = take_text(rd, COLUMN_block, &range->r.block);
	if (rc == RFL_OK)
		rc = take_text(rd, COLUMN_grid, &range->r.grid);
	if (rc == RFL_OK)
		rc = take_int(rd, COLUMN_launches, 1, &range->r.launches);
	if (rc != RFL_OK)
		return rc;
	rd->last = rd->nranges++;
	rfl_places_put(&rd->places, hash, (uint32_t)rd->nranges);
	return RFL_OK;
}

/* The range that the row is of: mostly that of the row before. */
static enum rfl_rc find_range(struct reader *rd, struct range **ret)
{
	const struct rfl_places *p = &rd->places;
	uint64_t hash;
	enum rfl_rc rc = RFL_OK;

	if (rd->last >= rd->nranges || !is_range(rd, &rd->ranges[rd->last].r)) {
		bool found = false;

		hash = range_hash(rd);
		for (size_t at = p->size ? rfl_places_first(p, hash) : 0;
		     p->size && !found && p->at[at] != 0; at = (at + 1) & (p->size - 1)) {
			rd->last = p->at[at] - 1;
			found = rd->ranges[rd->last].hash == hash &&
				is_range(rd, &rd->ranges[rd->last].r);
		}
		if (!found)
			rc = add_range(rd, hash);
	}
	*ret = rc == RFL_OK ? &rd->ranges[rd->last] : NULL;
	return rc;
}

static enum rfl_rc quantity_row(struct reader *rd)
{
	bool is_total = is_field(rd, COLUMN_range_kind, "total");
	enum rfl_quantity q = rfl_quantity_find(text_at(rd, COLUMN_metric));
	struct range *range = NULL;
	struct rfl_amount a = { 0 };
	bool *has;
	enum rfl_rc rc = RFL_OK;

	if (q == RFL_QUANTITY_COUNT)
		return unknown(rd, COLUMN_metric);
	if (!is_total)
		rc = find_range(rd, &range);
	if (rc == RFL_OK)
		rc = take_value(rd, &a.value, &a.validity);
	if (rc == RFL_OK)
		rc = take_int(rd, COLUMN_counted_launches, 0, &a.launches);
	if (rc == RFL_OK)
		rc = take_text(rd, COLUMN_rule, &a.rule);
	if (rc == RFL_OK)
		rc = take_text(rd, COLUMN_reason, &a.reason);
	if (rc != RFL_OK)
		return rc;
	has = is_total ? &rd->has_total[q] : &range->has_amount[q];
	if (*has)
		return bad(rd, COLUMN_metric, "this range has it already");
	*has = true;
	if (is_total)
		rd->b->capture.total[q] = a;
	else
		range->r.amount[q] = a;
	return RFL_OK;
}

static enum rfl_rc metric_row(struct reader *rd)
{
	struct range *range = NULL;
	struct rfl_metric m = { 0 };
	int rollup = 0;
	int64_t pass = -1;
	enum rfl_rc rc = find_range(rd, &range);

	if (rc == RFL_OK)
		rc = take_name(rd, COLUMN_metric, &m.name);
	if (rc == RFL_OK && m.name[0] == '\0')
		return bad(rd, COLUMN_metric, "a metric has no name");
	if (rc == RFL_OK)
		rc = take_name(rd, COLUMN_unit, &m.unit);
	if (rc == RFL_OK)
		rc = take_choice(rd, COLUMN_rollup, rfl_rollup_names, &rollup);
	if (rc == RFL_OK)
		rc = take_value(rd, &m.value, &m.validity);
	if (rc == RFL_OK)
		rc = take_int(rd, COLUMN_counted_launches, 0, &m.launches);
	if (rc == RFL_OK)
		rc = take_int(rd, COLUMN_pass, -1, &pass);
	if (rc == RFL_OK)
		rc = take_text(rd, COLUMN_reason, &m.reason);
	if (rc == RFL_OK && !rfl_capture__room(&range->metrics, range->nmetrics, &range->cap,
					       sizeof(*range->metrics)))
		rc = no_memory(rd);
	if (rc != RFL_OK)
		return rc;
	m.rollup = (enum rfl_rollup)rollup;
	m.pass = (int)pass;
	range->metrics[range->nmetrics++] = m;
	return RFL_OK;
}

static enum rfl_rc read_row(struct reader *rd)
{
	static enum rfl_rc (*const read[])(struct reader *) = {
		[ROW_CAPTURE] = capture_row, [ROW_QUANTITY] = quantity_row,
		[ROW_METRIC] = metric_row,   [ROW_REFUSAL] = refusal_row,
		[ROW_NOTE] = note_row,
	};
	int64_t version = 0;
	int kind = 0;
	enum rfl_rc rc =
		rfl_csv_int(rd->csv, rd->column[COLUMN_schema_version], 0, &version, rd->err);

	if (rc == RFL_OK && version != RFL_COUNTERS_SCHEMA)
		return bad(rd, COLUMN_schema_version, "this program reads version 1");
	if (rc == RFL_OK)
		rc = take_choice(rd, COLUMN_kind, rfl_counters__rows, &kind);
	if (rc == RFL_OK && kind != ROW_CAPTURE && !rd->b)
		return bad(rd, COLUMN_kind, "a row of kind 'capture' is missing before this one");
	return rc ? rc : read[kind](rd);
}

/* ---- files ---- */

/* All columns are needed: each tells one row from another, or a number from a guess. */
static enum rfl_rc find_columns(struct reader *rd)
{
	enum rfl_rc rc = RFL_OK;

	if (rfl_csv_find(rd->csv, rfl_counters_column(COLUMN_range_kind, NULL)) < 0)
		return rfl_fail(rd->err, RFL_EFORMAT, 0,
				"%s: is no counters.csv: the header has no column 'range_kind'; "
				"'roofline counters import' reads the files of other profilers",
				rfl_csv_path(rd->csv));
	for (size_t i = 0; i < COUNTER_COLUMNS && rc == RFL_OK; i++)
		rc = rfl_csv_need(rd->csv, rfl_counters_column(i, NULL), &rd->column[i], rd->err);
	return rc;
}

static enum rfl_rc read_rows(struct reader *rd)
{
	bool more = true;
	enum rfl_rc rc = find_columns(rd);

	while (rc == RFL_OK) {
		rc = rfl_csv_next(rd->csv, &more, rd->err);
		if (rc != RFL_OK || !more)
			break;
		rc = read_row(rd);
	}
	return rc ? rc : end_capture(rd);
}

/* On failure `to` is as it was. */
static enum rfl_rc load(struct rfl_csv *csv, struct rfl_captures *to, struct rfl_err *err)
{
	struct reader rd = { .csv = csv, .to = to, .err = err };
	size_t before = to->n;
	enum rfl_rc rc = read_rows(&rd);

	rfl_capture_builder_free(rd.b);
	free_ranges(&rd);
	while (rc != RFL_OK && to->n > before)
		rfl_arena_free(to->arenas[--to->n]);
	return rc;
}

enum rfl_rc rfl_counters_load(const char *path, const char *text, size_t len,
			      struct rfl_captures *to, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	enum rfl_rc rc = text ? rfl_csv_open_text(text, len, path, &csv, err)
			      : rfl_csv_open(path, &csv, err);

	if (rc == RFL_OK)
		rc = load(csv, to, err);
	rfl_csv_close(csv);
	return rc;
}
