/*
 * figure_data.c - selects the points to draw and turns them into marks. Then selects at most four
 * ceilings and their labels: the roof first (bandwidth, and the compute ceiling of most points),
 * then ceilings that explain the points.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/text.h"
#include "plot/figure.h"
#include "roofline/verdict.h"

/* ---- marks ---- */

#define BEST_COMPULSORY "bytes at best: each tensor moved once"
#define BEST_FUSED      "bytes at best: normalisation and activation fused"

/* Legend texts for the traffic of filled marks and of their hollow marks. */
static const struct {
	const char *source, *used, *best;
} traffics[] = {
	{ "unfused", "bytes counted: every operation reads and writes DRAM", BEST_FUSED },
	{ "fused", "bytes counted: normalisation and activation fused", BEST_COMPULSORY },
	{ "compulsory", "bytes counted: each tensor moved once", NULL },
	{ RFL_POINT_OF_PLAN, "bytes of the engine's plan", BEST_COMPULSORY },
	{ "lower-bound", "intensity estimated from the rate: a lower bound", NULL },
	{ "counters", "bytes measured by hardware counters", BEST_COMPULSORY },
	{ RFL_POINT_GIVEN, "FLOPs and bytes given, not counted", NULL },
	{ RFL_POINT_OF_SHAPES, "bytes computed from tensor shapes", NULL },
};

/* Do all marks have one of two sources? */
static bool all_of(const struct rfl_figure *f, const char *one, const char *other)
{
	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		const char *text = m->point->bytes_source ? m->point->bytes_source : "";
		const struct rfl_span source = { text, rfl_point_source_len(text) };

		if (!rfl_span_is(source, one) && !rfl_span_is(source, other))
			return false;
	}
	return true;
}

/* Choose the legend texts for the traffic. If the sources differ, all hollow marks still have the
 * same meaning: normalisation and activation fused. */
static void choose_traffic(struct rfl_figure *f)
{
	const char *source = rfl_figure__shared(f, offsetof(struct rfl_point, bytes_source));

	f->used = "bytes: see points.csv for each point";
	f->best = source ? BEST_COMPULSORY : BEST_FUSED;
	if (source && *source)
		f->used = SAY(f, "bytes: %s", source);
	else if (!source && all_of(f, "counters", "unfused"))
		f->used =
			"bytes measured by counters if available, otherwise counted per operation";
	else if (!source && all_of(f, RFL_POINT_OF_PLAN, "unfused"))
		f->used = "bytes counted per operation, or of the engine's plan";
	for (size_t i = 0; i < RFL_ARRAY_LEN(traffics); i++)
		if (all_of(f, traffics[i].source, traffics[i].source)) {
			f->used = traffics[i].used;
			f->best = traffics[i].best;
		}
	f->best_is_fused = f->best && strcmp(f->best, BEST_FUSED) == 0;
}

/* Order parts by share of the time, then by rate. */
static int by_weight(const void *a, const void *b)
{
	const struct rfl_mark *x = *(const struct rfl_mark *const *)a;
	const struct rfl_mark *y = *(const struct rfl_mark *const *)b;
	/* fmax() turns an unknown share into -1: last */
	const double p = x->point->part ? fmax(x->point->time_share, -1) : -1;
	const double q = y->point->part ? fmax(y->point->time_share, -1) : -1;

	if (p != q)
		return p > q ? -1 : 1;
	if (x->y > y->y || x->y < y->y) /* NaN: a point without FLOPs */
		return x->y > y->y ? -1 : 1;
	return x->number - y->number;
}

struct rfl_mark **rfl_figure__sort(struct rfl_figure *f, int (*order)(const void *, const void *))
{
	struct rfl_mark **marks =
		rfl_arena_array(f->scene->arena, f->nmarks, sizeof(struct rfl_mark *));

	for (size_t i = 0; i < f->nmarks; i++)
		marks[i] = &f->marks[i];
	qsort(marks, f->nmarks, sizeof(struct rfl_mark *), order);
	return marks;
}

/* Rank the marks for naming: the fastest of each shape first, then the others by rate; parts by
 * their share of the time; in trajectories, the ends first. */
static void rank_marks(struct rfl_figure *f)
{
	struct rfl_mark **order = rfl_figure__sort(f, by_weight);
	unsigned seen = 0;
	int rank = 0;

	f->by_rank = rfl_arena_array(f->scene->arena, f->nmarks, sizeof(*f->by_rank));
	for (size_t i = 0; i < f->nmarks; i++) {
		const bool later = f->in->kind == RFL_PLOT_TRAJECTORY
					   ? order[i]->linked && order[i]->next
					   : seen & 1U << order[i]->shape && !f->parts;

		order[i]->rank = later ? -1 : rank++;
		seen |= 1U << order[i]->shape;
	}
	for (size_t i = 0; i < f->nmarks; i++) {
		if (order[i]->rank < 0)
			order[i]->rank = rank++;
		f->by_rank[order[i]->rank] = order[i];
	}
}

static void order_rows(struct rfl_figure *f)
{
	const size_t idle = f->in->kind <= RFL_PLOT_KERNELS ? f->nidle : 0;

	f->rows = rfl_arena_array(f->scene->arena, f->nmarks + idle, sizeof(*f->rows));
	for (size_t i = 0; i < f->nmarks + idle; i++)
		f->rows[f->nrows++] = i < f->nmarks ? &f->marks[i] : &f->idle[i - f->nmarks];
	if (f->parts)
		qsort(f->rows, f->nrows, sizeof(*f->rows), by_weight);
}

const char *rfl_figure__percent(const struct rfl_figure *f, double percent)
{
	return SAY(f, percent < 0.05 ? "%.1g %%" : percent < 0.95 ? "%.1f %%" : "%.0f %%", percent);
}

const char *rfl_figure__share(const struct rfl_figure *f, double share)
{
	return SAY(f,
		   share < 0.00005   ? "%.1g %%"
		   : share < 0.00995 ? "%.2f %%"
				     : "%.1f %%",
		   100 * share);
}

const char *rfl_figure__rate(const struct rfl_figure *f, double gflops)
{
	static const char prefixes[] = "PTGMk";
	double unit = 1e6;
	size_t i = 0;

	/* 999.5 and more is rounded to the next unit */
	for (; prefixes[i + 1] && gflops < 0.9995 * unit; i++)
		unit /= 1e3;
	return SAY(f, "%s %cFLOP/s", rfl_words_number(f->scene, gflops / unit), prefixes[i]);
}

/* The part_kind of the points of a kind. */
static const char *const part_kinds[] = {
	[RFL_PLOT_LAYERS] = "layer",
	[RFL_PLOT_KERNELS] = "kernel",
};

static bool is_part(const struct rfl_point *p)
{
	return p->part && *p->part;
}

static bool is_wanted(enum rfl_plot_kind kind, const struct rfl_point *p, bool has_steps)
{
	if (kind == RFL_PLOT_LAYERS || kind == RFL_PLOT_KERNELS)
		return is_part(p) &&
		       (rfl_text_same(p->part_kind, part_kinds[kind]) ||
			(kind == RFL_PLOT_KERNELS && rfl_text_same(p->part_kind, "op")));
	if (kind == RFL_PLOT_HIERARCHICAL && !(p->ai_l1 > 0) && !(p->ai_l2 > 0))
		return false;
	return !has_steps || !is_part(p);
}

const char *rfl_figure__missing(const struct rfl_figure *f, const struct rfl_point *p)
{
	const struct {
		double value;
		const char *what;
	} needs[] = { { p->ai, "no intensity" },
		      { p->attained_gflops, "no rate" },
		      { p->step_s, "no time" },
		      { p->bytes_per_step, "no bytes" },
		      { p->flops_per_step, "no FLOPs" },
		      { p->peak_gflops, "no compute ceiling" },
		      { p->peak_gbps, "no memory ceiling" } };
	const bool timed = rfl_figure__is_time(f);

	for (size_t i = timed ? 2 : 0; i < (timed ? RFL_ARRAY_LEN(needs) : 2); i++)
		if (!(needs[i].value > 0 && isfinite(needs[i].value)))
			return needs[i].what;
	return NULL;
}

static bool is_of(const struct rfl_figure *f, const struct rfl_point *p)
{
	bool is = f->in->env && rfl_text_same(p->env, f->in->env->name);

	for (size_t k = 0; k < f->in->nenvs && !f->in->env; k++)
		is = is || rfl_text_same(p->env, f->in->envs[k]->name);
	return is;
}

static bool has_steps(const struct rfl_figure *f, const struct rfl_points *points)
{
	for (const struct rfl_point *p = points->points; p < points->points + points->n; p++)
		if (is_of(f, p) && !is_part(p))
			return true;
	return false;
}

size_t rfl_figure__count(const struct rfl_figure *f, const struct rfl_points *points)
{
	const bool steps = has_steps(f, points);
	size_t n = 0;

	for (const struct rfl_point *p = points->points; p < points->points + points->n; p++)
		n += is_of(f, p) && is_wanted(f->in->kind, p, steps);
	return n;
}

static int by_share(const void *a, const void *b)
{
	const struct rfl_mark *x = a, *y = b;

	return by_weight(&x, &y);
}

/* The point of the same configuration in in->before; NULL if it has no place in a figure. */
static const struct rfl_point *earlier_of(const struct rfl_figure *f, const struct rfl_point *p)
{
	const struct rfl_points *before = f->in->kind == RFL_PLOT_COMPARE ? f->in->before : NULL;

	for (size_t i = 0; before && i < before->n; i++) {
		const struct rfl_point *q = &before->points[i];

		if (q->batch == p->batch && q->past == p->past &&
		    (q->context_length == p->context_length || q->context_length <= 0) &&
		    q->ai > 0 && q->attained_gflops > 0 && isfinite(q->ai) &&
		    isfinite(q->attained_gflops) && rfl_text_same(q->env, p->env) &&
		    rfl_text_same(q->model, p->model) &&
		    rfl_text_same(q->precision, p->precision) && rfl_text_same(q->mode, p->mode) &&
		    rfl_text_same(q->layout, p->layout) && rfl_text_same(q->part, p->part) &&
		    strcmp(rfl_figure__variant(f->scene, q), rfl_figure__variant(f->scene, p)) == 0)
			return q;
	}
	return NULL;
}

static void set_verdict(struct rfl_mark *m)
{
	const struct rfl_point_verdict verdict = rfl_point_verdict(m->point);

	m->factor = 1 / verdict.share;
	m->percent = 100 * verdict.share;
	m->above = verdict.bound == RFL_BOUND_ABOVE;
	m->limit = verdict.bound == RFL_BOUND_UNKNOWN ? "" : rfl_bound_words[verdict.bound].word;
}

/* Set the position of a mark, its distance from the roof, and the text about them. */
static void set_place(struct rfl_figure *f, struct rfl_mark *m)
{
	const struct rfl_point *p = m->point;
	const bool timed = rfl_figure__is_time(f),
		   hierarchical = f->in->kind == RFL_PLOT_HIERARCHICAL;
	const double best = f->best_is_fused ? p->ai_fused : p->ai_compulsory;
	const struct rfl_point_verdict verdict = rfl_point_verdict(p);
	const struct rfl_point *was = earlier_of(f, p);
	struct rfl_scene *s = f->scene;
	const char *value;

	m->x = timed ? p->bytes_per_step / p->peak_gbps / 1e6 : p->ai;
	m->y = timed ? p->flops_per_step / p->peak_gflops / 1e6 : p->attained_gflops;
	m->time = p->step_s * 1e3;
	m->full = m->name;
	m->roof = timed ? fmax(m->x, m->y) : verdict.attainable_gflops;
	set_verdict(m);
	m->x_cache[0] = hierarchical ? p->ai_l1 : NAN;
	m->x_cache[1] = hierarchical ? p->ai_l2 : NAN;
	m->x_best = f->best && f->in->kind < RFL_PLOT_HIERARCHICAL && f->nmarks <= RFL_FIG_PAIRS &&
				    best > p->ai * 1.02 && isfinite(best) &&
				    verdict.bound != RFL_BOUND_BY_CONSTRUCTION
			    ? best
			    : NAN; /* the ratio to a lower bound means nothing */
	value = timed ? rfl_words_time(s, m->time) : rfl_figure__rate(f, m->y);
	m->rate = verdict.bound == RFL_BOUND_BY_CONSTRUCTION
			  ? SAY(f, "%s \xc2\xb7 on the roof by construction", value)
			  : SAY(f, "%s \xc2\xb7 %s of %sroof%s", value,
				rfl_figure__percent(f, m->percent),
				verdict.roof >= RFL_BOUND_L2 && verdict.roof < RFL_BOUND_UNKNOWN
					? SAY(f, "%s ", rfl_bound_words[verdict.roof].word)
					: "",
				m->above       ? ": above it"
				: verdict.over ? ", within the uncertainty"
					       : "");
	m->x_was = was ? was->ai : NAN;
	m->y_was = was ? was->attained_gflops : NAN;
	if (!was)
		return;
	f->nbefore++;
	m->rate = SAY(f, "%s \xc2\xb7 %s\xc3\x97 before", m->rate,
		      rfl_words_number(s, m->y / m->y_was));
}

enum rfl_rc rfl_figure__marks(struct rfl_figure *f, struct rfl_err *err)
{
	const struct rfl_points *points = f->in->points;
	const char *first = f->in->env ? f->in->env->name : f->in->envs[0]->name;
	const bool steps = has_steps(f, points);
	const size_t wanted = rfl_figure__count(f, points);
	int number = 0;

	f->marks = rfl_arena_array(f->scene->arena, points->n + 1, sizeof(*f->marks));
	f->idle = rfl_arena_array(f->scene->arena, points->n + 1, sizeof(*f->idle));
	f->skipped = rfl_arena_array(f->scene->arena, points->n + 1, sizeof(*f->skipped));
	for (const struct rfl_point *p = points->points; p < points->points + points->n; p++) {
		if (!is_of(f, p))
			continue;
		number++;
		if (!is_wanted(f->in->kind, p, steps))
			continue;
		if (is_part(p))
			f->parts = rfl_part_word(p->part_kind);
		if (p->time_share > 0)
			f->shares[2] += p->time_share;
		if (p->flops_per_step == 0 && p->time_share > 0) {
			f->shares[1] += p->time_share;
			f->idle[f->nidle++] =
				(struct rfl_mark){ .point = p, .number = number, .y = NAN };
			continue;
		}
		if (rfl_figure__missing(f, p)) {
			f->skipped[f->nskipped++] = p;
			continue;
		}
		if (p->time_share > 0)
			f->shares[0] += p->time_share;
		f->marks[f->nmarks++] = (struct rfl_mark){ .point = p, .number = number };
	}
	if (wanted == 0 && f->in->kind == RFL_PLOT_HIERARCHICAL)
		return rfl_fail(err, RFL_EMISSING, 0,
				"environment %s: no point has ai_l1 or ai_l2; create points from "
				"counters of L1 and L2 traffic",
				first);
	if (wanted == 0 && f->in->kind <= RFL_PLOT_KERNELS && part_kinds[f->in->kind])
		return rfl_fail(err, RFL_EMISSING, 0,
				"environment %s: no point is a %s; create points with 'roofline "
				"points --by %s'",
				first, part_kinds[f->in->kind], part_kinds[f->in->kind]);
	if (f->nmarks == 0)
		return rfl_fail(
			err, RFL_EMISSING, 0,
			"environment %s: no point to draw%s; create points with 'roofline points'",
			first,
			f->nskipped + f->nidle == 0 ? ""
			: rfl_figure__is_time(f) ? " (none has a time, bytes, FLOPs and ceilings)"
						 : " (none has both an intensity and a rate)");
	/* the shares of each configuration add up to 1 */
	f->shares[2] = f->shares[2] > 0 ? fmax(f->shares[2], 1) : 0;
	qsort(f->idle, f->nidle, sizeof(*f->idle), by_share);
	rfl_figure__names(f);
	choose_traffic(f);
	for (size_t i = 0; i < f->nmarks; i++)
		set_place(f, &f->marks[i]);
	for (struct rfl_mark *m = f->idle; m < f->idle + f->nidle; m++) {
		m->name = m->step = rfl_figure__part_name(f, m->point);
		m->way = "";
		set_verdict(m);
	}
	if (f->in->kind == RFL_PLOT_COMPARE && f->nbefore == 0)
		return rfl_fail(err, RFL_EMISSING, 0,
				"environment %s: no configuration is also in %s; compare points of "
				"the same environment, models and batches",
				first,
				f->in->before_name ? f->in->before_name : "the earlier points");
	rfl_figure__encode(f);
	if (f->in->kind == RFL_PLOT_TRAJECTORY && !f->has_series)
		return rfl_fail(
			err, RFL_EMISSING, 0,
			"environment %s: no two points differ only in their batch, context length "
			"or past, or several have the same, so there is no trajectory; run the "
			"model with different ones, or a program with 'roofline profile --sweep "
			"batch=V,...'",
			first);
	rank_marks(f);
	order_rows(f);
	f->names_few = f->parts && f->nmarks > RFL_FIG_FEW && f->in->labels == RFL_PLOT_LABELS_AUTO;
	return RFL_OK;
}

/* ---- ceilings ---- */

static const char *rate_of(struct rfl_figure *f, enum rfl_fig_kind kind, double per_s)
{
	const char *unit = kind == RFL_FIG_BANDWIDTH ? "B/s" : "FLOP/s";
	char text[RFL_NUM_MAX];

	return SAY(f, "%s", rfl_num_si(per_s, unit, 3, text, sizeof(text)));
}

/* Add a ceiling with the label "what rate", for which `brief` needs less room; NULL if `most` are
 * in the list, or if it has a ceiling that looks the same. */
static struct rfl_fig_ceiling *add(struct rfl_figure *f, enum rfl_fig_kind kind, double per_s,
				   const char *what, const char *brief, const char *id, size_t most)
{
	struct rfl_fig_ceiling *c;
	const char *label;

	if (f->nceilings >= most || !(per_s > 0))
		return NULL;
	for (c = f->ceilings; c < f->ceilings + f->nceilings; c++)
		if (c->kind == kind && fabs(c->value / (per_s / 1e9) - 1) < 0.02)
			return NULL;
	label = SAY(f, "%s %s", what, rate_of(f, kind, per_s));
	f->nceilings++;
	*c = (struct rfl_fig_ceiling){
		.kind = kind,
		.value = per_s / 1e9,
		.lo = NAN,
		.hi = NAN,
		.id = id,
		.color = -1,
		.dash = RFL_DASH_DASHED,
		.labels = { label, label, label, SAY(f, "%s %s", brief, rate_of(f, kind, per_s)) },
	};
	return c;
}

/* The precision of a compute key: "FP32", "FP32, one core"; "compute" for a value without one. */
static const char *brief_of(struct rfl_figure *f, const char *key)
{
	const struct rfl_peaks_env *env = f->in->env;
	const struct rfl_peak *peak = key ? rfl_peaks_compute(env, key) : NULL;
	const struct rfl_peaks_part *unit = key ? rfl_peaks_part(key, true) : NULL;
	const struct rfl_peaks_part *line = key ? rfl_peaks_part(key, false) : NULL;

	for (size_t i = 0; i < env->ncompute; i++)
		if (peak == &env->compute[i].peak && strcmp(env->compute[i].key, "*") == 0)
			key = NULL;
	if (!key)
		return "compute";
	return SAY(f, "%s%s%s",
		   rfl_words_compute(f->scene, SAY(f, "%.*s", (int)strcspn(key, "."), key)),
		   unit && unit->line == RFL_LINE_LIBRARY ? unit->text : "",
		   line ? line->text : "");
}

static const char *add_kernel(struct rfl_figure *f, const char *text, const struct rfl_peak *p)
{
	const char *kernel = p->kernel ? p->kernel : "";

	return rfl_words_join(f->scene, text, ", ",
			      SAY(f, "%.*s", (int)strcspn(kernel, ","), kernel));
}

/* Add a peak. Labels of quiet ceilings have only the value, those of the roof also its origin:
 * "DRAM 38.6 GB/s measured, 75 % of sheet, triad nt, 24 runs within 2 %", "FP32 vector 182 GFLOP/s
 * measured, 2 threads, avx512 fma". */
static void add_peak(struct rfl_figure *f, enum rfl_fig_kind kind, const struct rfl_peak *p,
		     bool primary, const char *what, const char *brief, const char *id)
{
	static const char *const status_words[] = {
		[RFL_PEAK_MEASURED] = "measured",
		[RFL_PEAK_SPEC] = "data sheet",
		[RFL_PEAK_DERIVED] = "derived",
		[RFL_PEAK_USER] = "as given",
	};
	struct rfl_fig_ceiling *c = rfl_peak_usable(p)
					    ? add(f, kind, p->value, what, brief, id,
						  primary ? RFL_FIG_CEILINGS : RFL_FIG_QUIET)
					    : NULL;
	const bool memory = kind == RFL_FIG_BANDWIDTH,
		   measured = p && p->status == RFL_PEAK_MEASURED;
	const char *text;
	double spread;

	if (!c)
		return;
	c->primary = primary;
	if (primary || (memory && measured))
		c->dash = RFL_DASH_SOLID;
	if (measured && p->stats.n > 1) {
		c->lo = p->stats.min / 1e9;
		c->hi = p->stats.max / 1e9;
	}
	if (!primary)
		return;
	text = SAY(f, "%s %s", c->labels[0], status_words[p->status]);
	if (measured && p->spec > 0)
		text = SAY(f, "%s, %.0f %% of sheet", text, 100 * p->value / p->spec);
	c->labels[1] = text;
	if (!memory && p->threads > 0)
		text = rfl_words_join(f->scene, text, ", ",
				      rfl_words_count(f->scene, (size_t)p->threads, "thread"));
	text = add_kernel(f, text, p);
	/* spread between the slowest and the fastest run */
	spread = 100 * (p->stats.max - p->stats.min) / p->stats.max;
	if (memory && p->stats.n >= 2 && !isnan(spread))
		text = SAY(f, "%s, %lld runs within %.0f %%", text, (long long)p->stats.n,
			   fmax(ceil(spread), 1));
	c->labels[0] = text;
}

/* Add the data sheet value of a measured peak: "DRAM, data sheet 76.8 GB/s". */
static void add_sheet(struct rfl_figure *f, enum rfl_fig_kind kind, const struct rfl_peak *p,
		      const char *what, const char *id)
{
	what = SAY(f, "%s, data sheet", what);
	if (p && p->status == RFL_PEAK_MEASURED)
		(void)add(f, kind, p->spec, what, what, id, RFL_FIG_QUIET);
}

static int by_peak(const void *a, const void *b)
{
	const struct rfl_mark *x = *(struct rfl_mark *const *)a, *y = *(struct rfl_mark *const *)b;
	const double p = x->point->peak_gflops, q = y->point->peak_gflops;

	return p != q ? (p < q ? -1 : 1) : x->number - y->number;
}

/* The first mark of each compute ceiling; the ceiling of most marks is first. @return their number
 */
static size_t ceiling_marks(struct rfl_figure *f, const struct rfl_mark **ret, size_t max)
{
	struct rfl_mark **marks = rfl_figure__sort(f, by_peak);
	size_t most = 0, n = 0;

	for (size_t from = 0, to; from < f->nmarks && n < max; from = to) {
		for (to = from + 1; to < f->nmarks && marks[to]->point->peak_gflops ==
							      marks[from]->point->peak_gflops;)
			to++;
		ret[n++] = marks[from];
		if (to - from > most) {
			ret[n - 1] = ret[0];
			ret[0] = marks[from];
			most = to - from;
		}
	}
	return n;
}

/* Points must be drawn with the ceilings with which they were computed. */
static enum rfl_rc check_peak(const struct rfl_peaks_env *env, const struct rfl_peak *peak,
			      const char *key, double point, const char *unit, const char *what,
			      struct rfl_err *err)
{
	const double value = peak ? peak->value / 1e9 : NAN;
	char cell[128];

	if (!rfl_peak_usable(peak))
		return rfl_fail(err, RFL_EMISSING, 0,
				"environment %s: %s is unknown; supply it with 'roofline peaks "
				"measure' or 'roofline peaks set'",
				env->name, rfl_peaks_cell(env, key, cell, sizeof(cell)));
	if (fabs(point - value) <= 1e-6 * value)
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0,
			"environment %s: the points were computed with %g %s of %s, the peaks file "
			"has %g; run 'roofline points' again",
			env->name, point, unit, what, value);
}

/* The peak with the compute key of a point; NULL: none. */
static const struct rfl_peak *compute_of(const struct rfl_figure *f, const struct rfl_point *p)
{
	return p->compute_key ? rfl_peaks_compute(f->in->env, p->compute_key) : NULL;
}

/* Add the compute ceiling of a mark: a peak from the file, or a mix of precisions. */
static void add_compute(struct rfl_figure *f, const struct rfl_mark *m)
{
	const struct rfl_point *p = m->point;
	const struct rfl_peak *peak = compute_of(f, p);
	const struct rfl_peak mixed = { .status = RFL_PEAK_DERIVED, .value = p->peak_gflops * 1e9 };
	const size_t before = f->nceilings;

	if (!peak)
		add_peak(f, RFL_FIG_COMPUTE, &mixed, true,
			 p->compute_key ? p->compute_key : "compute", "mixed precisions",
			 "roof-compute-mixed");
	else
		add_peak(f, RFL_FIG_COMPUTE, peak, true,
			 f->in->env->short_form ? brief_of(f, p->compute_key)
						: rfl_words_compute(f->scene, p->compute_key),
			 brief_of(f, p->compute_key), SAY(f, "roof-%s", p->compute_key));
	if (f->nceilings == before)
		return;
	f->ceilings[before].color = f->by == RFL_BY_PRECISION ? m->color : -1;
	f->top = fmax(f->top, p->peak_gflops);
	f->knee_lo = fmin(f->knee_lo, p->peak_gflops / f->gbps);
	f->knee_hi = fmax(f->knee_hi, p->peak_gflops / f->gbps);
}

static bool is_of_one_core(const struct rfl_figure *f, const struct rfl_peak_level *l)
{
	return rfl_text_same(l->scope, "core") && f->in->env->units > 1;
}

static bool is_faster_than_dram(const struct rfl_figure *f, const struct rfl_peak_level *l,
				double times)
{
	return rfl_peak_usable(&l->peak) && !rfl_peaks_is_part(f->in->env, l) &&
	       times * l->peak.value / 1e9 > f->gbps * 1.02;
}

/* Add the roof of a cache; if it was measured on one core, scaled to all cores. */
static void add_cache(struct rfl_figure *f, const struct rfl_peak_level *l)
{
	const int units = is_of_one_core(f, l) ? f->in->env->units : 1;
	struct rfl_fig_ceiling *c =
		is_faster_than_dram(f, l, units)
			? add(f, RFL_FIG_BANDWIDTH, l->peak.value * units, l->level, l->level,
			      SAY(f, "roof-%s", l->level), RFL_FIG_CEILINGS)
			: NULL;

	if (!c)
		return;
	if (l->peak.status == RFL_PEAK_MEASURED)
		c->dash = RFL_DASH_SOLID;
	if (units > 1)
		c->labels[0] = SAY(f, "%s, %d times one core", c->labels[1], units);
}

/* Add what the GEMM of a framework achieves in the precision of a mark. Values above the
 * roof, which 'peaks check' reports, are not drawn. */
static void add_gemm(struct rfl_figure *f, const struct rfl_mark *m)
{
	const char *key = m->point->compute_key;
	const struct rfl_peak *p = rfl_peaks_gemm(f->in->env, key);
	struct rfl_fig_ceiling *c;

	if (!p || p->value / 1e9 >= m->point->peak_gflops)
		return;
	key = SAY(f, "%.*s.gemm", (int)strcspn(key, "."), key);
	c = add(f, RFL_FIG_COMPUTE, p->value, rfl_words_compute(f->scene, key), brief_of(f, key),
		SAY(f, "roof-%s", key), RFL_FIG_CEILINGS);
	if (!c)
		return;
	c->dash = RFL_DASH_DOTTED;
	c->labels[0] = add_kernel(f, c->labels[1], p);
}

/* Add the thin lines on one side of a roof. */
static void add_lines(struct rfl_figure *f, const char *key, enum rfl_peaks_line side,
		      const char *id, size_t most)
{
	for (const struct rfl_peaks_part *part = rfl_peaks_parts; key && part->word; part++) {
		const struct rfl_peak *p =
			part->line == side ? rfl_peaks_line(f->in->env, key, part) : NULL;

		const char *whole = SAY(f, "%s.%s", key, part->word);

		if (p)
			(void)add(f, RFL_FIG_COMPUTE, p->value, rfl_words_compute(f->scene, whole),
				  brief_of(f, whole), id, most);
	}
}

enum rfl_rc rfl_figure__ceilings(struct rfl_figure *f, struct rfl_err *err)
{
	const struct rfl_peaks_env *env = f->in->env;
	const struct rfl_peak *dram = rfl_peaks_dram(env);
	const struct rfl_mark *first[RFL_FIG_CEILINGS - 1]; /* of each compute ceiling */
	const size_t nfirst = ceiling_marks(f, first, RFL_ARRAY_LEN(first));
	const bool gpu = rfl_text_same(env->kind, "gpu");
	const char *brief = gpu || env->short_form ? "memory" : "DRAM";
	const char *memory = gpu ? "device memory" : brief;
	const struct rfl_point *p;
	enum rfl_rc rc = RFL_OK;

	for (const struct rfl_mark *m = f->marks; rc == RFL_OK && m < f->marks + f->nmarks; m++) {
		const struct rfl_peak *c = compute_of(f, m->point);

		p = m->point;
		if (!(p->peak_gflops > 0 && p->peak_gbps > 0))
			return rfl_fail(err, RFL_EMISSING, 0,
					"environment %s, point %d (%s): %s is missing; run "
					"'roofline points' with a peaks file that contains it",
					p->env, m->number, p->model ? p->model : "no model",
					p->peak_gflops > 0 ? "peak_gbps" : "peak_gflops");
		rc = check_peak(env, dram, "memory.DRAM", p->peak_gbps, "GB/s", "memory bandwidth",
				err);
		if (rc == RFL_OK && c)
			rc = check_peak(env, c, p->compute_key, p->peak_gflops, "GFLOP/s",
					p->compute_key, err);
	}
	if (rc != RFL_OK || nfirst == 0)
		return rc;
	p = first[0]->point;
	f->gbps = p->peak_gbps;
	f->gflops = f->top = p->peak_gflops;
	f->knee = f->knee_lo = f->knee_hi = f->gflops / f->gbps;
	if (rfl_figure__is_time(f))
		return RFL_OK; /* the axes contain the ceilings */
	add_peak(f, RFL_FIG_BANDWIDTH, dram, true, memory, brief, "roof-memory");
	for (size_t i = 0; i < nfirst; i++)
		add_compute(f, first[i]);
	for (size_t i = 0; i < nfirst; i++)
		add_gemm(f, first[i]);
	/* one core, same key as the roof: the ceiling of a loop that does not scale */
	add_lines(f, p->compute_key, RFL_LINE_BELOW, "roof-one-core", RFL_FIG_QUIET);
	add_sheet(f, RFL_FIG_BANDWIDTH, dram, brief, "roof-memory-sheet");
	add_sheet(f, RFL_FIG_COMPUTE, compute_of(f, p), brief_of(f, p->compute_key),
		  "roof-compute-sheet");
	for (size_t i = 0; i < env->nlevels && f->in->kind == RFL_PLOT_HIERARCHICAL; i++)
		add_cache(f, &env->levels[i]);
	/* the largest cache faster than DRAM, unless measured per core */
	for (size_t i = env->nlevels; i-- > 0;) {
		const struct rfl_peak_level *l = &env->levels[i];

		if (!is_faster_than_dram(f, l, 1) || is_of_one_core(f, l))
			continue;
		add_peak(f, RFL_FIG_BANDWIDTH, &l->peak, false, l->level, l->level,
			 SAY(f, "roof-%s", l->level));
		break;
	}
	add_lines(f, p->compute_key, RFL_LINE_ABOVE, "roof-fmaadd", RFL_FIG_CEILINGS);
	return RFL_OK;
}
