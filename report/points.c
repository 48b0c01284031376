/*
 * points.c - points for people and for programs.
 */
#include "report/points.h"

#include <stdbool.h>
#include <string.h>

static void put_cell(struct rfl_table *t, const struct rfl_field *f, const struct rfl_point *p)
{
	if (f->kind == RFL_FIELD_TEXT)
		rfl_table_text(t, *rfl_field_text_at(f, p));
	else if (f->kind == RFL_FIELD_REAL)
		rfl_table_real(t, *rfl_field_real_at(f, p));
	else if (rfl_field_known(f, p))
		rfl_table_int(t, *rfl_field_int_at(f, p));
	else
		rfl_table_null(t);
}

static const struct rfl_field *field_of(const char *name)
{
	return &rfl_point_fields[rfl_fields_find(rfl_point_fields, RFL_POINT_NCOLUMNS, name)];
}

/* What people see of a point. Where there are counters, what was measured replaces
 * what follows from the rest; where points have variants, so does the column of them. */
enum seen { ALWAYS, PLAIN, TWIN, VARIANT };

static const struct {
	enum seen seen;
	struct rfl_column column;
} short_columns[] = {
	{ ALWAYS, { .key = "env", .title = "Environment" } },
	{ ALWAYS, { .key = "model", .title = "Model" } },
	{ ALWAYS, { .key = "precision", .title = "Precision" } },
	{ ALWAYS, { .key = "batch", .title = "Batch" } },
	{ ALWAYS, { .key = "mode", .title = "Mode" } },
	{ ALWAYS, { .key = "layout", .title = "Layout" } },
	{ VARIANT, { .key = "variant", .title = "Variant" } },
	{ PLAIN, { .key = "runs", .title = "Runs" } },
	{ ALWAYS, { .key = "step_s", .title = "Step (ms)", .scale = 1e-3 } },
	{ PLAIN, { .key = "step_median_s", .title = "Median (ms)", .scale = 1e-3 } },
	{ PLAIN, { .key = "samples_per_s", .title = "Samples/s" } },
	{ ALWAYS, { .key = "ai", .title = "FLOP/byte", .digits = 3 } },
	{ TWIN, { .key = "ai_unfused", .title = "unfused", .digits = 3 } },
	{ TWIN, { .key = "ai_counters", .title = "measured", .digits = 3 } },
	{ TWIN, { .key = "flops_measured_over_counted", .title = "FLOPs x", .digits = 3 } },
	{ TWIN, { .key = "bytes_over_compulsory", .title = "Bytes x", .digits = 3 } },
	{ ALWAYS, { .key = "attained_gflops", .title = "GFLOP/s" } },
	{ ALWAYS, { .key = "attainable_gflops", .title = "Attainable" } },
	{ ALWAYS, { .key = "percent_of_attainable", .title = "%", .digits = 3 } },
	{ ALWAYS, { .key = "bound", .title = "Bound" } },
	{ PLAIN, { .key = "headroom_s", .title = "Headroom (ms)", .digits = 3, .scale = 1e-3 } },
};

/* What the points have that not all points have. */
struct view {
	bool counters, variants;
};

static struct view view_of(const struct rfl_points *pts)
{
	struct view v = { .counters = false };

	for (size_t i = 0; i < pts->n; i++) {
		v.counters = v.counters || pts->points[i].counters_source;
		v.variants = v.variants || pts->points[i].variant;
	}
	return v;
}

static bool is_seen(enum seen seen, const struct view *v)
{
	switch (seen) {
	case PLAIN:
		return !v->counters;
	case TWIN:
		return v->counters;
	case VARIANT:
		return v->variants;
	case ALWAYS:
		break;
	}
	return true;
}

/* The columns that are shown, and the fields that fill them. @return how many */
static size_t choose(const struct view *v, bool all, struct rfl_column *columns,
		     const struct rfl_field **fields)
{
	static const enum rfl_column_kind kinds[] = {
		[RFL_FIELD_TEXT] = RFL_COLUMN_TEXT,
		[RFL_FIELD_INT] = RFL_COLUMN_INT,
		[RFL_FIELD_REAL] = RFL_COLUMN_REAL,
	};
	size_t n = 0;

	for (size_t i = 0; all && i < RFL_POINT_NCOLUMNS; i++) {
		columns[n] = (struct rfl_column){ .key = rfl_point_fields[i].name,
						  .title = rfl_point_fields[i].name };
		fields[n++] = &rfl_point_fields[i];
	}
	for (size_t i = 0; !all && i < RFL_ARRAY_LEN(short_columns); i++)
		if (is_seen(short_columns[i].seen, v)) {
			columns[n] = short_columns[i].column;
			fields[n++] = field_of(short_columns[i].column.key);
		}
	for (size_t i = 0; i < n; i++)
		columns[i].kind = kinds[fields[i]->kind];
	return n;
}

static const char *source_at(const struct rfl_points *pts, size_t i, size_t offset)
{
	const char *text;

	memcpy(&text, (const char *)&pts->points[i] + offset, sizeof(text));
	return text;
}

static bool same_source(const char *a, const char *b)
{
	size_t len = rfl_point_source_len(a);

	return rfl_point_source_len(b) == len && memcmp(a, b, len) == 0;
}

/* The different sources in a text column, in the order of the points: "a, b". */
static void list_sources(const struct rfl_points *pts, size_t offset, struct rfl_buf *out)
{
	for (size_t i = 0; i < pts->n; i++) {
		const char *text = source_at(pts, i, offset);
		size_t k = 0;

		if (!text)
			continue;
		while (k < i &&
		       !(source_at(pts, k, offset) && same_source(source_at(pts, k, offset), text)))
			k++;
		if (k == i)
			rfl_buf_printf(out, "%s%.*s", out->len ? ", " : "",
				       (int)rfl_point_source_len(text), text);
	}
}

static void add_note(struct rfl_table *t, const struct rfl_point *p, const char *says)
{
	rfl_table_note(t, "%s %s %s bs%lld %s%s%s%s%s: %s", p->env ? p->env : "",
		       p->model ? p->model : "", p->precision ? p->precision : "",
		       (long long)p->batch, p->mode ? p->mode : "", p->layout ? " " : "",
		       p->layout ? p->layout : "", p->variant ? ", " : "",
		       p->variant ? p->variant : "", says);
}

/* Why counters were not used, without the name of what is unavailable: the same may keep FLOPs and
 * bytes out. */
static const char *cause_of(const char *source)
{
	static const char word[] = " unavailable: ";
	const char *why = source ? source + rfl_point_source_len(source) : "";
	const char *cause = strstr(why, word);

	if (cause)
		return cause + sizeof(word) - 1;
	return *why ? why + sizeof(RFL_POINT_NOT_COUNTERS) - 1 : "";
}

/* Why counters that there are were not used: "bytes are unfused (counters not used: ...)".
 * @param said  what was written before of the same point; NULL: nothing */
static void add_why(struct rfl_table *t, const struct rfl_point *p, const char *what,
		    const char *source, const char *said)
{
	const char *cause = cause_of(source);
	bool again = *cause && strcmp(cause, cause_of(said)) == 0;
	struct rfl_buf text;

	if (!p->counters_source || !source || !source[rfl_point_source_len(source)])
		return;
	rfl_buf_init(&text, 1 << 16);
	rfl_buf_printf(&text, "%s are %.*s%s", what,
		       again ? (int)(cause - source) : (int)strlen(source), source,
		       again ? "the same)" : "");
	add_note(t, p, rfl_buf_str(&text));
	rfl_buf_fini(&text);
}

static void add_notes(struct rfl_table *t, const struct rfl_points *pts)
{
	struct rfl_buf flops, bytes;

	rfl_buf_init(&flops, 1 << 16);
	rfl_buf_init(&bytes, 1 << 16);
	list_sources(pts, offsetof(struct rfl_point, flops_source), &flops);
	list_sources(pts, offsetof(struct rfl_point, bytes_source), &bytes);
	rfl_table_note(t,
		       "FLOPs: %s; bytes: %s; step, samples/s and GFLOP/s: over the whole window; "
		       "attainable = min(FLOP/byte x bandwidth, compute)",
		       rfl_buf_str(&flops), rfl_buf_str(&bytes));
	if (view_of(pts).counters)
		rfl_table_note(t, "unfused: FLOP/byte as counted from the network; measured: FLOPs "
				  "and bytes by counters; FLOPs x: measured over counted; Bytes x: "
				  "measured over those that must move");
	rfl_buf_fini(&flops);
	rfl_buf_fini(&bytes);
	for (size_t i = 0; i < pts->n; i++) {
		const struct rfl_point *p = &pts->points[i];

		if (p->verdict)
			add_note(t, p, p->verdict);
		add_why(t, p, "FLOPs", p->flops_source, NULL);
		add_why(t, p, "bytes", p->bytes_source, p->flops_source);
	}
}

enum rfl_rc rfl_points_table(const struct rfl_points *points, enum rfl_format format,
			     struct rfl_buf *out, struct rfl_err *err)
{
	const struct view view = view_of(points);
	const struct rfl_field *fields[RFL_POINT_NCOLUMNS];
	struct rfl_column columns[RFL_POINT_NCOLUMNS];
	size_t n;
	struct rfl_table *t;
	enum rfl_rc rc;

	if (format == RFL_FORMAT_CSV) {
		rfl_points_write(out, points);
		return rfl_buf_check(out, "points", err);
	}
	n = choose(&view, format == RFL_FORMAT_JSON, columns, fields);
	t = rfl_table_new(columns, n);
	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < points->n; i++)
		for (size_t k = 0; k < n; k++)
			put_cell(t, fields[k], &points->points[i]);
	add_notes(t, points);
	rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}
