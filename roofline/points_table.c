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

/* What people see of a point. Where there are counters, what was measured stands in the place of
 * what follows from the rest; where points have variants, so does the column of them. */
enum seen { ALWAYS, PLAIN, TWIN, VARIANT };

/* X(seen, kind, name, title, digits, scale) */
/* clang-format off */
#define SHORT_COLUMNS(X) \
	X(ALWAYS, TEXT, env, "Environment", 0, 0) \
	X(ALWAYS, TEXT, model, "Model", 0, 0) \
	X(ALWAYS, TEXT, precision, "Precision", 0, 0) \
	X(ALWAYS, INT, batch, "Batch", 0, 0) \
	X(ALWAYS, TEXT, mode, "Mode", 0, 0) \
	X(ALWAYS, TEXT, layout, "Layout", 0, 0) \
	X(VARIANT, TEXT, variant, "Variant", 0, 0) \
	X(PLAIN, INT, runs, "Runs", 0, 0) \
	X(ALWAYS, REAL, step_s, "Step (ms)", 0, 1e-3) \
	X(PLAIN, REAL, step_median_s, "Median (ms)", 0, 1e-3) \
	X(PLAIN, REAL, samples_per_s, "Samples/s", 0, 0) \
	X(ALWAYS, REAL, ai, "FLOP/byte", 3, 0) \
	X(TWIN, REAL, ai_unfused, "unfused", 3, 0) \
	X(TWIN, REAL, ai_counters, "measured", 3, 0) \
	X(TWIN, REAL, flops_measured_over_counted, "FLOPs x", 3, 0) \
	X(TWIN, REAL, bytes_over_compulsory, "Bytes x", 3, 0) \
	X(ALWAYS, REAL, attained_gflops, "GFLOP/s", 0, 0) \
	X(ALWAYS, REAL, attainable_gflops, "Attainable", 0, 0) \
	X(ALWAYS, REAL, percent_of_attainable, "%", 3, 0) \
	X(ALWAYS, TEXT, bound, "Bound", 0, 0) \
	X(PLAIN, REAL, headroom_s, "Headroom (ms)", 3, 1e-3)
/* clang-format on */

#define SHORT_ROW(when, type, name, words, dig, unit) \
	{ .seen = (when),                             \
	  .column = { .key = #name,                   \
		      .title = (words),               \
		      .kind = RFL_COLUMN_##type,      \
		      .digits = (dig),                \
		      .scale = (unit) } },

static const struct {
	enum seen seen;
	struct rfl_column column;
} short_columns[] = { SHORT_COLUMNS(SHORT_ROW) };

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

static struct rfl_table *short_table(const struct view *v)
{
	struct rfl_column columns[RFL_ARRAY_LEN(short_columns)];
	size_t n = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(short_columns); i++)
		if (is_seen(short_columns[i].seen, v))
			columns[n++] = short_columns[i].column;
	return rfl_table_new(columns, n);
}

#define SHORT_CELL(when, kind, name, title, digits, scale) \
	if (is_seen(when, v))                              \
	CELL_##kind(name)

static void add_short(struct rfl_table *t, const struct rfl_point *p, const struct view *v)
{
	SHORT_COLUMNS(SHORT_CELL)
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
	bool all = format == RFL_FORMAT_JSON;
	struct rfl_table *t;
	enum rfl_rc rc;

	if (format == RFL_FORMAT_CSV) {
		rfl_points_write(out, points);
		return rfl_buf_check(out, "points", err);
	}
	t = all ? rfl_table_new(all_columns, RFL_ARRAY_LEN(all_columns)) : short_table(&view);
	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < points->n; i++)
		if (all)
			add_all(t, &points->points[i]);
		else
			add_short(t, &points->points[i], &view);
	add_notes(t, points);
	rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}
