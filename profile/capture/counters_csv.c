/*
 * counters_csv.c - captures as rows of counters.csv. counters_read.c reads them.
 */
#include "profile/capture/counters_csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/num.h"
#include "profile/capture/counters_impl.h"

struct column {
	const char *name, *meaning;
};
#define COLUMN(kind, n, m) { .name = #n, .meaning = m },
static const struct column columns[] = { RFL_COUNTER_COLUMNS(COLUMN) };
#undef COLUMN

const char *const rfl_counters__rows[] = {
	"capture", "quantity", "metric", "refusal", "note", NULL
};

const char *rfl_counters_column(size_t i, const char **meaning)
{
	if (i >= COUNTER_COLUMNS)
		return NULL;
	if (meaning)
		*meaning = columns[i].meaning;
	return columns[i].name;
}

/* A row that is being made. What a capture says of all its rows stays. */
struct row {
	const char *field[COUNTER_COLUMNS];
	char number[COUNTER_COLUMNS][RFL_NUM_MAX];
};

static void put_text(struct row *row, int column, const char *text)
{
	row->field[column] = text ? text : "";
}

/* @param none  what stands for "not known" */
static void put_int(struct row *row, int column, int64_t value, int64_t none)
{
	row->number[column][0] = '\0';
	if (value != none)
		(void)snprintf(row->number[column], RFL_NUM_MAX, "%" PRId64, value);
	row->field[column] = row->number[column];
}

static void put_real(struct row *row, int column, double value)
{
	row->field[column] = rfl_num_exact(value, row->number[column]);
}

static void put_capture(struct row *row, const struct rfl_capture *c)
{
	for (size_t i = 0; i < COUNTER_COLUMNS; i++)
		row->field[i] = "";
	put_int(row, COLUMN_schema_version, RFL_COUNTERS_SCHEMA, 0);
	put_text(row, COLUMN_label, c->label);
	put_text(row, COLUMN_run_id, c->run_id);
	put_text(row, COLUMN_timestamp_utc, c->time_utc);
	put_text(row, COLUMN_source, c->source);
	put_text(row, COLUMN_file, c->path);
	put_text(row, COLUMN_device, c->device);
	put_text(row, COLUMN_chip, c->chip);
	put_text(row, COLUMN_family, c->family);
	put_int(row, COLUMN_steps, c->steps, -1);
	put_int(row, COLUMN_passes, c->passes, -1);
}

/* The columns behind those of the capture are empty again. */
static void begin(struct row *row, enum rfl_counters_row kind)
{
	for (size_t i = COLUMN_range_kind; i < COUNTER_COLUMNS; i++)
		row->field[i] = "";
	put_text(row, COLUMN_kind, rfl_counters__rows[kind]);
}

static void end(const struct row *row, struct rfl_buf *out)
{
	rfl_csv_write_row(out, row->field, COUNTER_COLUMNS);
}

/* ---- rows ---- */

static void write_first(struct row *row, const struct rfl_capture *c, struct rfl_buf *out)
{
	begin(row, ROW_CAPTURE);
	put_text(row, COLUMN_range_kind, "total");
	put_text(row, COLUMN_range, rfl_range_kind_names[c->total_kind]);
	put_text(row, COLUMN_metric, "rows_left_out");
	put_real(row, COLUMN_value, (double)c->rows_left_out);
	end(row, out);
}

static void write_note(struct row *row, const char *text, struct rfl_buf *out)
{
	begin(row, ROW_NOTE);
	put_text(row, COLUMN_reason, text);
	end(row, out);
}

static void write_refusal(struct row *row, const struct rfl_refusal *refusal, struct rfl_buf *out)
{
	begin(row, ROW_REFUSAL);
	put_text(row, COLUMN_metric, refusal->set);
	put_text(row, COLUMN_validity, rfl_validity_names[RFL_VALID_UNAVAILABLE]);
	put_text(row, COLUMN_reason, refusal->reason);
	end(row, out);
}

static void write_notes(struct row *row, const struct rfl_capture *c, struct rfl_buf *out)
{
	if (c->unused_metrics > 0) {
		begin(row, ROW_NOTE);
		put_text(row, COLUMN_metric, "unused_metrics");
		put_real(row, COLUMN_value, (double)c->unused_metrics);
		end(row, out);
	}
	for (size_t i = 0; i < c->nnotes; i++)
		write_note(row, c->notes[i], out);
}

/* Which range a row is of: NULL for the total. */
static void put_range(struct row *row, const struct rfl_capture *c, const struct rfl_range *r)
{
	if (!r) {
		put_text(row, COLUMN_range_kind, "total");
		put_text(row, COLUMN_range, rfl_range_kind_names[c->total_kind]);
		return;
	}
	put_text(row, COLUMN_range_kind, rfl_range_kind_names[r->kind]);
	put_text(row, COLUMN_range, r->name);
	put_text(row, COLUMN_block, r->block);
	put_text(row, COLUMN_grid, r->grid);
	put_int(row, COLUMN_launches, r->launches, -1);
}

static void write_amount(struct row *row, const struct rfl_capture *c, const struct rfl_range *r,
			 enum rfl_quantity q, struct rfl_buf *out)
{
	const struct rfl_quantity_info *info = rfl_quantity_info(q);
	const struct rfl_amount *a = r ? &r->amount[q] : &c->total[q];

	begin(row, ROW_QUANTITY);
	put_range(row, c, r);
	put_text(row, COLUMN_metric, info->name);
	put_text(row, COLUMN_unit, info->unit);
	put_real(row, COLUMN_value, a->value);
	put_int(row, COLUMN_counted_launches, a->launches, -1);
	put_text(row, COLUMN_validity, rfl_validity_names[a->validity]);
	put_text(row, COLUMN_rule, a->rule);
	put_text(row, COLUMN_reason, a->reason);
	end(row, out);
}

static void write_metric(struct row *row, const struct rfl_capture *c, const struct rfl_range *r,
			 const struct rfl_metric *m, struct rfl_buf *out)
{
	begin(row, ROW_METRIC);
	put_range(row, c, r);
	put_text(row, COLUMN_metric, m->name);
	put_text(row, COLUMN_unit, m->unit);
	put_text(row, COLUMN_rollup, rfl_rollup_names[m->rollup]);
	put_real(row, COLUMN_value, m->value);
	put_int(row, COLUMN_counted_launches, m->launches, -1);
	put_int(row, COLUMN_pass, m->pass, -1);
	put_text(row, COLUMN_validity, rfl_validity_names[m->validity]);
	put_text(row, COLUMN_reason, m->reason);
	end(row, out);
}

/* A reader takes the total's reason where a range has no row. */
static bool is_as_total(const struct rfl_capture *c, const struct rfl_amount *a,
			enum rfl_quantity q)
{
	const struct rfl_amount *total = &c->total[q];

	return isnan(a->value) && isnan(total->value) && a->launches == 0 && !a->rule &&
	       a->validity == RFL_VALID_UNAVAILABLE && a->reason && total->reason &&
	       strcmp(a->reason, total->reason) == 0;
}

static void write_range(struct row *row, const struct rfl_capture *c, const struct rfl_range *r,
			struct rfl_buf *out)
{
	size_t before = out->len;

	for (size_t i = 0; i < r->nmetrics; i++)
		write_metric(row, c, r, &r->metrics[i], out);
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (!is_as_total(c, &r->amount[q], (enum rfl_quantity)q))
			write_amount(row, c, r, (enum rfl_quantity)q, out);
	if (out->len == before) /* so that the range is there */
		write_amount(row, c, r, RFL_QUANTITY_TIME, out);
}

static void write_capture(const struct rfl_capture *c, struct rfl_buf *out)
{
	struct row row;

	put_capture(&row, c);
	write_first(&row, c, out);
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		write_amount(&row, c, NULL, (enum rfl_quantity)q, out);
	for (size_t i = 0; i < c->nranges; i++)
		write_range(&row, c, &c->ranges[i], out);
	for (size_t i = 0; i < c->nrefusals; i++)
		write_refusal(&row, &c->refusals[i], out);
	write_notes(&row, c, out);
}

static void header_of(const char *header[COUNTER_COLUMNS])
{
	for (size_t i = 0; i < COUNTER_COLUMNS; i++)
		header[i] = columns[i].name;
}

void rfl_counters_write(struct rfl_buf *out, const struct rfl_captures *captures, bool header)
{
	const char *names[COUNTER_COLUMNS];

	header_of(names);
	if (header)
		rfl_csv_write_row(out, names, COUNTER_COLUMNS);
	for (size_t i = 0; i < captures->n; i++)
		write_capture(captures->captures[i], out);
}

enum rfl_rc rfl_counters_check(const char *path, struct rfl_err *err)
{
	const char *header[COUNTER_COLUMNS];

	if (rfl_file_size(path) == 0)
		return RFL_OK;
	header_of(header);
	return rfl_csv_check_header(path, header, COUNTER_COLUMNS, err);
}

enum rfl_rc rfl_counters_append(const char *path, const struct rfl_captures *captures,
				struct rfl_err *err)
{
	const char *header[COUNTER_COLUMNS];
	struct rfl_buf rows;
	enum rfl_rc rc;

	header_of(header);
	rfl_buf_init(&rows, (size_t)1 << 30);
	rfl_counters_write(&rows, captures, false);
	rc = rfl_buf_check(&rows, path, err);
	if (rc == RFL_OK)
		rc = rfl_csv_append_rows(path, header, COUNTER_COLUMNS, &rows, err);
	rfl_buf_fini(&rows);
	return rc;
}
