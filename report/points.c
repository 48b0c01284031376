/* points.c - tables of points. */
#include "report/runs.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ledger/facts.h"
#include "report/report_impl.h"
#include "roofline/verdict.h"

/* Parts with a smaller share of the time get no note. */
#define LONG_PART 0.05

/* Flags of columns: of which points, and whether a point has them. */
enum {
	PLAIN = 1, /* steps without counters, whose values replace derived columns */
	TWIN = 2,  /* steps with counters and a count to compare them with */
	VARIANT = 4,
	PART = 8, /* layers or kernels */
	CACHES = 16,
	STEP = 32,
	SAMPLES = 64,
	TOKENS = 128,
	/* of the summary: only for programs, or if they vary */
	ALL = 256,
	MODES = 512,
	LAYOUTS = 1024,
	RUNS = 2048,   /* of a run, not of another program's profile */
	LEVELS = 4096, /* caches with a roof */
};

const char *rfl_report__part_name(const struct rfl_point *p, char out[RFL_CAPTURE_NAME_MAX + 1])
{
	return rfl_text_same(p->part_kind, "kernel") || rfl_text_same(p->part_kind, "op")
		       ? rfl_captures__short_name(p->part, out)
		       : p->part;
}

static void put_part(struct rfl_table *t, const void *row)
{
	char name[RFL_CAPTURE_NAME_MAX + 1];
	const struct rfl_point *p = row;

	rfl_table_text(t, p->part ? rfl_report__part_name(p, name) : "");
}

static void put_variant(struct rfl_table *t, const void *row)
{
	RFL_AUTO(buf) words = { .len = 0 };

	rfl_variant_say(((const struct rfl_point *)row)->variant, &words);
	rfl_table_text(t, words.len ? rfl_buf_str(&words) : NULL);
}

static void put_tokens(struct rfl_table *t, const void *row)
{
	const struct rfl_point *p = row;

	rfl_table_real(t, p->samples_per_s * (double)p->context_length);
}

static void put_tokens_std(struct rfl_table *t, const void *row)
{
	const struct rfl_point *p = row;

	rfl_table_real(t, p->samples_per_s_std * (double)p->context_length);
}

static void put_cv(struct rfl_table *t, const void *row)
{
	const struct rfl_point *p = row;

	rfl_table_real(t, p->samples_per_s_std / p->samples_per_s);
}

/* A column of a point, or of a function; the title comes first. */
#define POINT(name, ...)                                                              \
	{                                                                             \
		.field = &rfl_point_fields[RFL_POINT_AT_##name], .title = __VA_ARGS__ \
	}
#define PUT(put_, key_, ...)                                                            \
	{                                                                               \
		.put = put_, .key = key_, .kind = RFL_COLUMN_REAL, .title = __VA_ARGS__ \
	}

static const struct rfl_column short_columns[] = {
	POINT(env, "Environment"),
	POINT(model, "Model"),
	POINT(precision, "Precision"),
	POINT(batch, "Batch", .when = RUNS),
	POINT(mode, "Mode", .when = RUNS),
	POINT(layout, "Layout", .when = RUNS),
	POINT(variant, "Variant", .when = VARIANT, .put = put_variant),
	POINT(part, "Part", .when = PART, .put = put_part),
	POINT(launches, "Launches", .when = PART),
	POINT(time_share, "Time %", .digits = 3, .scale = 1e-2, .when = PART),
	POINT(runs, "Runs", .when = PLAIN),
	POINT(step_s, "Step (ms)", .scale = 1e-3, .when = STEP),
	POINT(step_s, "Time (ms)", .scale = 1e-3, .when = PART),
	POINT(step_median_s, "Median (ms)", .scale = 1e-3, .when = PLAIN),
	POINT(samples_per_s, "Samples/s", .when = PLAIN | SAMPLES),
	PUT(put_tokens, "tokens_per_s", "Tokens/s", .when = PLAIN | TOKENS),
	POINT(ai, "FLOP/byte", .digits = 3),
	POINT(ai_unfused, "unfused", .digits = 3, .when = TWIN),
	POINT(ai_counters, "measured", .digits = 3, .when = TWIN),
	POINT(flops_measured_over_counted, "FLOPs x", .digits = 3, .when = TWIN),
	POINT(bytes_over_compulsory, "Bytes x", .digits = 3, .when = TWIN),
	POINT(ai_l2, "L2", .digits = 3, .when = CACHES),
	POINT(ai_l1, "L1", .digits = 3, .when = CACHES),
	POINT(attained_gflops, "GFLOP/s"),
	POINT(attained_gbps, "GB/s", .when = PART),
	POINT(attainable_gflops, "Attainable"),
	POINT(percent_of_attainable, "%", .digits = 3),
	POINT(nearest, "Nearest", .when = LEVELS),
	POINT(bound, "Bound"),
	POINT(headroom_s, "Headroom (ms)", .digits = 3, .scale = 1e-3, .when = PLAIN),
	POINT(headroom_s, "Headroom (ms)", .digits = 3, .scale = 1e-3, .when = PART),
};

static const struct rfl_column summary_columns[] = {
	POINT(env, "Env"),
	POINT(model, "Model"),
	POINT(precision, "Precision"),
	POINT(batch, "Batch"),
	POINT(mode, "Mode", .when = MODES),
	POINT(layout, "Layout", .when = LAYOUTS),
	POINT(variant, "Variant", .when = VARIANT, .put = put_variant),
	POINT(variant, "Variant", .when = ALL),
	POINT(runs, "n", .key = "n"),
	POINT(samples_per_s, "Samples/s", .digits = 5, .when = SAMPLES),
	POINT(samples_per_s_std, "Std", .when = SAMPLES),
	PUT(put_tokens, "tokens_per_s", "Tokens/s", .digits = 5, .when = TOKENS),
	PUT(put_tokens_std, "tokens_per_s_std", "Std", .when = TOKENS),
	PUT(put_cv, "cv", "CV %", .decimals = 2, .scale = 0.01),
	POINT(attained_gflops, "GFLOP/s"),
	POINT(ai, "FLOP/byte", .digits = 3),
	POINT(percent_of_attainable, "% of roof", .digits = 3),
	POINT(bound, "Bound"),
	POINT(flops_source, "FLOPs", .when = ALL),
	POINT(bytes_source, "Bytes", .when = ALL),
};

/* The rate of language models is in tokens. */
static unsigned rate_of(const struct rfl_points *points)
{
	for (size_t i = 0; i < points->n; i++)
		if (points->points[i].context_length <= 0)
			return SAMPLES;
	return points->n ? TOKENS : SAMPLES;
}

/* Append the distinct sources in a column, in the order of the points: "a or b". */
static void list_sources(const struct rfl_points *pts, enum rfl_point_at column,
			 struct rfl_buf *out)
{
	const struct rfl_field *f = &rfl_point_fields[column];
	const size_t begin = out->len;

	for (size_t i = 0; i < pts->n; i++) {
		const char *text = *rfl_field_text_at(f, &pts->points[i]);
		const size_t len = text ? rfl_point_source_len(text) : 0;
		size_t k = 0;

		for (; text && k < i; k++) {
			const char *other = *rfl_field_text_at(f, &pts->points[k]);

			if (other && rfl_point_source_len(other) == len &&
			    memcmp(other, text, len) == 0)
				break;
		}
		if (text && k == i)
			rfl_buf_printf(out, "%s%.*s", out->len > begin ? " or " : "", (int)len,
				       text);
	}
	rfl_buf_puts(out, out->len > begin ? "" : "unknown");
}

/* "FLOPs: network; bytes: unfused" */
static void list_both(const struct rfl_points *pts, struct rfl_buf *out)
{
	rfl_buf_puts(out, "FLOPs: ");
	list_sources(pts, RFL_POINT_AT_flops_source, out);
	rfl_buf_puts(out, "; bytes: ");
	list_sources(pts, RFL_POINT_AT_bytes_source, out);
}

static void add_note(struct rfl_table *t, const struct rfl_point *p, const char *says)
{
	char name[RFL_CAPTURE_NAME_MAX + 1], batch[32];
	const char *const words[] = { p->model, p->precision, p->batch > 0 ? batch : NULL, p->mode,
				      p->layout };
	RFL_AUTO(buf) variant = { .len = 0 };
	RFL_AUTO(buf) note = { .len = 0 };

	(void)snprintf(batch, sizeof(batch), "bs%lld", (long long)p->batch);
	rfl_variant_say(p->variant, &variant);
	rfl_buf_puts(&note, p->env ? p->env : "");
	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (words[i])
			rfl_buf_printf(&note, " %s", words[i]);
	rfl_table_note(t, "%s%s%s%s%s: %s", rfl_buf_str(&note), variant.len ? ", " : "",
		       rfl_buf_str(&variant), p->part ? ", " : "",
		       p->part ? rfl_report__part_name(p, name) : "", says);
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
	RFL_AUTO(buf) text = { .len = 0 };

	if (!p->counters_source || !source || !source[rfl_point_source_len(source)])
		return;
	rfl_buf_printf(&text, "%s are %.*s%s", what,
		       again ? (int)(cause - source) : (int)strlen(source), source,
		       again ? "the same)" : "");
	add_note(t, p, rfl_buf_str(&text));
}

struct rfl_table *rfl_points_table(const struct rfl_points *points, bool people)
{
	bool counters = false, twin = false, parts = false;
	struct rfl_column all[RFL_POINT_NCOLUMNS];
	unsigned given = rate_of(points);
	const char *reason = NULL; /* why the FLOPs of some part are unknown */
	RFL_AUTO(buf) sources = { .len = 0 };
	struct rfl_table *t;

	for (const struct rfl_point *p = points->points; p < points->points + points->n; p++) {
		counters = counters || p->counters_source;
		twin = twin || (p->counters_source && !isnan(p->ai_unfused));
		parts = parts || p->part;
		given |= (p->variant ? VARIANT : 0U) | (p->batch > 0 || p->mode ? RUNS : 0U) |
			 (isnan(p->ai_l2) && isnan(p->ai_l1) ? 0U : CACHES) |
			 (p->peak_l2_gbps > 0 || p->peak_l1_gbps > 0 ? LEVELS : 0U);
	}
	given |= parts ? PART : STEP | (twin ? TWIN : counters ? 0 : PLAIN);
	for (size_t i = 0; i < RFL_POINT_NCOLUMNS; i++)
		all[i] = (struct rfl_column){ .field = &rfl_point_fields[i] };
	t = people ? rfl_table_of(short_columns, RFL_ARRAY_LEN(short_columns), given)
		   : rfl_table_new(all, RFL_POINT_NCOLUMNS);
	rfl_table_add(t, points->points, points->n, sizeof(*points->points));
	if (points->hash[0]) /* in the order of a file, so that page.js can mark the chosen point */
		rfl_table_number_rows(t, "data-point");

	list_both(points, &sources);
	rfl_table_note(
		t, "%s; %s; attainable = min(FLOP/byte x bandwidth, compute)%s",
		rfl_buf_str(&sources),
		rfl_text_same(points->n ? points->points->flops_source : NULL, RFL_POINT_OF_TABLE)
			? "all rates are from the table"
		: parts          ? "times and GFLOP/s are of the profiled launches"
		: given & TOKENS ? "step, tokens/s and GFLOP/s are over the whole window"
		: given & RUNS   ? "step, samples/s and GFLOP/s are over the whole window"
				 : "times and GFLOP/s are of the whole profile",
		given & LEVELS ? ", of the nearest level" : "");
	if (given & TWIN && given & RUNS)
		rfl_table_note(t, "unfused: FLOP/byte counted from the network; measured: FLOPs "
				  "and bytes from counters; FLOPs x: measured / counted FLOPs; "
				  "Bytes x: measured / compulsory bytes");
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
	return t;
}

struct rfl_table *rfl_points_summary(const struct rfl_points *points, bool people)
{
	const struct rfl_point *first = points->points;
	unsigned given = people ? rate_of(points) : SAMPLES | ALL | MODES | LAYOUTS;
	RFL_AUTO(buf) sources = { .len = 0 };
	struct rfl_table *t;
	size_t lower = 0;

	for (const struct rfl_point *p = first; p < first + points->n; p++) {
		given |= rfl_text_same(p->mode, first->mode) ? 0 : MODES;
		given |= rfl_text_same(p->layout, first->layout) ? 0 : LAYOUTS;
		given |= people && p->variant ? VARIANT : 0;
		lower += !p->part && rfl_text_same(p->bytes_source, "lower-bound");
	}
	t = rfl_table_of(summary_columns, RFL_ARRAY_LEN(summary_columns), given);
	for (const struct rfl_point *p = first; p < first + points->n; p++)
		if (!p->part)
			rfl_table_add(t, p, 1, sizeof(*p));
	list_both(points, &sources);
	rfl_table_note(t,
		       "%s/s over the whole window: mean and sample standard deviation of n "
		       "repeats; GFLOP/s at this rate; %s",
		       given & TOKENS ? "tokens" : "samples", rfl_buf_str(&sources));
	rfl_table_note(t,
		       "%% of roof: of min(FLOP/byte x bandwidth, compute); Bound: what limits the "
		       "point; neither: below %d %% of the roof",
		       RFL_VERDICT_EXPLAINS);
	if (lower)
		rfl_table_note(t,
			       "FLOP/byte of %zu point%s is a lower bound, achieved / bandwidth: "
			       "on the roof by construction",
			       lower, lower == 1 ? "" : "s");
	return t;
}
