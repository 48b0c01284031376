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

#define NAMES_MOST   6  /* names in one statement */
#define SUMMARY_MOST 30 /* points in the table of the summary */
#define STEPS_MOST   6  /* steps with statements on their parts */
#define PARTS_MOST   3  /* parts in one statement */

/* A point whose share of the roof is known. */
struct rated {
	const struct rfl_point *p;
	struct rfl_point_verdict v;
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
	a->rated = rfl_arena_array(page->arena, most, sizeof(*a->rated));
	for (size_t i = 0; i < most; i++) {
		const struct rfl_point *p = &r->points->points[i];
		const struct rfl_point_verdict v = rfl_point_verdict(p);

		if (v.bound != RFL_BOUND_UNKNOWN && isfinite(p->percent_of_attainable))
			a->rated[a->n++] = (struct rated){ p, v };
	}
}

/* Begin or continue a list in the scratch text. */
static void comma(struct analysis *a, const char *separator)
{
	rfl_buf_puts(&a->text, a->text.len ? separator : "");
}

/* ---- points ---- */

static void say_bounds(struct analysis *a)
{
	for (enum rfl_bound bound = 0; bound < RFL_BOUND_UNKNOWN; bound++) {
		const struct rfl_bound_words *w = &rfl_bound_words[bound];
		size_t n = 0;

		rfl_buf_reset(&a->text);
		for (size_t i = 0; i < a->n; i++)
			if (a->rated[i].v.bound == bound && n++ < NAMES_MOST) {
				comma(a, "; ");
				rfl_buf_printf(&a->text, "%s (%.3g %%%s)",
					       rfl_report__step_name(a->page, a->rated[i].p),
					       a->rated[i].p->percent_of_attainable,
					       n > 1 ? "" : " of the roof");
			}
		if (n > NAMES_MOST)
			rfl_buf_printf(&a->text, "; and %zu more", n - NAMES_MOST);
		if (n)
			rfl_page_item(a->page, "%zu of %zu point%s %s %s%s%s%s: %s.", n, a->n,
				      plural(a->n), n == 1 ? "is" : "are", w->adjective,
				      *w->means ? " (" : "", w->means, *w->means ? ")" : "",
				      rfl_buf_str(&a->text));
	}
}

static void say_shares(struct analysis *a)
{
	const struct rfl_point *best = NULL, *worst = NULL;

	for (size_t i = 0; i < a->n; i++) {
		const struct rfl_point *p = a->rated[i].p;

		if (a->rated[i].v.bound == RFL_BOUND_BY_CONSTRUCTION ||
		    a->rated[i].v.bound == RFL_BOUND_ABOVE)
			continue;
		if (!best || p->percent_of_attainable > best->percent_of_attainable)
			best = p;
		if (!worst || p->percent_of_attainable < worst->percent_of_attainable)
			worst = p;
	}
	if (!best || best == worst)
		return;
	rfl_page_item(a->page,
		      "The largest share of the roof is %.3g %% (%s: %.3g of %.3g GFLOP/s), the "
		      "smallest %.3g %% (%s: %.3g of %.3g GFLOP/s).",
		      best->percent_of_attainable, rfl_report__step_name(a->page, best),
		      best->attained_gflops, best->attainable_gflops, worst->percent_of_attainable,
		      rfl_report__step_name(a->page, worst), worst->attained_gflops,
		      worst->attainable_gflops);
}

/* Write the lowest and the highest rate of each environment. */
static void say_models(struct analysis *a)
{
	const size_t n = a->r->points ? a->r->points->n : 0;
	struct {
		const struct rfl_point *best, *worst;
	} *of = rfl_arena_array(a->page->arena, n, sizeof(*of));
	RFL_AUTO(texts) envs = { .arena = NULL };

	for (size_t i = 0; i < n; i++) {
		const struct rfl_point *p = &a->r->points->points[i];
		const size_t k = rfl_report__env(&envs, p->env);

		if (!(p->attained_gflops > 0))
			continue;
		if (!of[k].best || p->attained_gflops > of[k].best->attained_gflops)
			of[k].best = p;
		if (!of[k].worst || p->attained_gflops < of[k].worst->attained_gflops)
			of[k].worst = p;
	}
	for (size_t k = 0; k < envs.index.n; k++) {
		const struct rfl_point *best = of[k].best, *worst = of[k].worst;

		if (!best || rfl_text_same(best->model, worst->model))
			continue;
		rfl_page_item(a->page,
			      "The achieved rate is between %.4g GFLOP/s (%s, %.3g FLOP/byte) and "
			      "%.4g GFLOP/s (%s, %.3g FLOP/byte), a factor of %.3g.",
			      worst->attained_gflops, rfl_report__step_name(a->page, worst),
			      worst->ai, best->attained_gflops,
			      rfl_report__step_name(a->page, best), best->ai,
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
	const struct rated *a = *(const struct rated *const *)x;
	const struct rated *b = *(const struct rated *const *)y;
	const double p = share_saved(a->p), q = share_saved(b->p);

	return p > q ? -1 : p < q ? 1 : (a > b) - (a < b);
}

/* The points that would save the largest share of their step, one of each model and environment.
 * Milliseconds would favour large batches. */
static void say_headroom(struct analysis *a)
{
	const struct rated **list = rfl_arena_array(a->page->arena, a->n, sizeof(*list));
	size_t n = 0, said = 0;

	for (size_t i = 0; i < a->n; i++) {
		const struct rfl_point *p = a->rated[i].p;

		if (share_saved(p) > 0 && a->rated[i].v.bound != RFL_BOUND_BY_CONSTRUCTION &&
		    !(p->variant && strstr(p->variant, "warmup 0")))
			list[n++] = &a->rated[i];
	}
	if (n == 0)
		return;
	qsort(list, n, sizeof(const struct rated *), by_share_saved);
	rfl_page_para(a->page, "The points that would save the largest share of their step by "
			       "reaching the roof, one per model and environment:");
	for (size_t i = 0, k; i < n && said < 3; i++) {
		const struct rfl_point *p = list[i]->p;
		char from[RFL_NUM_MAX], to[RFL_NUM_MAX];

		for (k = 0; k < i; k++)
			if (rfl_text_same(list[k]->p->model, p->model) &&
			    rfl_text_same(list[k]->p->env, p->env))
				break;
		if (k < i)
			continue;
		said++;
		rfl_num_people(1e3 * p->step_s, 4, from);
		rfl_num_people(1e3 * (p->step_s - p->headroom_s), 4, to);
		rfl_buf_reset(&a->text);
		if (p->data_wait_ms / 1e3 > RFL_VERDICT_DATA_WAIT * p->step_s)
			rfl_buf_printf(&a->text, "; %.3g ms of the step are spent waiting for data",
				       p->data_wait_ms);
		rfl_page_item(a->page, "%s: %.3g %% less, from %s ms to %s ms at the %s roof%s.",
			      rfl_report__step_name(a->page, p), 100 * share_saved(p), from, to,
			      rfl_bound_words[list[i]->v.roof].word, rfl_buf_str(&a->text));
	}
}

/* ---- layers and kernels ---- */

/* The share of the step that a part would save at its roof. */
static double part_saves(const struct rfl_point *p)
{
	const double saved = p->time_share * share_saved(p);

	return saved > 0 ? saved : 0;
}

static double part_takes(const struct rfl_point *p)
{
	return p->time_share;
}

/* Append the parts with the largest values: "conv1 (12 %, memory), fc (5 %, compute)". */
static void list_parts(struct analysis *a, const struct rfl_point *parts, size_t n,
		       double (*value)(const struct rfl_point *p))
{
	const struct rfl_point *most[PARTS_MOST + 1];
	char name[RFL_CAPTURE_NAME_MAX + 1];
	size_t kept = 0, at;

	for (const struct rfl_point *p = parts; p < parts + n; p++) {
		for (at = kept; at > 0 && value(p) > value(most[at - 1]); at--)
			most[at] = most[at - 1];
		if (at < PARTS_MOST && value(p) > 0) {
			most[at] = p;
			kept = kept < PARTS_MOST ? kept + 1 : kept;
		}
	}
	for (size_t i = 0; i < kept; i++) {
		const char *bound = rfl_point_bound(most[i]);

		rfl_buf_printf(&a->text, "%s%s (%.3g %%%s%s)", i ? ", " : "",
			       rfl_report__part_name(most[i], name), 100 * value(most[i]),
			       bound ? ", " : "", bound ? bound : "");
	}
}

/* What the parts of one step say: where its time goes, and what would shorten it. */
static void say_step(struct analysis *a, const struct rfl_point *parts, size_t n)
{
	const char *what = parts->part_kind ? parts->part_kind : "part";
	double shares[RFL_BOUND_UNKNOWN + 1] = { 0 }, light = 0, saved = 0;
	size_t nlight = 0;

	for (const struct rfl_point *p = parts; p < parts + n; p++) {
		shares[rfl_point_verdict(p).bound] += p->time_share > 0 ? p->time_share : 0;
		saved += part_saves(p);
		if (p->flops_per_step == 0 && p->time_share > 0) {
			light += p->time_share;
			nlight++;
		}
	}
	rfl_buf_reset(&a->text);
	for (size_t i = 0; i <= RFL_BOUND_UNKNOWN; i++)
		if (shares[i] >= 0.001) {
			comma(a, ", ");
			rfl_buf_printf(&a->text, "%.3g %% %s", 100 * shares[i],
				       i < RFL_BOUND_UNKNOWN ? rfl_bound_words[i].adjective
							     : "without a verdict");
		}
	if (a->text.len == 0) /* no times */
		return;
	rfl_buf_puts(&a->text, ". The longest: ");
	list_parts(a, parts, n, part_takes);
	rfl_page_item(a->page, "%s: %zu %ss, by their share of the time: %s.",
		      rfl_report__step_name(a->page, parts), n, what, rfl_buf_str(&a->text));
	if (nlight)
		rfl_page_item(a->page,
			      "%zu %s%s without FLOPs (%.3g %% of the time) %s rated by the memory "
			      "bandwidth.",
			      nlight, what, plural(nlight), 100 * light,
			      nlight == 1 ? "is" : "are");
	if (!(saved > 0))
		return;
	rfl_buf_reset(&a->text);
	list_parts(a, parts, n, part_saves);
	rfl_page_item(a->page,
		      "If every %s reached its roof, the step would take %.3g %% less time. The "
		      "largest shares: %s.",
		      what, 100 * saved, rfl_buf_str(&a->text));
}

static bool same_step(const struct rfl_point *a, const struct rfl_point *b)
{
	return rfl_text_same(a->env, b->env) && rfl_text_same(a->model, b->model) &&
	       a->batch == b->batch &&
	       /* without a ledger, kernels have their own precision */
	       (a->batch < 1 || rfl_text_same(a->precision, b->precision)) &&
	       rfl_text_same(a->mode, b->mode) && rfl_text_same(a->variant, b->variant) &&
	       rfl_text_same(a->part_kind, b->part_kind);
}

/* The end of the step that begins at part i. */
static size_t step_end(const struct rfl_points *parts, size_t i)
{
	size_t end = i + 1;

	while (end < parts->n && same_step(&parts->points[i], &parts->points[end]))
		end++;
	return end;
}

static void say_parts(struct analysis *a)
{
	const struct rfl_points *parts = a->r->parts;
	size_t steps = 0;

	for (size_t i = 0, end; parts && i < parts->n; i = end) {
		end = step_end(parts, i);
		if (steps++ < STEPS_MOST)
			say_step(a, &parts->points[i], end - i);
	}
	if (steps > STEPS_MOST)
		rfl_page_item(a->page, "The parts of %zu more steps are in the files of --points.",
			      steps - STEPS_MOST);
}

/* ---- effects: configurations that differ in one field ---- */

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
	RFL_AUTOPTR(comparison) c = NULL;
	size_t n = 0, single = 0;
	char number[RFL_NUM_MAX];

	if (!a->r->repeats || rfl_compare_by(a->r->repeats, by, NULL, RFL_COMPARE_PERCENT / 100.0,
					     &c, NULL) != RFL_OK)
		return;
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
	rfl_buf_reset(&a->text);
	if (n > 1)
		rfl_buf_printf(&a->text, "between %.3g and %.3g, with a geometric mean of %.3g",
			       low, high, exp(logs / (double)n));
	else
		rfl_buf_printf(&a->text, "%.3g", low);
	if (n) {
		rfl_page_part(a->page, "%s", effects[effect].heading);
		rfl_page_para(a->page,
			      "In %zu comparison%s of configurations that differ only in the %s, "
			      "the ratio of samples per second is %s: %zu faster, %zu slower, %zu "
			      "the same within %d %%, %zu unclear%s.",
			      n, plural(n), effects[effect].what, rfl_buf_str(&a->text),
			      c->count[RFL_SPEED_FASTER], c->count[RFL_SPEED_SLOWER],
			      c->count[RFL_SPEED_SAME], RFL_COMPARE_PERCENT,
			      c->count[RFL_SPEED_UNCLEAR],
			      single ? " (configurations with one repeat have no interval)" : "");
		c->n = rfl_report__rows(a->page, n, "comparisons",
					"'roofline compare --by' prints all");
		rfl_buf_reset(&a->text);
		rfl_buf_printf(
			&a->text, "%s %s", by->name,
			rfl_field_write(&rfl_ledger_fields[by->column], c->baseline, number));
		rfl_page_table(a->page, "Ratios of samples per second",
			       rfl_comparison_table(c, true,
						    (const char *const[]){ rfl_buf_str(&a->text),
									   "the value in the row" },
						    ""));
	}
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
	rfl_page_item(
		a->page,
		"%zu of %zu configuration%s with repeats %s a coefficient of variation (standard "
		"deviation / mean) of at most %g %%; the largest is %.3g %% (%s, n = %zu).",
		steady, repeated, plural(repeated), steady == 1 ? "has" : "have",
		100 * RFL_REPEATS_CV_MAX, 100 * worst->cv, rfl_report__name(a->r, a->page, worst),
		worst->n);
	if (drifting)
		rfl_page_item(a->page,
			      "%zu configuration%s from the first repeat to the last by more than "
			      "%g %% and by more than the 95 %% confidence interval of the drift.",
			      drifting, drifting == 1 ? " drifts" : "s drift",
			      100 * RFL_REPEATS_DRIFT_MAX);
	if (outliers)
		rfl_page_item(a->page, "%zu configuration%s an outlier.", outliers,
			      outliers == 1 ? " has" : "s have");
}

/* ---- phases ---- */

struct phases {
	double step_ms, phase_ms[RFL_TIMED_PHASES];
	size_t n;
};

/* Add up the step times of all configurations with this mode, or without a mode. Cold runs are
 * skipped if there are others. */
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
		rfl_page_item(a->page,
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
	{ "Layers and kernels", say_parts },
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

		rfl_page_part(page, "%s", rules[i].heading);
		rules[i].say(&a);
		if (page->n == at + 1) /* the rule does not apply */
			page->n = at;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(effects); i++)
		say_effect(&a, i);
	if (page->n == first)
		rfl_report__lacks(r, page,
				  "an analysis: it needs points (--points FILE), or several "
				  "configurations in the ledger");
	rfl_buf_fini(&a.text);
}

/* ---- summary ---- */

/* Samples per second, of language models tokens per second. */
static double rate_of(const struct rfl_repeats_config *c)
{
	const int64_t tokens = c->row->context_length;

	return c->stats.mean * (double)(tokens > 0 ? tokens : 1);
}

/* The configuration with the highest rate of each environment, of language models apart. */
static void say_fastest(struct analysis *a)
{
	const struct rfl_repeats *r = a->r->repeats;
	const size_t n = r ? r->n : 0;
	const struct rfl_repeats_config **best =
		rfl_arena_array(a->page->arena, 2 * n, sizeof(*best));
	RFL_AUTO(texts) envs = { .arena = NULL };
	char mean[RFL_NUM_MAX], std[RFL_NUM_MAX];

	for (size_t i = 0; i < n; i++) {
		const struct rfl_repeats_config *c = &r->configs[i];
		const struct rfl_repeats_config **b;

		if (c->n == 0)
			continue;
		b = &best[2 * rfl_report__env(&envs, c->row->env) + (c->row->context_length > 0)];
		if (!*b || rate_of(c) > rate_of(*b))
			*b = c;
	}
	for (size_t k = 0; k < 2 * envs.index.n; k++) {
		if (!best[k])
			continue;
		rfl_num_people(rate_of(best[k]), 4, mean);
		rfl_num_people(best[k]->cv * rate_of(best[k]), 2, std);
		rfl_buf_reset(&a->text);
		if (isnan(best[k]->stats.std))
			rfl_buf_puts(&a->text, "one run");
		else
			rfl_buf_printf(&a->text, "n = %zu, standard deviation %s", best[k]->n, std);
		rfl_page_item(a->page, "Highest throughput: %s %s/s (%s, %s).", mean,
			      k % 2 ? "tokens" : "samples",
			      rfl_report__name(a->r, a->page, best[k]), rfl_buf_str(&a->text));
	}
}

/* "3 points: 1 memory-bound, 2 compute-bound." */
static void count_limits(struct analysis *a, const struct rfl_points *points)
{
	const char *what = points && points->n ? points->points->part_kind : NULL;
	size_t n[RFL_BOUND_UNKNOWN + 1] = { 0 }, all = 0;

	for (size_t i = 0; points && i < points->n; i++)
		n[rfl_point_verdict(&points->points[i]).bound]++;
	rfl_buf_reset(&a->text);
	for (enum rfl_bound bound = 0; bound < RFL_BOUND_UNKNOWN; bound++)
		if (n[bound]) {
			comma(a, ", ");
			rfl_buf_printf(&a->text, "%zu %s", n[bound],
				       rfl_bound_words[bound].adjective);
			all += n[bound];
		}
	if (all)
		rfl_page_item(a->page, "%zu %s%s: %s.", all, what ? what : "point", plural(all),
			      rfl_buf_str(&a->text));
}

static void count_runs(struct analysis *a)
{
	const struct rfl_repeats *r = a->r->repeats;
	const size_t all = r ? r->nruns + r->nfailed : 0;
	size_t flagged = 0;

	for (size_t i = 0; r && i < r->nruns; i++) {
		const char *flags = r->runs[i].run->like->flags;

		flagged += flags && *flags;
	}
	if (all)
		rfl_page_item(a->page, "%zu of %zu run%s of %zu configuration%s %s.", r->nruns, all,
			      plural(all), r->n, plural(r->n),
			      r->nruns == 1 ? "was successful" : "were successful");
	if (flagged)
		rfl_page_item(
			a->page,
			"%zu run%s flagged, for example for unsteady step times: see Limitations.",
			flagged, flagged == 1 ? " is" : "s are");
}

void rfl_report__summary(const struct rfl_report *r, struct rfl_page *page)
{
	struct analysis a;

	init(&a, r, page);
	if (r->points)
		rfl_page_para(
			page,
			"A point is a configuration: a model with its precision and batch size "
			"(bs). Its roof is the rate that memory bandwidth and compute allow at its "
			"arithmetic intensity, the FLOPs per byte of memory traffic.");
	count_runs(&a);
	say_fastest(&a);
	count_limits(&a, r->points);
	count_limits(&a, r->parts);
	if (r->points && r->points->n > SUMMARY_MOST)
		say_shares(&a);
	else if (r->points)
		rfl_page_table(page, "Throughput and share of the roof",
			       rfl_points_summary(r->points, true));
	rfl_buf_fini(&a.text);
}
