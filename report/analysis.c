/*
 * analysis.c - the statements of a report, with their numbers. Each rule is a row of a table; a
 * rule that does not apply writes nothing.
 */
#include "report/report_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "report/runs.h"
#include "roofline/step_time.h"
#include "roofline/verdict.h"

#define NAMES_MOST   6    /* names in one statement */
#define CHANGE_CLEAR 0.02 /* threshold for a change of speed, as in 'compare' */
#define SUMMARY_MOST 30   /* points in the table of the summary */

/* A point whose share of the roof is known. */
struct rated {
	const struct rfl_point *p;
	enum rfl_bound bound;
};

struct analysis {
	const struct rfl_report *r;
	struct rfl_page *page;
	struct rated *rated;
	size_t n;
	struct rfl_buf text; /* scratch */
};

static void init(struct analysis *a, const struct rfl_report *r, struct rfl_page *page)
{
	const size_t most = r->points ? r->points->n : 0;

	*a = (struct analysis){ .r = r, .page = page };
	rfl_buf_init(&a->text, 0);
	a->rated = rfl_arena_array(page->arena, most + 1, sizeof(*a->rated));
	page->failed |= !a->rated;
	for (size_t i = 0; i < most; i++) {
		const struct rfl_point *p = &r->points->points[i];
		const enum rfl_bound bound = rfl_point_verdict(p).bound;

		if (bound != RFL_BOUND_UNKNOWN && isfinite(p->percent_of_attainable))
			a->rated[a->n++] = (struct rated){ p, bound };
	}
}

static void fini(struct analysis *a)
{
	a->page->failed |= a->text.failed;
	rfl_buf_fini(&a->text);
}

/* ---- points ---- */

static void say_bounds(struct analysis *a)
{
	for (enum rfl_bound bound = 0; bound < RFL_BOUND_UNKNOWN; bound++) {
		const struct rfl_bound_words *w = &rfl_bound_words[bound];
		size_t n = 0;

		rfl_buf_reset(&a->text);
		for (size_t i = 0; i < a->n; i++)
			if (a->rated[i].bound == bound && n++ < NAMES_MOST)
				rfl_buf_printf(&a->text, "%s%s (%.3g %%%s)", n > 1 ? "; " : "",
					       rfl_report__point_name(a->page, a->rated[i].p),
					       a->rated[i].p->percent_of_attainable,
					       n > 1 ? "" : " of the roof");
		if (n > NAMES_MOST)
			rfl_buf_printf(&a->text, "; and %zu more", n - NAMES_MOST);
		if (n)
			rfl_page_text(a->page, RFL_BLOCK_ITEM,
				      "%zu of %zu point%s %s %s%s%s%s: %s.", n, a->n, plural(a->n),
				      n == 1 ? "is" : "are", w->adjective, *w->means ? " (" : "",
				      w->means, *w->means ? ")" : "", rfl_buf_str(&a->text));
	}
}

static void say_shares(struct analysis *a)
{
	const struct rfl_point *best = NULL, *worst = NULL;

	for (size_t i = 0; i < a->n; i++) {
		const struct rfl_point *p = a->rated[i].p;

		if (a->rated[i].bound == RFL_BOUND_BY_CONSTRUCTION ||
		    a->rated[i].bound == RFL_BOUND_ABOVE)
			continue;
		if (!best || p->percent_of_attainable > best->percent_of_attainable)
			best = p;
		if (!worst || p->percent_of_attainable < worst->percent_of_attainable)
			worst = p;
	}
	if (!best || best == worst)
		return;
	rfl_page_text(a->page, RFL_BLOCK_ITEM,
		      "The largest share of the roof is %.3g %% (%s: %.3g of %.3g GFLOP/s), the "
		      "smallest %.3g %% (%s: %.3g of %.3g GFLOP/s).",
		      best->percent_of_attainable, rfl_report__point_name(a->page, best),
		      best->attained_gflops, best->attainable_gflops, worst->percent_of_attainable,
		      rfl_report__point_name(a->page, worst), worst->attained_gflops,
		      worst->attainable_gflops);
}

/* Write the lowest and the highest rate of each environment. */
static void say_models(struct analysis *a)
{
	const struct rfl_points *points = a->r->points;

	for (size_t i = 0; points && i < points->n; i++) {
		const struct rfl_point *best = NULL, *worst = NULL;

		for (size_t k = 0; k < points->n && rfl_report__first_of_env(points, i); k++) {
			const struct rfl_point *p = &points->points[k];

			if (!rfl_text_same(p->env, points->points[i].env) ||
			    !(p->attained_gflops > 0))
				continue;
			if (!best || p->attained_gflops > best->attained_gflops)
				best = p;
			if (!worst || p->attained_gflops < worst->attained_gflops)
				worst = p;
		}
		if (!best || rfl_text_same(best->model, worst->model))
			continue;
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "The attained rate is between %.4g GFLOP/s (%s, %.3g FLOP/byte) and "
			      "%.4g GFLOP/s (%s, %.3g FLOP/byte), a factor of %.3g.",
			      worst->attained_gflops, rfl_report__point_name(a->page, worst),
			      worst->ai, best->attained_gflops,
			      rfl_report__point_name(a->page, best), best->ai,
			      best->attained_gflops / worst->attained_gflops);
	}
}

/* The share of a step that a point would save at its roof. */
static double share_saved(const struct rfl_point *p)
{
	return p->headroom_s / p->step_s;
}

static int by_share_saved(const void *x, const void *y)
{
	const struct rfl_point *a = *(const struct rfl_point *const *)x;
	const struct rfl_point *b = *(const struct rfl_point *const *)y;
	const double p = share_saved(a), q = share_saved(b);

	return p > q ? -1 : p < q ? 1 : (a > b) - (a < b);
}

/* The points that would save the largest share of their step, one of each model and environment.
 * Milliseconds would favour large batches. */
static void say_headroom(struct analysis *a)
{
	const struct rfl_point **list = rfl_arena_array(a->page->arena, a->n + 1, sizeof(*list));
	size_t n = 0, said = 0;

	a->page->failed |= !list;
	for (size_t i = 0; list && i < a->n; i++) {
		const struct rfl_point *p = a->rated[i].p;

		if (share_saved(p) > 0 && a->rated[i].bound != RFL_BOUND_BY_CONSTRUCTION &&
		    !(p->variant && strstr(p->variant, "warmup 0")))
			list[n++] = p;
	}
	if (n == 0)
		return;
	qsort(list, n, sizeof(const struct rfl_point *), by_share_saved);
	rfl_page_text(a->page, RFL_BLOCK_PARAGRAPH,
		      "The points that would save the largest share of their step by reaching the "
		      "roof, one per model and environment:");
	for (size_t i = 0; i < n && said < 3; i++) {
		const struct rfl_point *p = list[i];
		const double data = p->data_wait_ms / 1e3;
		char from[RFL_NUM_MAX], to[RFL_NUM_MAX];
		size_t k = 0;

		while (k < i && !(rfl_text_same(list[k]->model, p->model) &&
				  rfl_text_same(list[k]->env, p->env)))
			k++;
		if (k < i)
			continue;
		said++;
		rfl_num_people(1e3 * p->step_s, 4, from);
		rfl_num_people(1e3 * (p->step_s - p->headroom_s), 4, to);
		rfl_buf_reset(&a->text);
		if (data > RFL_VERDICT_DATA_WAIT * p->step_s)
			rfl_buf_printf(&a->text, "; %.3g ms of the step are spent waiting for data",
				       p->data_wait_ms);
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "%s: %.3g %% less, from %s ms to %s ms at the %s roof%s.",
			      rfl_report__point_name(a->page, p), 100 * share_saved(p), from, to,
			      rfl_bound_words[rfl_point_verdict(p).roof].word,
			      rfl_buf_str(&a->text));
	}
}

/* ---- effects: configurations that differ in one fact ---- */

static const struct {
	const char *heading, *what;
	enum rfl_ledger_at column;
} effects[] = {
	{ "Effect of the batch size", "batch size", RFL_LEDGER_AT_batch },
	{ "Effect of the precision", "precision", RFL_LEDGER_AT_precision },
	{ "Effect of the layout", "layout", RFL_LEDGER_AT_layout },
	{ "Environments", "environment (with its device, threads and engine)", RFL_LEDGER_AT_env },
};

static void say_effect(struct analysis *a, size_t effect)
{
	const struct rfl_fact *by = &rfl_facts[rfl_fact_find(effects[effect].column)];
	double logs = 0, low = INFINITY, high = 0;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_comparison *c = NULL;
	size_t n = 0, single = 0;
	char number[RFL_NUM_MAX];

	if (!a->r->repeats ||
	    rfl_compare_by(a->r->repeats, by, NULL, CHANGE_CLEAR, &c, &err) != RFL_OK) {
		a->page->failed |= err.rc == RFL_ENOMEM;
		return;
	}
	for (size_t i = 0; i < c->n; i++) {
		const struct rfl_speed_ratio ratio = c->pairs[i].ratio;

		if (!(ratio.value > 0))
			continue;
		c->pairs[n++] = c->pairs[i];
		single += isnan(ratio.lo) ? 1 : 0;
		logs += log(ratio.value);
		low = fmin(low, ratio.value);
		high = fmax(high, ratio.value);
	}
	if (n == 0)
		goto done;
	rfl_page_heading(a->page, 3, "%s", effects[effect].heading);
	rfl_page_text(a->page, RFL_BLOCK_PARAGRAPH,
		      "In %zu comparison%s of configurations that differ only in the %s, the ratio "
		      "of samples per second is between %.3g and %.3g, with a geometric mean of "
		      "%.3g: %zu faster, %zu slower, %zu the same within %g %%, %zu unclear%s.",
		      n, plural(n), effects[effect].what, low, high, exp(logs / (double)n),
		      c->count[RFL_SPEED_FASTER], c->count[RFL_SPEED_SLOWER],
		      c->count[RFL_SPEED_SAME], 100 * CHANGE_CLEAR, c->count[RFL_SPEED_UNCLEAR],
		      single ? " (configurations with one repeat have no interval)" : "");
	c->n = rfl_report__rows(a->page, n, "comparisons", "'roofline compare --by' prints all");
	rfl_buf_reset(&a->text);
	rfl_buf_printf(&a->text, "%s %s", by->name,
		       rfl_field_write(&rfl_ledger_fields[by->column], c->baseline, number));
	rfl_page_table(a->page, "Ratios of samples per second",
		       rfl_comparison_table(
			       c, true,
			       (const char *const[]){ rfl_buf_str(&a->text), "that of the row" },
			       ""));
done:
	rfl_comparison_free(c);
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
		      "%zu of %zu configuration%s with repeats %s a coefficient of variation "
		      "(standard deviation / mean) of at most %g %%; the largest is %.3g %% (%s, n "
		      "= %zu).",
		      steady, repeated, plural(repeated), steady == 1 ? "has" : "have",
		      100 * RFL_REPEATS_CV_MAX, 100 * worst->cv,
		      rfl_report__name(a->r, a->page, worst), worst->n);
	if (drifting)
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "%zu configuration%s from the first repeat to the last by more than "
			      "%g %% and by more than the 95 %% confidence interval of the drift.",
			      drifting, drifting == 1 ? " drifts" : "s drift",
			      100 * RFL_REPEATS_DRIFT_MAX);
	if (outliers)
		rfl_page_text(a->page, RFL_BLOCK_ITEM, "%zu configuration%s an outlier.", outliers,
			      outliers == 1 ? " has" : "s have");
}

/* ---- phases ---- */

struct phases {
	double step_ms, phase_ms[RFL_TIMED_PHASES];
	size_t n;
};

/* Add up the step times of the configurations of a mode, or of rows without one. Cold runs do not
 * count if others do. */
static struct phases phases_of(const struct analysis *a, const char *mode, bool cold)
{
	struct phases p = { .n = 0 };

	for (size_t i = 0; i < a->r->repeats->n; i++) {
		const struct rfl_repeats_config *c = &a->r->repeats->configs[i];
		const struct rfl_step_time t = rfl_step_time_of(a->r->runs, c);

		if (!rfl_text_same(c->row->mode, mode) || (!cold && c->row->warmup == 0) ||
		    isnan(t.step_s + t.phase_ms[RFL_TIMED_FORWARD] +
			  t.phase_ms[RFL_TIMED_BACKWARD]))
			continue;
		p.n++;
		p.step_ms += 1e3 * t.step_s;
		for (enum rfl_timed k = 0; k < RFL_TIMED_PHASES; k++)
			p.phase_ms[k] += isnan(t.phase_ms[k]) ? 0 : t.phase_ms[k];
	}
	return p;
}

static void say_phases(struct analysis *a)
{
	static const char *const modes[] = { "train", "fwd_bwd", NULL };

	for (size_t i = 0; a->r->repeats && i < RFL_ARRAY_LEN(modes); i++) {
		struct phases p = phases_of(a, modes[i], false);
		double share[RFL_TIMED_PHASES], all = 0;

		p = p.n ? p : phases_of(a, modes[i], true);
		for (enum rfl_timed k = 0; k < RFL_TIMED_PHASES; k++)
			all += share[k] = 100 * p.phase_ms[k] / p.step_ms;
		if (p.n == 0 || !isfinite(all))
			continue;
		const double ratio = share[RFL_TIMED_BACKWARD] / share[RFL_TIMED_FORWARD];
		rfl_buf_reset(&a->text);
		if (isfinite(ratio))
			rfl_buf_printf(&a->text, " (%.3g times the forward)", ratio);
		if (share[RFL_TIMED_OPTIMIZER] > 0)
			rfl_buf_printf(&a->text, ", the optimizer %.3g %%",
				       share[RFL_TIMED_OPTIMIZER]);
		if (share[RFL_TIMED_DATA_WAIT] > 0)
			rfl_buf_printf(&a->text, ", and waiting for data %s%.3g %%",
				       share[RFL_TIMED_DATA_WAIT] < 0.01 ? "less than " : "",
				       fmax(0.01, share[RFL_TIMED_DATA_WAIT]));
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "In the steps of %zu configuration%s%s%s, the forward pass takes "
			      "%.3g %% of the time, the backward pass %.3g %%%s.",
			      p.n, plural(p.n), modes[i] ? " in mode " : "",
			      modes[i] ? modes[i] : "", share[RFL_TIMED_FORWARD],
			      share[RFL_TIMED_BACKWARD], rfl_buf_str(&a->text));
	}
}

/* The rules in the order of the report. */
static const struct {
	const char *heading;
	void (*say)(struct analysis *a);
} rules[] = {
	{ "What limits the points", say_bounds },
	{ "Share of the roof", say_shares },
	{ "Models", say_models },
	{ "What would help most", say_headroom },
	{ "Variability", say_spread },
	{ "Where the time goes", say_phases },
};

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
		say_effect(&a, i);
	if (page->n == first)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "Nothing follows from these files: an analysis needs points "
			      "(--points FILE), or several configurations in the ledger.");
	fini(&a);
}

/* ---- summary ---- */

/* The configuration with the highest rate of each environment, in tokens for language models. */
static void say_fastest(struct analysis *a)
{
	const bool tokens = a->r->kind == RFL_REPORT_LM || a->r->kind == RFL_REPORT_ATTENTION;
	const struct rfl_repeats *r = a->r->repeats;

	for (size_t i = 0; r && i < r->n; i++) {
		const struct rfl_repeats_config *best = NULL;
		const char *env = r->configs[i].row->env;
		char mean[RFL_NUM_MAX], std[RFL_NUM_MAX];
		double most = 0, unit;
		size_t k = 0;

		while (k < i && !rfl_text_same(r->configs[k].row->env, env))
			k++;
		if (k < i) /* already reported */
			continue;
		for (; k < r->n; k++) {
			const struct rfl_repeats_config *c = &r->configs[k];

			unit = tokens ? (double)c->row->context_length : 1;
			if (c->n && rfl_text_same(c->row->env, env) &&
			    c->stats.mean * unit > most) {
				most = c->stats.mean * unit;
				best = c;
			}
		}
		if (!best)
			continue;
		unit = most / best->stats.mean;
		rfl_num_people(most, 4, mean);
		rfl_num_people(best->stats.std * unit, 2, std);
		rfl_buf_reset(&a->text);
		if (isnan(best->stats.std))
			rfl_buf_puts(&a->text, "one run");
		else
			rfl_buf_printf(&a->text, "n = %zu, standard deviation %s", best->n, std);
		rfl_page_text(a->page, RFL_BLOCK_ITEM, "Highest throughput: %s %s/s (%s, %s).",
			      mean, tokens ? "tokens" : "samples",
			      rfl_report__name(a->r, a->page, best), rfl_buf_str(&a->text));
	}
}

/* "3 points: 1 memory-bound, 2 compute-bound." */
static void count_limits(struct analysis *a)
{
	size_t n[RFL_BOUND_UNKNOWN] = { 0 };

	for (size_t i = 0; i < a->n; i++)
		n[a->rated[i].bound]++;
	rfl_buf_reset(&a->text);
	for (enum rfl_bound bound = 0; bound < RFL_BOUND_UNKNOWN; bound++)
		if (n[bound])
			rfl_buf_printf(&a->text, "%s%zu %s", a->text.len ? ", " : "", n[bound],
				       rfl_bound_words[bound].adjective);
	if (a->n)
		rfl_page_text(a->page, RFL_BLOCK_ITEM, "%zu point%s: %s.", a->n, plural(a->n),
			      rfl_buf_str(&a->text));
}

static void count_runs(struct analysis *a)
{
	const struct rfl_repeats *r = a->r->repeats;
	const struct rfl_ledger *ledger = a->r->runs ? a->r->runs->ledger : NULL;
	size_t ok = 0, flagged = 0;

	for (size_t i = 0; r && i < r->n; i++)
		ok += r->configs[i].n;
	for (size_t i = 0; ledger && i < ledger->nrows; i++)
		flagged += ledger->rows[i].flags && *ledger->rows[i].flags;
	if (r && r->n)
		rfl_page_text(a->page, RFL_BLOCK_ITEM,
			      "%zu of %zu run%s of %zu configuration%s %s.", ok, a->r->runs->n,
			      plural(a->r->runs->n), r->n, plural(r->n),
			      ok == 1 ? "was successful" : "were successful");
	if (flagged)
		rfl_page_text(
			a->page, RFL_BLOCK_ITEM,
			"%zu run%s flagged, for example for unsteady step times: see Limitations.",
			flagged, flagged == 1 ? " is" : "s are");
}

void rfl_report__summary(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t first = page->n;
	struct analysis a;

	init(&a, r, page);
	if (r->points)
		rfl_page_text(
			page, RFL_BLOCK_PARAGRAPH,
			"A point is a configuration: a model with its precision and batch size "
			"(bs). Its roof is the rate that memory bandwidth and compute allow at "
			"its arithmetic intensity, the FLOPs per byte of memory traffic.");
	count_runs(&a);
	say_fastest(&a);
	count_limits(&a);
	if (r->points && r->points->n > SUMMARY_MOST) {
		say_shares(&a);
	} else if (r->points) {
		rfl_page_table(page, "Throughput and share of the roof",
			       rfl_points_summary(r->points, true));
	}
	if (page->n == first)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "The files contain neither runs nor points.");
	fini(&a);
}
