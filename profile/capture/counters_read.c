/*
 * counters_read.c - counters.csv back into captures.
 */
#include "profile/capture/counters_read.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* ---- captures ---- */

static void free_ranges(struct rfl_counters_reader *rd)
{
	for (size_t i = 0; i < rd->nranges; i++)
		free(rd->ranges[i].metrics);
	free(rd->ranges);
	free(rd->places.at);
	free(rd->seen);
	free(rd->metric_places.at);
	rd->ranges = NULL;
	rd->nranges = rd->cap = 0;
	rd->places = (struct rfl_places){ 0 };
	rd->seen = NULL;
	rd->nseen = rd->seen_cap = 0;
	rd->metric_places = (struct rfl_places){ 0 };
}

/* What a range does not say of a quantity its total does. */
static void fill_amounts(const struct rfl_capture *c, struct rfl_counters_range *range)
{
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (!range->has_amount[q])
			range->r.amount[q] = (struct rfl_amount){
				.value = NAN,
				.validity = RFL_VALID_UNAVAILABLE,
				.reason = isnan(c->total[q].value) ? c->total[q].reason : NULL,
			};
}

static enum rfl_rc move_ranges(struct rfl_counters_reader *rd)
{
	struct rfl_capture *c = &rd->b->capture;
	struct rfl_range *ranges = rfl_arena_array(rd->b->arena, rd->nranges, sizeof(*ranges));

	if (!ranges)
		return rfl_counters__no_memory(rd);
	for (size_t i = 0; i < rd->nranges; i++) {
		struct rfl_counters_range *from = &rd->ranges[i];
		struct rfl_metric *metrics =
			rfl_arena_array(rd->b->arena, from->nmetrics, sizeof(*metrics));

		if (!metrics)
			return rfl_counters__no_memory(rd);
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

/* Older files call a part of the launches by how well it is known. */
static void mark_bounds(struct rfl_capture *c)
{
	for (struct rfl_amount *a = c->total; a < c->total + RFL_QUANTITY_COUNT; a++)
		if (a->validity < RFL_VALID_PARTIAL && a->launches > 0 &&
		    a->launches < rfl_capture_launches_of_total(c))
			a->validity = RFL_VALID_PARTIAL;
}

/* Hand out the capture at hand, if there is one. */
static enum rfl_rc end_capture(struct rfl_counters_reader *rd)
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
	mark_bounds(&rd->b->capture);
	if (rc == RFL_OK)
		rc = rfl_capture__hand_over(rd->b, rd->to, rd->err);
	rfl_capture_builder_free(rd->b);
	rd->b = NULL;
	free_ranges(rd);
	return rc;
}

static enum rfl_rc begin_capture(struct rfl_counters_reader *rd)
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
		return rfl_counters__no_memory(rd);
	c = &rd->b->capture;
	memset(rd->has_total, 0, sizeof(rd->has_total));
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts) && rc == RFL_OK; i++)
		rc = rfl_counters__take_text(rd, texts[i].column,
					     (const char **)(void *)((char *)c + texts[i].offset));
	if (rc == RFL_OK)
		rc = rfl_counters__take_name(rd, COLUMN_label, &c->label);
	if (rc == RFL_OK)
		rc = rfl_counters__take_name(rd, COLUMN_source, &c->source);
	if (rc == RFL_OK)
		rc = rfl_counters__take_int(rd, COLUMN_steps, -1, &c->steps);
	if (rc == RFL_OK)
		rc = rfl_counters__take_int(rd, COLUMN_passes, -1, &c->passes);
	return rc;
}

/* ---- rows ---- */

static enum rfl_rc capture_row(struct rfl_counters_reader *rd)
{
	int kind = 0;
	enum rfl_rc rc = begin_capture(rd);

	if (rc == RFL_OK)
		rc = rfl_counters__take_choice(rd, COLUMN_range, rfl_range_kind_names, &kind);
	if (rc == RFL_OK)
		rc = rfl_counters__take_int(rd, COLUMN_value, 0, &rd->b->capture.rows_left_out);
	if (rc == RFL_OK)
		rd->b->capture.total_kind = (enum rfl_range_kind)kind;
	return rc;
}

static enum rfl_rc note_row(struct rfl_counters_reader *rd)
{
	if (strcmp(rfl_counters__text(rd, COLUMN_metric), "unused_metrics") == 0)
		return rfl_counters__take_int(rd, COLUMN_value, 0, &rd->b->capture.unused_metrics);
	if (rfl_counters__text(rd, COLUMN_reason)[0] == '\0')
		return rfl_counters__bad(rd, COLUMN_reason, "a note has no text");
	rfl_capture__note(rd->b, rfl_counters__text(rd, COLUMN_reason));
	return rd->b->no_memory ? rfl_counters__no_memory(rd) : RFL_OK;
}

static enum rfl_rc refusal_row(struct rfl_counters_reader *rd)
{
	if (rfl_counters__text(rd, COLUMN_metric)[0] == '\0')
		return rfl_counters__bad(rd, COLUMN_metric, "a refusal names no set");
	if (rfl_counters__text(rd, COLUMN_reason)[0] == '\0')
		return rfl_counters__bad(rd, COLUMN_reason, "a refusal has no reason");
	rfl_capture_refuse(rd->b, rfl_counters__text(rd, COLUMN_metric),
			   rfl_counters__text(rd, COLUMN_reason));
	return rd->b->no_memory ? rfl_counters__no_memory(rd) : RFL_OK;
}

static bool is_field(const struct rfl_counters_reader *rd, int column, const char *text)
{
	return strcmp(rfl_counters__text(rd, column), text ? text : "") == 0;
}

static bool is_range(const struct rfl_counters_reader *rd, const struct rfl_range *r)
{
	return is_field(rd, COLUMN_range_kind, rfl_range_kind_names[r->kind]) &&
	       is_field(rd, COLUMN_range, r->name) && is_field(rd, COLUMN_block, r->block) &&
	       is_field(rd, COLUMN_grid, r->grid);
}

static uint64_t range_hash(const struct rfl_counters_reader *rd)
{
	static const int columns[] = { COLUMN_range_kind, COLUMN_range, COLUMN_block, COLUMN_grid };
	uint64_t hash = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(columns); i++) {
		const char *text = rfl_counters__text(rd, columns[i]);

		hash = rfl_hash64(hash, text, strlen(text) + 1);
	}
	return hash;
}

static enum rfl_rc add_range(struct rfl_counters_reader *rd, uint64_t hash)
{
	struct rfl_counters_range *range;
	int kind = 0;
	enum rfl_rc rc;

	if (rfl_places_are_full(&rd->places)) {
		if (!rfl_places_grow(&rd->places))
			return rfl_counters__no_memory(rd);
		for (size_t i = 0; i < rd->nranges; i++)
			rfl_places_put(&rd->places, rd->ranges[i].hash, (uint32_t)i + 1);
	}
	if (rd->nranges == RFL_COUNTERS_RANGES_MOST)
		return rfl_counters__bad(rd, COLUMN_range, "a capture has 500,000 ranges at most");
	if (!rfl_capture__room(&rd->ranges, rd->nranges, &rd->cap, sizeof(*rd->ranges)))
		return rfl_counters__no_memory(rd);
	range = &rd->ranges[rd->nranges];
	*range = (struct rfl_counters_range){ .hash = hash };
	rc = rfl_counters__take_choice(rd, COLUMN_range_kind, rfl_range_kind_names, &kind);
	range->r.kind = (enum rfl_range_kind)kind;
	if (rc == RFL_OK)
		rc = rfl_counters__take_name(rd, COLUMN_range, &range->r.name);
	if (rc == RFL_OK)
		rc = rfl_counters__take_text(rd, COLUMN_block, &range->r.block);
	if (rc == RFL_OK)
		rc = rfl_counters__take_text(rd, COLUMN_grid, &range->r.grid);
	if (rc == RFL_OK)
		rc = rfl_counters__take_int(rd, COLUMN_launches, 1, &range->r.launches);
	if (rc != RFL_OK)
		return rc;
	rd->last = rd->nranges++;
	rfl_places_put(&rd->places, hash, (uint32_t)rd->nranges);
	return RFL_OK;
}

/* All rows of a range tell its launches, and none counts more of them. */
static enum rfl_rc check_launches(const struct rfl_counters_reader *rd, const struct rfl_range *r)
{
	int64_t launches = 0, counted = 0;
	enum rfl_rc rc = rfl_counters__take_int(rd, COLUMN_launches, 1, &launches);

	if (rc == RFL_OK)
		rc = rfl_counters__take_int(rd, COLUMN_counted_launches, 0, &counted);
	if (rc == RFL_OK && launches != r->launches)
		return rfl_counters__bad(rd, COLUMN_launches,
					 "a row before has another number for this range");
	if (rc == RFL_OK && counted > launches)
		return rfl_counters__bad(rd, COLUMN_counted_launches,
					 "is more than the launches of this range");
	return rc;
}

/* The range that the row is of: mostly that of the row before. */
static enum rfl_rc find_range(struct rfl_counters_reader *rd, struct rfl_counters_range **ret)
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
	if (rc == RFL_OK)
		rc = check_launches(rd, &rd->ranges[rd->last].r);
	*ret = rc == RFL_OK ? &rd->ranges[rd->last] : NULL;
	return rc;
}

static enum rfl_rc quantity_row(struct rfl_counters_reader *rd)
{
	bool is_total = is_field(rd, COLUMN_range_kind, "total");
	enum rfl_quantity q = rfl_quantity_find(rfl_counters__text(rd, COLUMN_metric));
	struct rfl_counters_range *range = NULL;
	struct rfl_amount a = { 0 };
	bool *has;
	enum rfl_rc rc = RFL_OK;

	if (q == RFL_QUANTITY_COUNT)
		return rfl_counters__unknown(rd, COLUMN_metric);
	if (!is_total)
		rc = find_range(rd, &range);
	if (rc == RFL_OK)
		rc = rfl_counters__take_value(rd, &a.value, &a.validity);
	if (rc == RFL_OK)
		rc = rfl_counters__take_int(rd, COLUMN_counted_launches, 0, &a.launches);
	if (rc == RFL_OK)
		rc = rfl_counters__take_text(rd, COLUMN_rule, &a.rule);
	if (rc == RFL_OK)
		rc = rfl_counters__take_text(rd, COLUMN_reason, &a.reason);
	if (rc != RFL_OK)
		return rc;
	if (a.value < 0)
		return rfl_counters__bad(rd, COLUMN_value, "a quantity is not below 0");
	has = is_total ? &rd->has_total[q] : &range->has_amount[q];
	if (*has)
		return rfl_counters__bad(rd, COLUMN_metric, "this range has it already");
	*has = true;
	if (is_total)
		rd->b->capture.total[q] = a;
	else
		range->r.amount[q] = a;
	return RFL_OK;
}

/* ---- metrics ---- */

static uint64_t metric_hash(size_t range, const struct rfl_metric *m)
{
	uint64_t hash = rfl_hash64(range, m->name, strlen(m->name) + 1);

	return rfl_hash64(hash, m->unit, strlen(m->unit));
}

/* Has the range at hand a metric of this name and unit? Both texts are kept once. */
static bool has_metric(const struct rfl_counters_reader *rd, const struct rfl_metric *m,
		       uint64_t hash)
{
	const struct rfl_places *p = &rd->metric_places;

	for (size_t at = p->size ? rfl_places_first(p, hash) : 0; p->size && p->at[at] != 0;
	     at = (at + 1) & (p->size - 1)) {
		const struct rfl_counters_seen *seen = &rd->seen[p->at[at] - 1];
		const struct rfl_metric *have = &rd->ranges[seen->range].metrics[seen->metric];

		if (seen->hash == hash && seen->range == rd->last && have->name == m->name &&
		    have->unit == m->unit)
			return true;
	}
	return false;
}

/* Add a metric to the range at hand, once. */
static enum rfl_rc add_metric(struct rfl_counters_reader *rd, struct rfl_counters_range *range,
			      const struct rfl_metric *m)
{
	uint64_t hash = metric_hash(rd->last, m);

	if (has_metric(rd, m, hash))
		return rfl_counters__bad(rd, COLUMN_metric, "this range has it already");
	if (rfl_places_are_full(&rd->metric_places)) {
		if (!rfl_places_grow(&rd->metric_places))
			return rfl_counters__no_memory(rd);
		for (size_t i = 0; i < rd->nseen; i++)
			rfl_places_put(&rd->metric_places, rd->seen[i].hash, (uint32_t)i + 1);
	}
	if (!rfl_capture__room(&rd->seen, rd->nseen, &rd->seen_cap, sizeof(*rd->seen)) ||
	    !rfl_capture__room(&range->metrics, range->nmetrics, &range->cap,
			       sizeof(*range->metrics)))
		return rfl_counters__no_memory(rd);
	rd->seen[rd->nseen++] = (struct rfl_counters_seen){
		.hash = hash,
		.range = rd->last,
		.metric = range->nmetrics,
	};
	rfl_places_put(&rd->metric_places, hash, (uint32_t)rd->nseen);
	range->metrics[range->nmetrics++] = *m;
	return RFL_OK;
}

static enum rfl_rc metric_row(struct rfl_counters_reader *rd)
{
	struct rfl_counters_range *range = NULL;
	struct rfl_metric m = { 0 };
	int rollup = 0;
	int64_t pass = -1;
	enum rfl_rc rc = find_range(rd, &range);

	if (rc == RFL_OK)
		rc = rfl_counters__take_name(rd, COLUMN_metric, &m.name);
	if (rc == RFL_OK && m.name[0] == '\0')
		return rfl_counters__bad(rd, COLUMN_metric, "a metric has no name");
	if (rc == RFL_OK)
		rc = rfl_counters__take_name(rd, COLUMN_unit, &m.unit);
	if (rc == RFL_OK)
		rc = rfl_counters__take_choice(rd, COLUMN_rollup, rfl_rollup_names, &rollup);
	if (rc == RFL_OK)
		rc = rfl_counters__take_value(rd, &m.value, &m.validity);
	if (rc == RFL_OK)
		rc = rfl_counters__take_int(rd, COLUMN_counted_launches, 0, &m.launches);
	if (rc == RFL_OK)
		rc = rfl_counters__take_int(rd, COLUMN_pass, -1, &pass);
	if (rc == RFL_OK)
		rc = rfl_counters__take_text(rd, COLUMN_reason, &m.reason);
	if (rc != RFL_OK)
		return rc;
	if (pass > INT_MAX)
		return rfl_counters__bad(rd, COLUMN_pass, "there are not so many passes");
	m.rollup = (enum rfl_rollup)rollup;
	m.pass = (int)pass;
	return add_metric(rd, range, &m);
}

static enum rfl_rc read_row(struct rfl_counters_reader *rd)
{
	static enum rfl_rc (*const read[])(struct rfl_counters_reader *) = {
		[ROW_CAPTURE] = capture_row, [ROW_QUANTITY] = quantity_row,
		[ROW_METRIC] = metric_row,   [ROW_REFUSAL] = refusal_row,
		[ROW_NOTE] = note_row,
	};
	int64_t version = 0;
	int kind = 0;
	enum rfl_rc rc =
		rfl_csv_int(rd->csv, rd->column[COLUMN_schema_version], 0, &version, rd->err);

	if (rc == RFL_OK && version != RFL_COUNTERS_SCHEMA)
		return rfl_counters__bad(rd, COLUMN_schema_version, "this program reads version 1");
	if (rc == RFL_OK)
		rc = rfl_counters__take_choice(rd, COLUMN_kind, rfl_counters__rows, &kind);
	if (rc == RFL_OK && kind != ROW_CAPTURE && !rd->b)
		return rfl_counters__bad(rd, COLUMN_kind,
					 "a row of kind 'capture' is missing before this one");
	return rc ? rc : read[kind](rd);
}

/* ---- files ---- */

/* All columns are needed: each tells one row from another, or a number from a guess. */
static enum rfl_rc find_columns(struct rfl_counters_reader *rd)
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

static enum rfl_rc read_rows(struct rfl_counters_reader *rd)
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
	struct rfl_counters_reader rd = { .csv = csv, .to = to, .err = err };
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
