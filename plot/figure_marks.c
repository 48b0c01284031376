/*
 * figure_marks.c - from points to marks: which are drawn, what shape and colour stand for. How they
 * are named: figure_names.c.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "plot/figure.h"
#include "roofline/verdict.h"

static bool drawable(const struct rfl_point *p)
{
	return p->ai > 0 && p->attained_gflops > 0 && isfinite(p->ai) &&
	       isfinite(p->attained_gflops);
}

static int category_of(const struct rfl_mark *m, enum rfl_fig_by by, const char *const *keys,
		       size_t n)
{
	char text[24];
	const char *key = m->point->model;

	if (by == RFL_BY_PRECISION)
		key = m->point->precision;
	if (by == RFL_BY_WAY)
		key = m->way;
	if (by == RFL_BY_BATCH) {
		snprintf(text, sizeof(text), "%lld", (long long)m->point->batch);
		key = text;
	}
	for (size_t i = 0; i < n; i++)
		if (rfl_text_same(keys[i], key))
			return (int)i;
	return -1;
}

static int by_batch(const void *a, const void *b)
{
	long long x = strtoll(*(const char *const *)a, NULL, 10);
	long long y = strtoll(*(const char *const *)b, NULL, 10);

	return x < y ? -1 : x > y;
}

/* The order in which colours are given out. Batches are a sequence: sky blue, then deep blue, so
 * that two batches are a light and a dark of one hue. */
static int color_slot(enum rfl_fig_by by, size_t i, size_t n)
{
	static const int sequence[] = { 5, 0, 2, 1, 3, 4, 6 };

	if (n == 1)
		return 0;
	return by == RFL_BY_BATCH ? sequence[i % 7] : (int)(i % RFL_FIG_CATEGORIES);
}

static const char *key_of(struct rfl_figure *f, const struct rfl_mark *m)
{
	switch (f->by) {
	case RFL_BY_BATCH:
		return rfl_scene_printf(f->scene, "%lld", (long long)m->point->batch);
	case RFL_BY_PRECISION:
		return m->point->precision;
	case RFL_BY_WAY:
		return m->way;
	case RFL_BY_MODEL:
		break;
	}
	return m->point->model;
}

/* Are there variants, with a word and a colour for each? */
static bool can_color_ways(const struct rfl_figure *f)
{
	const char *ways[RFL_FIG_CATEGORIES];
	bool variants = false;
	size_t n = 0;

	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];

		variants = variants || m->point->variant;
		if (!*m->way || m->numbered)
			return false;
		if (category_of(m, RFL_BY_WAY, ways, n) >= 0)
			continue;
		if (n == RFL_FIG_CATEGORIES)
			return false;
		ways[n++] = m->way;
	}
	return variants && n > 1;
}

static enum rfl_fig_by choose_colors(const struct rfl_figure *f)
{
	if (f->varies.precision)
		return RFL_BY_PRECISION;
	if (f->varies.batch)
		return RFL_BY_BATCH;
	return can_color_ways(f) ? RFL_BY_WAY : RFL_BY_MODEL;
}

static void collect_colors(struct rfl_figure *f)
{
	const char *keys[RFL_FIG_CATEGORIES];
	size_t n = 0;

	for (size_t i = 0; i < f->nmarks; i++)
		if (n < RFL_FIG_CATEGORIES && category_of(&f->marks[i], f->by, keys, n) < 0)
			keys[n++] = key_of(f, &f->marks[i]);
	if (f->by == RFL_BY_BATCH)
		qsort(keys, n, sizeof(keys[0]), by_batch);
	for (size_t i = 0; i < f->nmarks; i++) {
		int c = category_of(&f->marks[i], f->by, keys, n);

		/* more values than colours: the last one stands for the rest */
		f->marks[i].color = c < 0 ? (int)n - 1 : c;
	}
	for (size_t i = 0; i < n; i++) {
		f->color_index[i] = color_slot(f->by, i, n);
		if (f->by == RFL_BY_MODEL)
			f->colors[i] = rfl_words_model(f->scene, keys[i]);
		else if (f->by == RFL_BY_PRECISION)
			f->colors[i] = keys[i] ? keys[i] : "precision not known";
		else
			f->colors[i] = keys[i];
	}
	f->ncolors = n;
}

static void collect_shapes(struct rfl_figure *f)
{
	const char *models[RFL_MARKER_COUNT];

	for (size_t i = 0; i < f->nmarks; i++) {
		const char *model = f->marks[i].point->model;
		size_t k = 0;

		while (k < f->nshapes && !rfl_text_same(models[k], model))
			k++;
		if (k == RFL_MARKER_COUNT)
			k--; /* more models than shapes: the last one stands for the rest */
		if (k == f->nshapes) {
			models[f->nshapes] = model;
			f->shapes[f->nshapes++] = rfl_words_model(f->scene, model);
		}
		f->marks[i].shape = (enum rfl_marker)k;
	}
}

/* What is said of the traffic of filled marks, and of the hollow ones that go with them. */
static const struct traffic {
	const char *source, *used, *best;
	bool best_is_fused;
} traffics[] = {
	{ .source = "unfused",
	  .used = "bytes counted: every operation reads and writes DRAM",
	  .best = "bytes at best: normalisation and activation fused",
	  .best_is_fused = true },
	{ .source = "fused",
	  .used = "bytes counted: normalisation and activation fused",
	  .best = "bytes at best: every tensor that must move, once" },
	{ .source = "compulsory", .used = "bytes counted: every tensor that must move, once" },
	{ .source = "lower-bound",
	  .used = "intensity estimated from the rate: a lower bound",
	  .best = "bytes at best: every tensor that must move, once" },
	{ .source = "counters",
	  .used = "bytes measured by hardware counters",
	  .best = "bytes at best: every tensor that must move, once" },
};

static bool is_source(const char *source, const char *word)
{
	size_t len = rfl_point_source_len(source);

	return strlen(word) == len && memcmp(source, word, len) == 0;
}

/* Are all marks of one of two sources? */
static bool all_of(const struct rfl_figure *f, const char *one, const char *other)
{
	for (size_t i = 0; i < f->nmarks; i++) {
		const char *source = f->marks[i].point->bytes_source;

		if (!source || !(is_source(source, one) || is_source(source, other)))
			return false;
	}
	return true;
}

static bool all_alike(const struct rfl_figure *f)
{
	for (size_t i = 1; i < f->nmarks; i++)
		if (!rfl_text_same(f->marks[0].point->bytes_source,
				   f->marks[i].point->bytes_source))
			return false;
	return true;
}

/* Words for the traffic of the filled marks and of the hollow ones. Marks of several sources have
 * hollow ones of one kind all the same: normalisation and activation fused. */
static void choose_traffic(struct rfl_figure *f)
{
	const char *source = f->marks[0].point->bytes_source;

	for (size_t i = 0; i < RFL_ARRAY_LEN(traffics); i++)
		if (all_of(f, traffics[i].source, traffics[i].source)) {
			f->used = traffics[i].used;
			f->best = traffics[i].best;
			f->best_is_fused = traffics[i].best_is_fused;
			return;
		}
	f->used = "bytes as points.csv says for each";
	f->best = "bytes at best: every tensor that must move, once";
	f->best_is_fused = false;
	if (all_alike(f)) {
		if (source)
			f->used = rfl_scene_printf(f->scene, "bytes: %s", source);
		return;
	}
	f->best = "bytes at best: normalisation and activation fused";
	f->best_is_fused = true;
	if (all_of(f, "counters", "unfused"))
		f->used = "bytes measured where there are counters, else every operation's";
}

static double intensity_at_best(const struct rfl_figure *f, const struct rfl_point *p)
{
	double best = f->best_is_fused ? p->ai_fused : p->ai_compulsory;

	return f->best && best > p->ai * 1.02 && isfinite(best) ? best : NAN;
}

static void fill_mark(struct rfl_figure *f, struct rfl_mark *m)
{
	const struct rfl_point *p = m->point;

	m->x = p->ai;
	m->y = p->attained_gflops;
	m->x_lo = p->ai_lo;
	m->x_hi = p->ai_hi;
	m->y_lo = p->attained_gflops_lo;
	m->y_hi = p->attained_gflops_hi;
	m->x_best = intensity_at_best(f, p);
	m->roof = fmin(p->ai * p->peak_gbps, p->peak_gflops);
	m->percent = 100 * m->y / m->roof;
	m->above = m->y > m->roof * (1 + RFL_VERDICT_VISIBLE);
	m->rate = rfl_scene_printf(f->scene, "%s GFLOP/s \xc2\xb7 %.0f %% of roof",
				   rfl_words_number(f->scene, m->y), m->percent);
	if (m->above)
		m->rate = rfl_scene_printf(f->scene, "%s: above it", m->rate);
}

static int by_speed(const void *a, const void *b)
{
	const struct rfl_mark *x = *(const struct rfl_mark *const *)a;
	const struct rfl_mark *y = *(const struct rfl_mark *const *)b;

	if (x->y != y->y)
		return x->y > y->y ? -1 : 1;
	return x->number - y->number;
}

struct rfl_mark **rfl_figure__sort(struct rfl_figure *f, int (*order)(const void *, const void *))
{
	struct rfl_mark **marks = rfl_scene_array(f->scene, f->nmarks, sizeof(struct rfl_mark *));

	for (size_t i = 0; marks && i < f->nmarks; i++)
		marks[i] = &f->marks[i];
	if (marks)
		qsort(marks, f->nmarks, sizeof(struct rfl_mark *), order);
	return marks;
}

/* Who is named first: the fastest configuration of each model, then the others by rate. */
static void rank_marks(struct rfl_figure *f)
{
	struct rfl_mark **order = rfl_figure__sort(f, by_speed);
	unsigned seen = 0;
	int rank = 0;

	f->by_rank = rfl_scene_array(f->scene, f->nmarks, sizeof(*f->by_rank));
	if (!order || !f->by_rank)
		return;
	for (size_t i = 0; i < f->nmarks; i++)
		order[i]->rank = -1;
	for (size_t i = 0; i < f->nmarks; i++) {
		if (seen & 1U << order[i]->shape)
			continue;
		seen |= 1U << order[i]->shape;
		order[i]->rank = rank++;
	}
	for (size_t i = 0; i < f->nmarks; i++)
		if (order[i]->rank < 0)
			order[i]->rank = rank++;
	for (size_t i = 0; i < f->nmarks; i++)
		f->by_rank[f->marks[i].rank] = (int)i;
}

static enum rfl_rc check_roof(const struct rfl_mark *m, const char *env, struct rfl_err *err)
{
	const struct rfl_point *p = m->point;

	if (p->peak_gflops > 0 && p->peak_gbps > 0)
		return RFL_OK;
	return rfl_fail(
		err, RFL_EMISSING, 0,
		"environment %s, point %d (%s): no %s; run 'roofline points' with its ceilings",
		env, m->number, p->model ? p->model : "no model",
		p->peak_gflops > 0 ? "peak_gbps" : "peak_gflops");
}

enum rfl_rc rfl_figure__marks(struct rfl_figure *f, struct rfl_err *err)
{
	const struct rfl_points *points = f->in->points;
	const char *env = f->in->env->name;
	int number = 0;

	f->marks = rfl_scene_array(f->scene, points->n + 1, sizeof(*f->marks));
	if (!f->marks)
		return rfl_scene_check(f->scene, err);
	for (size_t i = 0; i < points->n; i++) {
		const struct rfl_point *p = &points->points[i];

		if (!rfl_text_same(p->env, env))
			continue;
		number++;
		if (!drawable(p)) {
			f->nskipped++;
			continue;
		}
		f->marks[f->nmarks] = (struct rfl_mark){ .point = p, .number = number };
		if (check_roof(&f->marks[f->nmarks], env, err) != RFL_OK)
			return err ? err->rc : RFL_EMISSING;
		f->nmarks++;
	}
	if (f->nmarks == 0)
		return rfl_fail(
			err, RFL_EMISSING, 0,
			"environment %s: no point to draw%s; 'roofline points' makes them from "
			"the ledger",
			env, f->nskipped ? " (none has both an intensity and a rate)" : "");
	rfl_figure__names(f);
	f->by = choose_colors(f);
	choose_traffic(f);
	for (size_t i = 0; i < f->nmarks; i++)
		fill_mark(f, &f->marks[i]);
	collect_shapes(f);
	collect_colors(f);
	rank_marks(f);
	return rfl_scene_check(f->scene, err);
}
