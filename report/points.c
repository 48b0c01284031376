/* points.c - tables of points. */
#include "report/runs.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "ledger/facts.h"
#include "report/captures_impl.h"

/* Columns of tables for people. If there are counters, measured values replace derived columns. The
 * column for variants is only shown if a point has one. Points of layers or kernels have columns of
 * their own. */
/* Parts with a smaller share of the time get no note. */
#define LONG_PART 0.05

enum { PLAIN = 1, TWIN = 2, VARIANT = 4, PART = 8, CACHES = 16, STEP = 32 };

/* The name of a part, without the arguments and the middle of a long name of a kernel. */
static const char *part_name(const struct rfl_point *p, char out[RFL_CAPTURE_NAME_MAX + 1])
{
	return rfl_text_same(p->part_kind, "kernel") ? rfl_captures__short_name(p->part, out)
						     : p->part;
}

static void put_part(struct rfl_table *t, const void *row)
{
	char name[RFL_CAPTURE_NAME_MAX + 1];
	const struct rfl_point *p = row;

	rfl_table_text(t, p->part ? part_name(p, name) : "");
}

static void put_variant(struct rfl_table *t, const void *row)
{
	struct rfl_buf words;

	rfl_buf_init(&words, 0);
	rfl_variant_say(((const struct rfl_point *)row)->variant, &words);
	rfl_table_text(t, words.len ? rfl_buf_str(&words) : NULL);
	rfl_buf_fini(&words);
}

static const struct rfl_column short_columns[] = {
	{ .key = "env", .title = "Environment" },
	{ .key = "model", .title = "Model" },
	{ .key = "precision", .title = "Precision" },
	{ .key = "batch", .title = "Batch" },
	{ .key = "mode", .title = "Mode" },
	{ .key = "layout", .title = "Layout" },
	{ .key = "variant", .title = "Variant", .when = VARIANT, .put = put_variant },
	{ .key = "part", .title = "Part", .when = PART, .put = put_part },
	{ .key = "launches", .title = "Launches", .when = PART },
	{ .key = "time_share", .title = "Time %", .digits = 3, .scale = 1e-2, .when = PART },
	{ .key = "runs", .title = "Runs", .when = PLAIN },
	{ .key = "step_s", .title = "Step (ms)", .scale = 1e-3, .when = STEP },
	{ .key = "step_s", .title = "Time (ms)", .scale = 1e-3, .when = PART },
	{ .key = "step_median_s", .title = "Median (ms)", .scale = 1e-3, .when = PLAIN },
	{ .key = "samples_per_s", .title = "Samples/s", .when = PLAIN },
	{ .key = "ai", .title = "FLOP/byte", .digits = 3 },
	{ .key = "ai_unfused", .title = "unfused", .digits = 3, .when = TWIN },
	{ .key = "ai_counters", .title = "measured", .digits = 3, .when = TWIN },
	{ .key = "flops_measured_over_counted", .title = "FLOPs x", .digits = 3, .when = TWIN },
	{ .key = "bytes_over_compulsory", .title = "Bytes x", .digits = 3, .when = TWIN },
	{ .key = "ai_l2", .title = "L2", .digits = 3, .when = CACHES },
	{ .key = "ai_l1", .title = "L1", .digits = 3, .when = CACHES },
	{ .key = "attained_gflops", .title = "GFLOP/s" },
	{ .key = "attainable_gflops", .title = "Attainable" },
	{ .key = "percent_of_attainable", .title = "%", .digits = 3 },
	{ .key = "bound", .title = "Bound" },
	{ .key = "headroom_s",
	  .title = "Headroom (ms)",
	  .digits = 3,
	  .scale = 1e-3,
	  .when = PLAIN },
};

static const char *source_at(const struct rfl_points *pts, size_t i, size_t offset)
{
	const char *text;

	memcpy(&text, (const char *)&pts->points[i] + offset, sizeof(text));
	return text;
}

/* List the distinct sources in a column, in the order of the points: "a, b". */
static void list_sources(const struct rfl_points *pts, size_t offset, struct rfl_buf *out)
{
	for (size_t i = 0; i < pts->n; i++) {
		const char *text = source_at(pts, i, offset);
		const size_t len = text ? rfl_point_source_len(text) : 0;
		size_t k = 0;

		for (; text && k < i; k++) {
			const char *other = source_at(pts, k, offset);

			if (other && rfl_point_source_len(other) == len &&
			    memcmp(other, text, len) == 0)
				break;
		}
		if (text && k == i)
			rfl_buf_printf(out, "%s%.*s", out->len ? ", " : "", (int)len, text);
	}
}

static void add_note(struct rfl_table *t, const struct rfl_point *p, const char *says)
{
	char name[RFL_CAPTURE_NAME_MAX + 1];
	struct rfl_buf variant;

	rfl_buf_init(&variant, 0);
	rfl_variant_say(p->variant, &variant);
	rfl_table_note(t, "%s %s %s bs%lld %s%s%s%s%s%s%s: %s", p->env ? p->env : "",
		       p->model ? p->model : "", p->precision ? p->precision : "",
		       (long long)p->batch, p->mode ? p->mode : "", p->layout ? " " : "",
		       p->layout ? p->layout : "", variant.len ? ", " : "", rfl_buf_str(&variant),
		       p->part ? ", " : "", p->part ? part_name(p, name) : "", says);
	rfl_buf_fini(&variant);
}

/* Return the reason why counters were not used, without the name of the quantity: FLOPs and bytes
 * may have the same reason. */
static const char *cause_of(const char *source)
{
	static const char word[] = " unavailable: ";
	const char *why = source ? source + rfl_point_source_len(source) : "";
	const char *cause = strstr(why, word);

	if (cause)
		return cause + sizeof(word) - 1;
	return *why ? why + sizeof(RFL_POINT_NOT_COUNTERS) - 1 : "";
}

/* Note why existing counters were not used: "bytes are unfused (counters not used: ...)".
 * @param said  the source in the previous note of this point, or NULL */
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

enum rfl_rc rfl_points_table(const struct rfl_points *points, enum rfl_format format,
			     struct rfl_buf *out, struct rfl_err *err)
{
	struct rfl_column columns[RFL_POINT_NCOLUMNS];
	bool counters = false, variants = false, parts = false, caches = false;
	struct rfl_buf flops, bytes;
	const char *reason = NULL; /* why the FLOPs of some part are unknown */
	struct rfl_table *t;
	size_t n = 0;

	if (format == RFL_FORMAT_CSV) {
		rfl_points_write(out, points);
		return rfl_buf_check(out, "points", err);
	}
	for (size_t i = 0; i < points->n; i++) {
		counters = counters || points->points[i].counters_source;
		variants = variants || points->points[i].variant;
		parts = parts || points->points[i].part;
		caches = caches || !isnan(points->points[i].ai_l2) ||
			 !isnan(points->points[i].ai_l1);
	}
	for (; format == RFL_FORMAT_JSON && n < RFL_POINT_NCOLUMNS; n++)
		columns[n] = (struct rfl_column){ .field = &rfl_point_fields[n] };
	for (; format != RFL_FORMAT_JSON && n < RFL_ARRAY_LEN(short_columns); n++) {
		columns[n] = short_columns[n];
		if (!columns[n].put)
			columns[n].field = &rfl_point_fields[rfl_fields_find(
				rfl_point_fields, RFL_POINT_NCOLUMNS, short_columns[n].key)];
	}
	t = rfl_table_of(columns, n,
			 (parts ? PART : STEP | (counters ? TWIN : PLAIN)) |
				 (variants ? VARIANT : 0U) | (caches ? CACHES : 0U));
	rfl_table_add(t, points->points, points->n, sizeof(*points->points));
	if (points->hash[0]) /* in the order of a file, so that page.js can mark the chosen point */
		rfl_table_number_rows(t, "data-point");

	rfl_buf_init(&flops, 1 << 16);
	rfl_buf_init(&bytes, 1 << 16);
	list_sources(points, offsetof(struct rfl_point, flops_source), &flops);
	list_sources(points, offsetof(struct rfl_point, bytes_source), &bytes);
	rfl_table_note(t,
		       "FLOPs: %s; bytes: %s; %s; attainable = min(FLOP/byte x bandwidth, compute)",
		       flops.len ? rfl_buf_str(&flops) : "unknown",
		       bytes.len ? rfl_buf_str(&bytes) : "unknown",
		       parts ? "times and GFLOP/s are those of the profiled launches"
			     : "step, samples/s and GFLOP/s are over the whole window");
	if (counters && !parts)
		rfl_table_note(t, "unfused: FLOP/byte counted from the network; measured: FLOPs "
				  "and bytes from counters; FLOPs x: measured / counted FLOPs; "
				  "Bytes x: measured / compulsory bytes");
	rfl_buf_fini(&flops);
	rfl_buf_fini(&bytes);
	for (const struct rfl_point *p = points->points; p < points->points + points->n; p++) {
		if (p->verdict && !(p->part && p->time_share < LONG_PART))
			add_note(t, p, p->verdict);
		if (p->part && isnan(p->flops_per_step) && p->counters_note && !reason) {
			reason = p->counters_note;
			add_note(t, p, reason);
		}
		/* the parts of a step usually have the same reason */
		if (p->part && p > points->points && rfl_text_same(p[-1].part_kind, p->part_kind) &&
		    rfl_text_same(p[-1].flops_source, p->flops_source) &&
		    rfl_text_same(p[-1].bytes_source, p->bytes_source))
			continue;
		add_why(t, p, "FLOPs", p->flops_source, NULL);
		add_why(t, p, "bytes", p->bytes_source, p->flops_source);
	}
	return rfl_table_finish(t, format, out, err);
}

static void put_cv(struct rfl_table *t, const void *row)
{
	const struct rfl_point *p = row;

	rfl_table_real(t, p->samples_per_s_std / p->samples_per_s);
}

/* Flags of columns that the summary of points shows only to programs, or only if they vary. */
enum { ALL = 1, MODES = 2, LAYOUTS = 4, VARIANTS = 8 };

static const struct {
	const char *name; /* name of the column in the points */
	struct rfl_column as;
} of_summary[] = {
	{ "env", { .title = "Env" } },
	{ "model", { .title = "Model" } },
	{ "precision", { .title = "Precision" } },
	{ "batch", { .title = "Batch" } },
	{ "mode", { .title = "Mode", .when = MODES } },
	{ "layout", { .title = "Layout", .when = LAYOUTS } },
	{ "variant", { .title = "Variant", .when = VARIANTS } },
	{ "runs", { .key = "n", .title = "n" } },
	{ "samples_per_s", { .title = "Samples/s", .digits = 5 } },
	{ "samples_per_s_std", { .title = "Std" } },
	{ NULL,
	  { .key = "cv",
	    .title = "CV %",
	    .kind = RFL_COLUMN_REAL,
	    .decimals = 2,
	    .scale = 0.01,
	    .put = put_cv } },
	{ "attained_gflops", { .title = "GFLOP/s" } },
	{ "ai", { .title = "FLOP/byte", .digits = 3 } },
	{ "percent_of_attainable", { .title = "% of roof", .digits = 3 } },
	{ "bound", { .title = "Bound" } },
	{ "flops_source", { .title = "FLOPs", .when = ALL } },
	{ "bytes_source", { .title = "Bytes", .when = ALL } },
};

enum rfl_rc rfl_points_summary(const struct rfl_points *points, enum rfl_format format,
			       struct rfl_buf *out, struct rfl_err *err)
{
	struct rfl_column columns[RFL_ARRAY_LEN(of_summary)];
	const struct rfl_point *first = points->points;
	unsigned given = rfl_format_for_people(format) ? 0 : ALL | MODES | LAYOUTS | VARIANTS;
	struct rfl_buf flops, bytes;
	struct rfl_table *t;
	size_t lower = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(of_summary); i++) {
		columns[i] = of_summary[i].as;
		if (of_summary[i].name)
			columns[i].field = &rfl_point_fields[rfl_fields_find(
				rfl_point_fields, RFL_POINT_NCOLUMNS, of_summary[i].name)];
		if (rfl_format_for_people(format) && of_summary[i].as.when == VARIANTS)
			columns[i].put = put_variant;
	}
	for (const struct rfl_point *p = first; p < first + points->n; p++) {
		given |= rfl_text_same(p->mode, first->mode) ? 0 : MODES;
		given |= rfl_text_same(p->layout, first->layout) ? 0 : LAYOUTS;
		given |= p->variant ? VARIANTS : 0;
		lower += !p->part && rfl_text_same(p->bytes_source, "lower-bound");
	}
	t = rfl_table_of(columns, RFL_ARRAY_LEN(columns), given);
	for (const struct rfl_point *p = first; p < first + points->n; p++)
		if (!p->part)
			rfl_table_add(t, p, 1, sizeof(*p));
	rfl_buf_init(&flops, 1 << 16);
	rfl_buf_init(&bytes, 1 << 16);
	list_sources(points, offsetof(struct rfl_point, flops_source), &flops);
	list_sources(points, offsetof(struct rfl_point, bytes_source), &bytes);
	rfl_table_note(t,
		       "samples/s over the whole window: mean and sample standard deviation of n "
		       "repeats; GFLOP/s at this rate; FLOPs: %s; bytes: %s",
		       flops.len ? rfl_buf_str(&flops) : "unknown",
		       bytes.len ? rfl_buf_str(&bytes) : "unknown");
	rfl_buf_fini(&flops);
	rfl_buf_fini(&bytes);
	rfl_table_note(t, "%% of roof: of min(FLOP/byte x bandwidth, compute); Bound: the ceiling "
			  "that is lower at this FLOP/byte, even if the point is far below it");
	if (lower)
		rfl_table_note(t,
			       "FLOP/byte of %zu point%s is a lower bound, attained / bandwidth: "
			       "on the roof by construction",
			       lower, lower == 1 ? "" : "s");
	return rfl_table_finish(t, format, out, err);
}
