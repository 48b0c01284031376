/*
 * analysis.c - the statements of a report: what the numbers say, with the numbers, and what limits
 * the conclusions. A statement is a row of a table; a rule that does not apply writes nothing.
 */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "roofline/roofline.h"
#include "roofline/verdict.h"

#define FAR_BELOW_PERCENT 30.0 /* as in the verdicts: neither ceiling explains the time */
#define NAMES_MOST        6    /* names in one statement */
#define CHANGE_CLEAR      0.02 /* threshold for a change of speed, as in 'compare' */
#define WAIT_SHARE        0.10

struct analysis {
	const struct rfl_report *r;
	struct rfl_page *page;
	struct rfl_buf name, text; /* scratch */
};

static void item(struct analysis *a, const char *text)
{
	rfl_page_text(a->page, RFL_BLOCK_ITEM, "%s", text);
}

static bool has_rate(const struct rfl_point *p)
{
	return isfinite(p->percent_of_attainable);
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- points ---- */

enum limit { BY_MEMORY, BY_COMPUTE, BY_BOTH, BY_NEITHER, ABOVE, BY_CONSTRUCTION, LIMITS };

static enum limit limit_of(const struct rfl_point *p)
{
	if (rfl_text_same(p->bytes_source, "lower-bound"))
		return BY_CONSTRUCTION;
	if (rfl_verdict_exceeds(p))
		return ABOVE;
	if (p->percent_of_attainable < FAR_BELOW_PERCENT)
		return BY_NEITHER;
	if (rfl_text_same(p->bound, rfl_bound_names[RFL_BOUND_MEMORY]))
		return BY_MEMORY;
	return rfl_text_same(p->bound, rfl_bound_names[RFL_BOUND_COMPUTE]) ? BY_COMPUTE : BY_BOTH;
}

/* Append "a (52.3 %), b (61.4 %) and 3 more" for the points with a limit. @return their number */
static size_t list_limited(struct analysis *a, enum limit limit)
{
	size_t n = 0;

	rfl_buf_reset(&a->text);
	for (size_t i = 0; i < a->r->points->n; i++) {
		const struct rfl_point *p = &a->r->points->points[i];

		if (!has_rate(p) || limit_of(p) != limit)
			continue;
		if (n++ < NAMES_MOST)
			rfl_buf_printf(&a->text, "%s%s (%.3g %%)", n > 1 ? "; " : "",
				       rfl_report__point_name(p, &a->name),
				       p->percent_of_attainable);
	}
	if (n > NAMES_MOST)
		rfl_buf_printf(&a->text, "; and %zu more", n - NAMES_MOST);
	return n;
}

static void say_bounds(struct analysis *a)
{
	static const char *const says[LIMITS] = {
		[BY_MEMORY] = "limited by memory bandwidth",
		[BY_COMPUTE] = "limited by compute",
		[BY_BOTH] = "at the knee, where both ceilings limit",
		[BY_NEITHER] = "below 30 % of the roof: neither ceiling explains the time",
		[ABOVE] = "above the roof: the bytes, the FLOPs or the ceiling are wrong",
		[BY_CONSTRUCTION] =
			"on the bandwidth roof by construction: their bytes are a lower "
			"bound, so that nothing follows about the limit",
	};
	size_t total = 0;

	for (size_t i = 0; a->r->points && i < a->r->points->n; i++)
		total += has_rate(&a->r->points->points[i]);
	for (enum limit limit = 0; total && limit < LIMITS; limit++) {
		const size_t n = list_limited(a, limit);

		if (n)
			rfl_page_text(a->page, RFL_BLOCK_ITEM, "%zu of %zu point%s %s %s: %s.", n,
				      total, plural(total), n == 1 ? "is" : "are", says[limit],
				      rfl_buf_str(&a->text));
	}
}

static void say_shares(struct analysis *a)
{
	const struct rfl_point *best = NULL, *worst = NULL;
	char name[256];

	for (size_t i = 0; a->r->points && i < a->r->points->n; i++) {
		const struct rfl_point *p = &a->r->points->points[i];

		if (!has_rate(p) || limit_of(p) == BY_CONSTRUCTION || limit_of(p) == ABOVE)
			continue;
		if (!best || p->percent_of_attainable > best->percent_of_attainable)
			best = p;
		if (!worst || p->percent_of_attainable < worst->percent_of_attainable)
			worst = p;
	}
	if (!best || best == worst)
		return;
	(void)snprintf(name, sizeof(name), "%s", rfl_report__point_name(best, &a->name));
	rfl_page_text(a->page, RFL_BLOCK_ITEM,
		      "The largest share of the roof is %.3g %% (%s: %.3g of %.3g GFLOP/s), the "
		      "smallest %.3g %% (%s: %.3g of %.3g GFLOP/s).",
		      best->percent_of_attainable, name, best->attained_gflops,
		      best->attainable_gflops, worst->percent_of_attainable,
		      rfl_report__point_name(worst, &a->name), worst->attained_gflops,
		      worst->attainable_gflops);
}

static int by_headroom(const void *x, const void *y)
{
	const struct rfl_point *a = *(const struct rfl_point *const *)x;
	const struct rfl_point *b = *(const struct rfl_point *const *)y;

	if (a->headroom_s != b->headroom_s)
		return a->headroom_s < b->headroom_s ? 1 : -1;
	return (a > b) - (a < b);
}

/* The points with the most time to win, first. */
static void say_headroom(struct analysis *a)
{
	const size_t most = a->r->points ? a->r->points->n : 0;
	const struct rfl_point **list = rfl_arena_array(a->page->arena, most + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; list && i < most; i++) {
		const struct rfl_point *p = &a->r->points->points[i];

		if (has_rate(p) && p->headroom_s > 0 && limit_of(p) != BY_CONSTRUCTION)
			list[n++] = p;
	}
	if (n)
		qsort(list, n, sizeof(const struct rfl_point *), by_headroom);
	for (size_t i = 0; i < n && i < 3; i++) {
		const struct rfl_point *p = list[i];
		const double data = p->data_wait_ms / 1e3;

		rfl_buf_reset(&a->text);
		if (data > WAIT_SHARE * p->step_s)
			rfl_buf_printf(&a->text, "; first of all, %.3g ms of it wait for data",
				       p->data_wait_ms);
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "%s: a step takes %.4g ms and would take %.4g ms at the %s roof, "
			      "%.4g ms (%.3g %%) less%s.",
			      rfl_report__point_name(p, &a->name), 1e3 * p->step_s,
			      1e3 * (p->step_s - p->headroom_s), p->bound ? p->bound : "",
			      1e3 * p->headroom_s, 100 * p->headroom_s / p->step_s,
			      rfl_buf_str(&a->text));
	}
}

/* ---- effects: two configurations that differ in one fact ---- */

struct effect {
	const char *heading, *what;
	enum rfl_ledger_at column;
	enum rfl_ledger_at also[2]; /* columns that follow from it */
	bool ways; /* the way it was run differs as well: a comparison of environments */
};

static const struct effect effects[] = {
	{ "Effect of the batch size",
	  "batch size",
	  RFL_LEDGER_AT_batch,
	  { RFL_LEDGER_AT_micro_batch, RFL_LEDGER_AT_iters },
	  false },
	{ "Effect of the precision",
	  "precision",
	  RFL_LEDGER_AT_precision,
	  { RFL_LEDGER_AT_autocast, RFL_LEDGER_AT_iters },
	  false },
	{ "Effect of the layout",
	  "layout",
	  RFL_LEDGER_AT_layout,
	  { RFL_LEDGER_AT_layout, RFL_LEDGER_AT_iters },
	  false },
	{ "Environments",
	  "environment",
	  RFL_LEDGER_AT_env,
	  { RFL_LEDGER_AT_env, RFL_LEDGER_AT_iters },
	  true },
};

static bool differ_only_in(const struct effect *e, const struct rfl_ledger_row *x,
			   const struct rfl_ledger_row *y)
{
	const struct rfl_field *f = &rfl_ledger_fields[e->column];

	if (!rfl_field_known(f, x) || !rfl_field_known(f, y) || rfl_field_same(f, x, y))
		return false;
	for (size_t i = 0; i < rfl_nfacts; i++) {
		const enum rfl_ledger_at at = rfl_facts[i].column;

		if (at == e->column || at == e->also[0] || at == e->also[1] ||
		    rfl_facts[i].role == RFL_FACT_NOTE ||
		    (e->ways && rfl_facts[i].role == RFL_FACT_WAY))
			continue;
		if (!rfl_fact_same(&rfl_facts[i], x, y))
			return false;
	}
	return true;
}

struct change {
	const char *name, *from, *to, *reading;
	struct rfl_speed_ratio ratio;
};
#define OF                    struct change
#define TEXT(member_, title_) RFL_CELL(OF, member_), .key = (title_), .title = (title_)
#define REAL(member_, title_) TEXT(member_, title_), .kind = RFL_COLUMN_REAL, .decimals = 3
static const struct rfl_column of_changes[] = {
	{ TEXT(name, "Baseline") },     { TEXT(from, "From") },          { TEXT(to, "To") },
	{ REAL(ratio.value, "Ratio") }, { REAL(ratio.lo, "95 % from") }, { REAL(ratio.hi, "to") },
	{ TEXT(reading, "Reading") },
};
#undef OF

/* The ratio of the speeds of two configurations; NaN without runs. */
static struct rfl_speed_ratio ratio_of(struct analysis *a, const struct rfl_repeats_config *x,
				       const struct rfl_repeats_config *y)
{
	struct rfl_speed_ratio ratio = { NAN, NAN, NAN };
	double *values = rfl_alloc_array(x->n + y->n + 1, sizeof(*values));

	for (size_t i = 0; values && i < x->n; i++)
		values[i] = x->runs[i].value;
	for (size_t i = 0; values && i < y->n; i++)
		values[x->n + i] = y->runs[i].value;
	if (!values || (x->n && y->n &&
			rfl_compare_ratio(values, x->n, values + x->n, y->n,
					  a->r->repeats->metric->speed, &ratio, NULL) != RFL_OK))
		a->page->failed = true;
	free(values);
	return ratio;
}

/* The first configuration with which another is compared: the smallest batch, the first precision
 * or environment of the ledger. */
static const struct rfl_repeats_config *base_of(const struct rfl_repeats *r, const struct effect *e,
						size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (r->configs[k].n && differ_only_in(e, r->configs[k].row, r->configs[i].row))
			return &r->configs[k];
	return NULL;
}

static void say_effect(struct analysis *a, const struct effect *e)
{
	const struct rfl_field *f = &rfl_ledger_fields[e->column];
	struct rfl_table *t = rfl_table_new(of_changes, RFL_ARRAY_LEN(of_changes));
	char from[RFL_NUM_MAX], to[RFL_NUM_MAX];
	size_t n[RFL_SPEED_VERDICTS] = { 0 }, total = 0, single = 0;
	double logs = 0, low = INFINITY, high = 0;

	for (size_t i = 0; a->r->repeats && i < a->r->repeats->n; i++) {
		const struct rfl_repeats_config *y = &a->r->repeats->configs[i];
		const struct rfl_repeats_config *x = base_of(a->r->repeats, e, i);
		enum rfl_speed_verdict verdict;
		struct change row;

		if (!x || !y->n)
			continue;
		row = (struct change){
			.name = rfl_report__name(a->r, x, &a->name),
			.from = rfl_field_write(f, x->row, from),
			.to = rfl_field_write(f, y->row, to),
			.ratio = ratio_of(a, x, y),
		};
		if (!(row.ratio.value > 0))
			continue;
		verdict = rfl_compare_verdict(&row.ratio, CHANGE_CLEAR);
		row.reading = isnan(row.ratio.lo) ? "one repeat: no interval"
						  : rfl_speed_verdict_names[verdict];
		n[verdict]++;
		single += isnan(row.ratio.lo) ? 1 : 0;
		total++;
		logs += log(row.ratio.value);
		low = row.ratio.value < low ? row.ratio.value : low;
		high = row.ratio.value > high ? row.ratio.value : high;
		rfl_table_add(t, &row, 1, sizeof(row));
	}
	if (total) {
		rfl_page_heading(a->page, 3, "%s", e->heading);
		rfl_page_text(a->page, RFL_BLOCK_PARAGRAPH,
			      "In %zu comparison%s that differ%s only in the %s%s, the ratio of "
			      "samples per second is between %.3g and %.3g, with a geometric mean "
			      "of %.3g: %zu faster, %zu slower, %zu the same within %g %%, %zu "
			      "unclear%s.",
			      total, plural(total), total == 1 ? "s" : "", e->what,
			      e->ways ? " (and in what the environment brings: device, threads, "
					"engine)"
				      : "",
			      low, high, exp(logs / (double)total), n[RFL_SPEED_FASTER],
			      n[RFL_SPEED_SLOWER], n[RFL_SPEED_SAME], 100 * CHANGE_CLEAR,
			      n[RFL_SPEED_UNCLEAR],
			      single ? " (configurations with one repeat have no interval)" : "");
	}
	rfl_table_note(t,
		       "Ratio of the geometric means, with Welch's 95 %% interval; faster or "
		       "slower if the whole interval is beyond %g %%.",
		       100 * CHANGE_CLEAR);
	rfl_page_table(a->page, "Ratios of samples per second", t);
}

/* ---- variability ---- */

static void say_spread(struct analysis *a)
{
	const struct rfl_repeats_config *worst = NULL;
	size_t repeated = 0, steady = 0, drifting = 0, outliers = 0;

	for (size_t i = 0; a->r->repeats && i < a->r->repeats->n; i++) {
		const struct rfl_repeats_config *c = &a->r->repeats->configs[i];

		if (!isfinite(c->cv))
			continue;
		repeated++;
		steady += c->cv <= RFL_REPEATS_CV_MAX;
		drifting += (c->flags & RFL_REPEATS_DRIFT) != 0;
		outliers += (c->flags & RFL_REPEATS_OUTLIER) != 0;
		if (!worst || c->cv > worst->cv)
			worst = c;
	}
	if (!worst)
		return;
	rfl_page_text(a->page, RFL_BLOCK_ITEM,
		      "%zu of %zu configuration%s with repeats %s a coefficient of variation of "
		      "at most %g %%; the largest is %.3g %% (%s, n = %zu).",
		      steady, repeated, plural(repeated), steady == 1 ? "has" : "have",
		      100 * RFL_REPEATS_CV_MAX, 100 * worst->cv,
		      rfl_report__name(a->r, worst, &a->name), worst->n);
	if (drifting)
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "%zu configuration%s from the first repeat to the last by more than "
			      "%g %%.",
			      drifting, drifting == 1 ? " drifts" : "s drift",
			      100 * RFL_REPEATS_DRIFT_MAX);
	if (outliers)
		rfl_page_text(a->page, RFL_BLOCK_ITEM, "%zu configuration%s an outlier.", outliers,
			      outliers == 1 ? " has" : "s have");
}

/* ---- phases ---- */

static void say_phases(struct analysis *a)
{
	double data = 0, forward = 0, backward = 0, optimizer = 0, step = 0;
	size_t n = 0;

	for (size_t i = 0; a->r->repeats && i < a->r->repeats->n; i++) {
		const struct rfl_repeats_config *c = &a->r->repeats->configs[i];

		for (size_t k = 0; k < c->n; k++) {
			const struct rfl_ledger_row *row = rfl_report__row(a->r, c->runs[k].run);

			if (!(row->step_ms_mean > 0) || isnan(row->fwd_ms_mean + row->bwd_ms_mean))
				continue;
			n++;
			step += row->step_ms_mean;
			forward += row->fwd_ms_mean;
			backward += row->bwd_ms_mean;
			optimizer += isnan(row->opt_ms_mean) ? 0 : row->opt_ms_mean;
			data += isnan(row->data_wait_ms_mean) ? 0 : row->data_wait_ms_mean;
		}
	}
	if (n)
		rfl_page_text(
			a->page, RFL_BLOCK_ITEM,
			"In the steps of %zu run%s, the forward pass takes "
			"%.3g %% of the time, the backward pass %.3g %% (%.3g times the forward), "
			"the optimizer %.3g %% and waiting for data %.3g %%.",
			n, plural(n), 100 * forward / step, 100 * backward / step,
			backward / forward, 100 * optimizer / step, 100 * data / step);
}

/* The rules in the order of the report. */
static const struct {
	const char *heading;
	void (*say)(struct analysis *a);
} rules[] = {
	{ "What limits the points", say_bounds }, { "Share of the roof", say_shares },
	{ "What would help most", say_headroom }, { "Variability", say_spread },
	{ "Where the time goes", say_phases },
};

static void init(struct analysis *a, const struct rfl_report *r, struct rfl_page *page)
{
	*a = (struct analysis){ .r = r, .page = page };
	rfl_buf_init(&a->name, 0);
	rfl_buf_init(&a->text, 0);
}

static void fini(struct analysis *a)
{
	a->page->failed |= a->name.failed || a->text.failed;
	rfl_buf_fini(&a->name);
	rfl_buf_fini(&a->text);
}

void rfl_report__analysis(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t first = page->n;
	struct analysis a;

	init(&a, r, page);
	for (size_t i = 0; i < RFL_ARRAY_LEN(rules); i++) {
		const size_t at = page->n;

		rfl_page_heading(page, 3, "%s", rules[i].heading);
		rules[i].say(&a);
		if (page->n == at + 1) /* the rule does not apply */
			page->n = at;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(effects); i++)
		say_effect(&a, &effects[i]);
	if (page->n == first)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "Nothing follows from these files: an analysis needs points "
			      "(--points FILE), or several configurations in the ledger.");
	fini(&a);
}

/* ---- limitations ---- */

static void say_missing_inputs(struct analysis *a)
{
	const struct {
		const void *input;
		const char *says;
	} inputs[] = {
		{ a->r->points, "no points: the report cannot relate the runs to the ceilings" },
		{ a->r->peaks, "no ceilings" },
		{ a->r->complexity, "no counts of the networks (--complexity-json)" },
		{ a->r->captures,
		  "no hardware counters: FLOPs and bytes are counted from the networks" },
		{ a->r->matrix, "no matrix: planned runs that are missing are not known" },
		{ a->r->nenvs ? a->r->envs : NULL, "no record of the environments (--env)" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(inputs); i++)
		if (!inputs[i].input)
			rfl_page_text(a->page, RFL_BLOCK_ITEM, "Not given: %s.", inputs[i].says);
}

static void say_failed_runs(struct analysis *a)
{
	const struct rfl_ledger *ledger = a->r->runs ? a->r->runs->ledger : NULL;

	for (size_t i = 0; ledger && i < ledger->nrows; i++) {
		const struct rfl_ledger_row *row = &ledger->rows[i];
		size_t n = 0, before = 0;

		if (!row->status || strcmp(row->status, "ok") == 0)
			continue;
		for (size_t k = 0; k < ledger->nrows; k++) {
			const bool alike =
				rfl_text_same(ledger->rows[k].status, row->status) &&
				rfl_text_same(ledger->rows[k].error_text, row->error_text);

			n += alike;
			before += alike && k < i;
		}
		if (before == 0)
			rfl_page_text(a->page, RFL_BLOCK_ITEM,
				      "%zu run%s ended with status %s (first: %s)%s%s.", n,
				      plural(n), row->status, row->label ? row->label : "no label",
				      row->error_text ? ": " : "",
				      row->error_text ? row->error_text : "");
	}
}

static void say_few_repeats(struct analysis *a)
{
	size_t single = 0, n = 0;

	for (size_t i = 0; a->r->repeats && i < a->r->repeats->n; i++) {
		single += a->r->repeats->configs[i].n == 1;
		n += a->r->repeats->configs[i].n > 0;
	}
	if (single)
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "%zu of %zu configuration%s %s run once: %s spread is not known.",
			      single, n, plural(n), single == 1 ? "was" : "were",
			      single == 1 ? "its" : "their");
}

static void say_flags(struct analysis *a)
{
	static const struct {
		const char *flag, *says;
	} flags[] = {
		{ "unstable", "have unsteady step times" },
		{ "drift", "drifted within the measured window" },
		{ "loader_bound", "waited for the data loader" },
		{ "throttled", "were throttled" },
		{ "cold", "began before the machine was warm" },
	};
	const struct rfl_ledger *ledger = a->r->runs ? a->r->runs->ledger : NULL;

	for (size_t f = 0; ledger && f < RFL_ARRAY_LEN(flags); f++) {
		size_t n = 0;

		for (size_t i = 0; i < ledger->nrows; i++) {
			struct rfl_span rest =
				rfl_span_of(ledger->rows[i].flags ? ledger->rows[i].flags : "");
			struct rfl_span word;

			while (rfl_span_next_word(&rest, &word))
				n += rfl_span_is(word, flags[f].flag);
		}
		if (n)
			rfl_page_text(a->page, RFL_BLOCK_ITEM, "%zu of %zu runs %s (flag %s).", n,
				      ledger->nrows, flags[f].says, flags[f].flag);
	}
}

/* Ceilings that limit points and were not measured, and those that are unknown. */
static void say_ceilings(struct analysis *a)
{
	size_t given = 0, n = 0;

	for (size_t i = 0; a->r->points && i < a->r->points->n; i++) {
		const struct rfl_point *p = &a->r->points->points[i];

		n += has_rate(p);
		given += has_rate(p) && !(rfl_text_same(p->peak_gflops_status, "measured") &&
					  rfl_text_same(p->peak_gbps_status, "measured"));
	}
	if (given)
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "%zu of %zu point%s %s under a ceiling that was not measured on the "
			      "machine; its share of the roof depends on a value from elsewhere.",
			      given, n, plural(n), given == 1 ? "is" : "are");
	for (size_t i = 0; a->r->peaks && i < a->r->peaks->nenvs; i++) {
		const struct rfl_peaks_env *env = &a->r->peaks->envs[i];

		for (size_t k = 0; k < env->ncompute + env->nlevels; k++) {
			const bool memory = k >= env->ncompute;
			const struct rfl_peak *p = memory ? &env->levels[k - env->ncompute].peak
							  : &env->compute[k].peak;

			if (!rfl_peak_usable(p))
				rfl_page_text(a->page, RFL_BLOCK_ITEM, "%s: %s is %s%s%s.",
					      env->name,
					      memory ? env->levels[k - env->ncompute].cell
						     : env->compute[k].cell,
					      rfl_peak_status_name(p->status),
					      p->reason ? ": " : "", p->reason ? p->reason : "");
		}
	}
}

static void doubt(const char *env, const char *cell, const char *text, void *ctx)
{
	struct analysis *a = ctx;

	rfl_page_text(a->page, RFL_BLOCK_ITEM, "Doubtful: %s: %s: %s.", env, cell, text);
}

static void say_doubts(struct analysis *a)
{
	if (a->r->peaks)
		(void)rfl_peaks_check(a->r->peaks, NULL, doubt, a);
}

static void say_bytes(struct analysis *a)
{
	size_t counted = 0, lower = 0, doubtful = 0, n = 0;

	for (size_t i = 0; a->r->points && i < a->r->points->n; i++) {
		const struct rfl_point *p = &a->r->points->points[i];
		const char *source = p->bytes_source ? p->bytes_source : "";

		n++;
		lower += strcmp(source, "lower-bound") == 0;
		counted += strncmp(source, "unfused", 7) == 0 || strcmp(source, "fused") == 0 ||
			   strcmp(source, "compulsory") == 0;
		doubtful += p->counters_validity && strcmp(p->counters_validity, "ok") != 0;
	}
	if (counted)
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "The bytes of %zu of %zu point%s are counted from the network, not "
			      "measured: caches and fused kernels can move fewer, padding and "
			      "copies more.",
			      counted, n, plural(n));
	if (lower)
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "The bytes of %zu of %zu point%s are a lower bound (rate / "
			      "bandwidth), which places them on the roof.",
			      lower, n, plural(n));
	if (doubtful)
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "The counters of %zu point%s are incomplete, estimated or doubtful.",
			      doubtful, plural(doubtful));
}

static void say_counters(struct analysis *a)
{
	struct rfl_buf sets;

	rfl_buf_init(&sets, 0);
	for (size_t i = 0; a->r->captures && i < a->r->captures->n; i++) {
		const struct rfl_capture *c = a->r->captures->captures[i];

		for (size_t k = 0; k < c->nrefusals; k++) {
			rfl_buf_reset(&sets);
			if (rfl_capture_refused_alike(c, k, &sets))
				rfl_page_text(a->page, RFL_BLOCK_ITEM,
					      "Counters of %s: %s not counted: %s.",
					      c->label ? c->label : "a run", rfl_buf_str(&sets),
					      c->refusals[k].reason);
		}
	}
	rfl_buf_fini(&sets);
}

/* Totals that are not sound; captures with the same reason are counted. */
static void say_totals(struct analysis *a)
{
	static const struct {
		enum rfl_quantity quantity;
		const char *name;
	} totals[] = { { RFL_QUANTITY_FLOPS, "FLOPs" }, { RFL_QUANTITY_DRAM, "DRAM bytes" } };
	const struct rfl_captures *all = a->r->captures;

	for (size_t q = 0; all && q < RFL_ARRAY_LEN(totals); q++)
		for (size_t i = 0; i < all->n; i++) {
			const struct rfl_amount *t = &all->captures[i]->total[totals[q].quantity];
			const char *label = all->captures[i]->label;
			size_t n = 0, before = 0;

			if (t->validity == RFL_VALID || !t->reason)
				continue;
			for (size_t k = 0; k < all->n; k++) {
				const struct rfl_amount *o =
					&all->captures[k]->total[totals[q].quantity];
				const bool alike = o->validity == t->validity &&
						   rfl_text_same(o->reason, t->reason);

				n += alike;
				before += alike && k < i;
			}
			if (before == 0)
				rfl_page_text(a->page, RFL_BLOCK_ITEM,
					      "%s of %zu capture%s: %s (first: %s): %s.",
					      totals[q].name, n, plural(n),
					      rfl_validity_names[t->validity],
					      label ? label : "no label", t->reason);
		}
}

static void say_synthetic(struct analysis *a)
{
	const struct rfl_ledger *ledger = a->r->runs ? a->r->runs->ledger : NULL;
	size_t n = 0;

	for (size_t i = 0; ledger && i < ledger->nrows; i++)
		n += rfl_text_same(ledger->rows[i].data_mode, "synthetic");
	if (n)
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "%zu of %zu run%s used synthetic data, without reading or decoding "
			      "images.",
			      n, ledger->nrows, plural(ledger->nrows));
}

static void say_notes(struct analysis *a)
{
	struct rfl_span rest, line;

	if (!a->r->repeats)
		return;
	rest = rfl_span_of(rfl_buf_str(&a->r->repeats->notes));
	while (rfl_span_next_line(&rest, &line))
		if (!rfl_span_starts(line, "failed: ")) /* see say_failed_runs() */
			rfl_page_text(a->page, RFL_BLOCK_ITEM, "%.*s.", (int)line.len, line.at);
}

/* Points that belong to other files than those of the report. */
static void say_other_files(struct analysis *a)
{
	const struct rfl_point *p = a->r->points ? a->r->points->points : NULL;
	bool ledger = false, peaks = false;

	for (size_t i = 0; p && i < a->r->points->n; i++, p++) {
		ledger |= a->r->runs_hash && p->ledger_hash &&
			  strcmp(p->ledger_hash, a->r->runs_hash) != 0;
		peaks |= a->r->peaks && p->peaks_hash &&
			 strcmp(p->peaks_hash, a->r->peaks->hash) != 0;
	}
	if (ledger)
		item(a, "The points were made from another state of the ledger than this report; "
			"run 'roofline points' again.");
	if (peaks)
		item(a, "The points were made with other ceilings than this report; run 'roofline "
			"points' again.");
}

static void (*const limitations[])(struct analysis *a) = {
	say_missing_inputs, say_other_files, say_failed_runs, say_few_repeats,
	say_flags,          say_ceilings,    say_doubts,      say_bytes,
	say_counters,       say_totals,      say_synthetic,   say_notes,
};

void rfl_report__limitations(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t first = page->n;
	struct analysis a;

	init(&a, r, page);
	for (size_t i = 0; i < RFL_ARRAY_LEN(limitations); i++)
		limitations[i](&a);
	if (page->n == first)
		item(&a, "None that these files show.");
	fini(&a);
}
