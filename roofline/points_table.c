/*
 * points_table.c - points for people and for programs.
 */
#include "roofline/points_table.h"

#include <stdbool.h>
#include <string.h>

#define COLUMN_TEXT(n)           { .key = #n, .title = #n, .kind = RFL_COLUMN_TEXT },
#define COLUMN_INT(n)            { .key = #n, .title = #n, .kind = RFL_COLUMN_INT },
#define COLUMN_REAL(n)           { .key = #n, .title = #n, .kind = RFL_COLUMN_REAL },
#define COLUMN(kind, n, meaning) COLUMN_##kind(n)

static const struct rfl_column all_columns[] = { RFL_POINT_COLUMNS(COLUMN) };

static void add_int(struct rfl_table *t, int64_t value)
{
	if (value == -1)
		rfl_table_null(t);
	else
		rfl_table_int(t, value);
}

#define CELL_TEXT(n)           rfl_table_text(t, p->n);
#define CELL_INT(n)            add_int(t, p->n);
#define CELL_REAL(n)           rfl_table_real(t, p->n);
#define CELL(kind, n, meaning) CELL_##kind(n)

static void add_all(struct rfl_table *t, const struct rfl_point *p)
{
	RFL_POINT_COLUMNS(CELL)
}

static const struct rfl_column short_columns[] = {
	{ .key = "env", .title = "Environment", .kind = RFL_COLUMN_TEXT },
	{ .key = "model", .title = "Model", .kind = RFL_COLUMN_TEXT },
	{ .key = "precision", .title = "Precision", .kind = RFL_COLUMN_TEXT },
	{ .key = "batch", .title = "Batch", .kind = RFL_COLUMN_INT },
	{ .key = "mode", .title = "Mode", .kind = RFL_COLUMN_TEXT },
	{ .key = "layout", .title = "Layout", .kind = RFL_COLUMN_TEXT },
	{ .key = "runs", .title = "Runs", .kind = RFL_COLUMN_INT },
	{ .key = "step_s", .title = "Step (ms)", .kind = RFL_COLUMN_REAL, .scale = 1e-3 },
	{ .key = "samples_per_s", .title = "Samples/s", .kind = RFL_COLUMN_REAL },
	{ .key = "ai", .title = "FLOP/byte", .kind = RFL_COLUMN_REAL, .digits = 3 },
	{ .key = "attained_gflops", .title = "GFLOP/s", .kind = RFL_COLUMN_REAL },
	{ .key = "attainable_gflops", .title = "Attainable", .kind = RFL_COLUMN_REAL },
	{ .key = "percent_of_attainable", .title = "%", .kind = RFL_COLUMN_REAL, .digits = 3 },
	{ .key = "bound", .title = "Bound", .kind = RFL_COLUMN_TEXT },
	{ .key = "headroom_s",
	  .title = "Headroom (ms)",
	  .kind = RFL_COLUMN_REAL,
	  .digits = 3,
	  .scale = 1e-3 },
};

/* Behind those, where there are counters: what was measured beside what is counted. */
static const struct rfl_column twin_columns[] = {
	{ .key = "ai_unfused", .title = "unfused", .kind = RFL_COLUMN_REAL, .digits = 3 },
	{ .key = "ai_counters", .title = "measured", .kind = RFL_COLUMN_REAL, .digits = 3 },
	{ .key = "flops_measured_over_counted",
	  .title = "FLOPs m/c",
	  .kind = RFL_COLUMN_REAL,
	  .digits = 3 },
	{ .key = "bytes_over_compulsory",
	  .title = "Bytes m/comp.",
	  .kind = RFL_COLUMN_REAL,
	  .digits = 3 },
};

#define NSHORT RFL_ARRAY_LEN(short_columns)
#define NTWIN  RFL_ARRAY_LEN(twin_columns)

static bool has_counters(const struct rfl_points *pts)
{
	for (size_t i = 0; i < pts->n; i++)
		if (pts->points[i].counters_source)
			return true;
	return false;
}

static struct rfl_table *short_table(bool twin)
{
	struct rfl_column columns[NSHORT + NTWIN];

	memcpy(columns, short_columns, sizeof(short_columns));
	memcpy(columns + NSHORT, twin_columns, sizeof(twin_columns));
	return rfl_table_new(columns, twin ? NSHORT + NTWIN : NSHORT);
}

static void add_twin(struct rfl_table *t, const struct rfl_point *p)
{
	rfl_table_real(t, p->ai_unfused);
	rfl_table_real(t, p->ai_counters);
	rfl_table_real(t, p->flops_measured_over_counted);
	rfl_table_real(t, p->bytes_over_compulsory);
}

static void add_short(struct rfl_table *t, const struct rfl_point *p)
{
	rfl_table_text(t, p->env);
	rfl_table_text(t, p->model);
	rfl_table_text(t, p->precision);
	add_int(t, p->batch);
	rfl_table_text(t, p->mode);
	rfl_table_text(t, p->layout);
	add_int(t, p->runs);
	rfl_table_real(t, p->step_s);
	rfl_table_real(t, p->samples_per_s);
	rfl_table_real(t, p->ai);
	rfl_table_real(t, p->attained_gflops);
	rfl_table_real(t, p->attainable_gflops);
	rfl_table_real(t, p->percent_of_attainable);
	rfl_table_text(t, p->bound);
	rfl_table_real(t, p->headroom_s);
}

/* The different values of a text column, in the order of the points: "a, b". */
static void list_values(const struct rfl_points *pts, size_t offset, struct rfl_buf *out)
{
	for (size_t i = 0; i < pts->n; i++) {
		const char *text, *before = "";
		size_t k = 0;

		memcpy(&text, (const char *)&pts->points[i] + offset, sizeof(text));
		for (; text && k < i; k++) {
			memcpy(&before, (const char *)&pts->points[k] + offset, sizeof(before));
			if (before && strcmp(before, text) == 0)
				break;
		}
		if (text && k == i)
			rfl_buf_printf(out, "%s%s", out->len ? ", " : "", text);
	}
}

static void add_notes(struct rfl_table *t, const struct rfl_points *pts)
{
	struct rfl_buf flops, bytes;

	rfl_buf_init(&flops, 1 << 16);
	rfl_buf_init(&bytes, 1 << 16);
	list_values(pts, offsetof(struct rfl_point, flops_source), &flops);
	list_values(pts, offsetof(struct rfl_point, bytes_source), &bytes);
	rfl_table_note(t, "FLOPs: %s; bytes: %s; attainable = min(FLOP/byte x bandwidth, compute)",
		       rfl_buf_str(&flops), rfl_buf_str(&bytes));
	if (has_counters(pts))
		rfl_table_note(t, "unfused: FLOP/byte as counted from the network; measured: FLOPs "
				  "and bytes by counters; m/c: measured over counted; m/comp.: "
				  "measured over the bytes that must move");
	rfl_buf_fini(&flops);
	rfl_buf_fini(&bytes);
	for (size_t i = 0; i < pts->n; i++) {
		const struct rfl_point *p = &pts->points[i];

		if (p->verdict)
			rfl_table_note(t, "%s %s %s bs%lld %s %s: %s", p->env ? p->env : "",
				       p->model ? p->model : "", p->precision ? p->precision : "",
				       (long long)p->batch, p->mode ? p->mode : "",
				       p->layout ? p->layout : "", p->verdict);
	}
}

enum rfl_rc rfl_points_table(const struct rfl_points *points, enum rfl_format format,
			     struct rfl_buf *out, struct rfl_err *err)
{
	bool all = format == RFL_FORMAT_JSON, twin = has_counters(points);
	struct rfl_table *t;
	enum rfl_rc rc;

	if (format == RFL_FORMAT_CSV) {
		rfl_points_write(out, points);
		return rfl_buf_check(out, "points", err);
	}
	t = all ? rfl_table_new(all_columns, RFL_ARRAY_LEN(all_columns)) : short_table(twin);
	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < points->n; i++) {
		if (all)
			add_all(t, &points->points[i]);
		else
			add_short(t, &points->points[i]);
		if (twin && !all)
			add_twin(t, &points->points[i]);
	}
	add_notes(t, points);
	rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}
