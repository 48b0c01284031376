/*
 * figure_encode.c - the meaning of shapes, colours and lines. A shape is a model; a colour is the
 * precision, the batch, the context length, the variant or the model. No shape or colour ever has
 * two meanings: if there are more values than shapes or colours, all marks get the same one and
 * numbers distinguish them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "plot/figure.h"

/* ---- colours ---- */

static struct rfl_color mix(struct rfl_color a, struct rfl_color b, double t)
{
	return (struct rfl_color){ (uint8_t)lround(a.r + (b.r - a.r) * t),
				   (uint8_t)lround(a.g + (b.g - a.g) * t),
				   (uint8_t)lround(a.b + (b.b - a.b) * t), 255 };
}

struct rfl_color rfl_figure__line_color(const struct rfl_figure *f, struct rfl_color color)
{
	for (int i = 0; i <= 10; i++) {
		const struct rfl_color c = mix(color, f->theme->ink, i / 10.0);

		if (rfl_color_contrast(c, f->theme->paper) >= 3)
			return c;
	}
	return f->theme->ink;
}

/* A colour of the ramp: the theme's first colour, from near the paper to near the ink. */
static struct rfl_color ramp(const struct rfl_theme *t, double at)
{
	const struct rfl_color hue = t->category[0];

	return at < .5 ? mix(mix(hue, t->paper, .68), hue, at * 2)
		       : mix(hue, mix(hue, t->ink, .72), at * 2 - 1);
}

struct rfl_color rfl_theme_ramp(const struct rfl_theme *t, size_t i, size_t n)
{
	/* a few values do not need the ends of the ramp */
	const double from = n < 4 ? .15 : 0, to = n < 4 ? .8 : 1;

	return ramp(t, n == 1 ? .5 : from + (to - from) * (double)i / (double)(n - 1));
}

/* The property that determines the colour of a mark; NULL if unknown. */
static const char *key_of(enum rfl_fig_by by, const struct rfl_mark *m)
{
	return by == RFL_BY_PRECISION ? m->point->precision
	       : by == RFL_BY_WAY     ? m->way
	       : by == RFL_BY_NONE    ? NULL
				      : m->point->model;
}

/* The position of a key among the first n, or n. */
static size_t index_of(const char *const *keys, size_t n, const char *key)
{
	size_t i = 0;

	while (i < n && !rfl_text_same(keys[i], key))
		i++;
	return i;
}

/* Collect the values of a property in the order of the points. @return false if more than max */
static bool collect(const struct rfl_figure *f, enum rfl_fig_by by, const char **keys, size_t max,
		    size_t *n)
{
	*n = 0;
	for (size_t i = 0; i < f->nmarks; i++) {
		const char *key = key_of(by, &f->marks[i]);

		if (index_of(keys, *n, key) < *n)
			continue;
		if (*n == max)
			return false;
		keys[(*n)++] = key;
	}
	return true;
}

/* Whether there are variants and each has a name. */
static bool has_ways(const struct rfl_figure *f)
{
	bool variants = false;

	for (size_t i = 0; i < f->nmarks; i++) {
		variants = variants || f->marks[i].point->variant;
		if (!*f->marks[i].way || f->marks[i].numbered)
			return false;
	}
	return variants;
}

/* The batch, the context length or the past of a mark. */
static int64_t size_of(const struct rfl_mark *m, enum rfl_fig_by by)
{
	return by == RFL_BY_CONTEXT ? rfl_figure__context(m->point)
	       : by == RFL_BY_PAST  ? m->point->past
				    : m->point->batch;
}

void rfl_figure__palette(struct rfl_figure *f, size_t n)
{
	f->palette = rfl_arena_array(f->scene->arena, n, sizeof(*f->palette));
	f->colors = rfl_arena_array(f->scene->arena, n, sizeof(*f->colors));
	f->ncolors = n;
}

/* The sizes of all marks in order, each once. @return their number */
static size_t sizes_of(const struct rfl_figure *f, enum rfl_fig_by by, int64_t *ret)
{
	for (size_t i = 0; i < f->nmarks; i++)
		ret[i] = size_of(&f->marks[i], by);
	return rfl_distinct(ret, f->nmarks);
}

/* Sizes are ordered: one hue from light to dark. */
static void color_sizes(struct rfl_figure *f, enum rfl_fig_by by)
{
	int64_t *sizes = rfl_arena_array(f->scene->arena, f->nmarks, sizeof(*sizes));
	const size_t n = sizes_of(f, by, sizes);

	f->by = by;
	for (size_t i = 0; i < f->nmarks; i++) {
		const int64_t size = size_of(&f->marks[i], by);

		f->marks[i].color =
			(int)((int64_t *)bsearch(&size, sizes, n, sizeof(size), rfl_by_int) -
			      sizes);
	}
	rfl_figure__palette(f, n);
	for (size_t i = 0; i < n; i++) {
		f->palette[i] = rfl_theme_ramp(f->theme, i, n);
		f->colors[i] = sizes[i] < (by == RFL_BY_PAST ? 0 : 1)
				       ? "other"
				       : SAY(f,
					     by == RFL_BY_BATCH     ? "batch %lld"
					     : by == RFL_BY_CONTEXT ? "ctx %lld"
								    : "after %lld tokens",
					     (long long)sizes[i]);
	}
}

/* The levels are three shades of one hue; DRAM is the darkest. */
static void color_levels(struct rfl_figure *f)
{
	static const char *const levels[RFL_FIG_CACHES + 1] = { "L1", "L2", "DRAM" };

	rfl_figure__palette(f, RFL_ARRAY_LEN(levels));
	f->by = RFL_BY_LEVEL;
	for (size_t i = 0; i < f->ncolors; i++) {
		f->palette[i] = ramp(f->theme, .1 + .4 * (double)i);
		f->colors[i] = levels[i];
	}
	for (size_t i = 0; i < f->nmarks; i++)
		f->marks[i].color = RFL_FIG_CACHES;
}

/* Whether the steps that are not of mode decode differ in their context length. */
static bool contexts_vary(const struct rfl_figure *f)
{
	const struct rfl_mark *first = NULL;

	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		if (rfl_text_same(m->point->mode, "decode"))
			continue;
		first = first ? first : m;
		if (m->point->context_length != first->point->context_length)
			return true;
	}
	return false;
}

static void choose_colors(struct rfl_figure *f)
{
	const char *keys[RFL_THEME_COLORS];
	size_t n = 0;

	if (f->in->kind == RFL_PLOT_HIERARCHICAL) {
		color_levels(f);
		return;
	}
	if (f->varies.precision && collect(f, RFL_BY_PRECISION, keys, RFL_THEME_COLORS, &n)) {
		f->by = RFL_BY_PRECISION;
	} else if (f->varies.batch && f->in->kind != RFL_PLOT_TRAJECTORY) {
		color_sizes(f, RFL_BY_BATCH);
		return;
	} else if (contexts_vary(f) && f->in->kind != RFL_PLOT_TRAJECTORY) {
		color_sizes(f, RFL_BY_CONTEXT);
		return;
	} else if (f->varies.past && f->in->kind != RFL_PLOT_TRAJECTORY) {
		color_sizes(f, RFL_BY_PAST);
		return;
	} else if (!f->varies.past && has_ways(f) &&
		   collect(f, RFL_BY_WAY, keys, RFL_THEME_COLORS, &n) && n > 1) {
		f->by = RFL_BY_WAY;
	} else if (f->nshapes && collect(f, RFL_BY_MODEL, keys, RFL_THEME_COLORS, &n)) {
		f->by = RFL_BY_MODEL;
	} else {
		f->by = RFL_BY_NONE;
		keys[0] = NULL;
		n = 1;
	}
	rfl_figure__palette(f, n);
	for (size_t i = 0; i < f->nmarks; i++)
		f->marks[i].color = (int)index_of(keys, n, key_of(f->by, &f->marks[i]));
	for (size_t i = 0; i < n; i++) {
		f->palette[i] = f->theme->category[i];
		f->colors[i] = keys[i];
		if (f->by == RFL_BY_MODEL)
			f->colors[i] = rfl_words_model(f->scene, keys[i]);
		else if (f->by == RFL_BY_PRECISION && !keys[i])
			f->colors[i] = "unknown precision";
	}
}

static void choose_shapes(struct rfl_figure *f)
{
	const char *models[RFL_MARKER_COUNT];

	f->nshapes = 0;
	if (!collect(f, RFL_BY_MODEL, models, RFL_MARKER_COUNT, &f->nshapes)) {
		f->nshapes = 0; /* more models than shapes: circles with numbers */
		return;
	}
	for (size_t i = 0; i < f->nshapes; i++)
		f->shapes[i] = rfl_words_model(f->scene, models[i]);
	for (size_t i = 0; i < f->nmarks; i++)
		f->marks[i].shape =
			(enum rfl_marker)index_of(models, f->nshapes, f->marks[i].point->model);
}

/* ---- series: the batches, context lengths or pasts of one configuration ---- */

static const enum rfl_fig_by sizes[] = { RFL_BY_BATCH, RFL_BY_CONTEXT, RFL_BY_PAST };

#define SIZES RFL_ARRAY_LEN(sizes)

/* @param modes  whether marks of different modes differ */
static int compare_series(const struct rfl_mark *x, const struct rfl_mark *y, bool modes)
{
	static const size_t facts[] = {
		offsetof(struct rfl_point, env),       offsetof(struct rfl_point, model),
		offsetof(struct rfl_point, precision), offsetof(struct rfl_point, layout),
		offsetof(struct rfl_point, data_mode), offsetof(struct rfl_point, engine),
		offsetof(struct rfl_point, part),      offsetof(struct rfl_point, mode),
	};
	int order = strcmp(x->variant, y->variant);

	for (size_t i = 0; i + !modes < RFL_ARRAY_LEN(facts) && !order; i++)
		order = strcmp(rfl_mark_text(x, facts[i]), rfl_mark_text(y, facts[i]));
	return order ? order
		     : (x->point->threads > y->point->threads) -
			       (x->point->threads < y->point->threads);
}

static int compare_size(const struct rfl_mark *x, const struct rfl_mark *y, enum rfl_fig_by by)
{
	return (size_of(x, by) > size_of(y, by)) - (size_of(x, by) < size_of(y, by));
}

/* 0: equal in everything but one size. */
static int compare_others(const struct rfl_mark *x, const struct rfl_mark *y, enum rfl_fig_by by)
{
	int order = compare_series(x, y, true);

	for (size_t i = 0; i < SIZES && !order; i++)
		if (sizes[i] != by)
			order = compare_size(x, y, sizes[i]);
	return order;
}

static int compare(const void *a, const void *b, enum rfl_fig_by by)
{
	const struct rfl_mark *x = *(struct rfl_mark *const *)a, *y = *(struct rfl_mark *const *)b;
	int order = compare_others(x, y, by);

	order = order ? order : compare_size(x, y, by);
	return order ? order : (x->number > y->number) - (x->number < y->number);
}

static int by_batch(const void *a, const void *b)
{
	return compare(a, b, RFL_BY_BATCH);
}

static int by_context(const void *a, const void *b)
{
	return compare(a, b, RFL_BY_CONTEXT);
}

static int by_past(const void *a, const void *b)
{
	return compare(a, b, RFL_BY_PAST);
}

/* Link each mark to the next size of its series, the marks that are equal in everything else. A
 * series with two marks of one size has no order; one whose marks all have links is left alone, so
 * that a grid of sizes does not become a net. */
static void link_series(struct rfl_figure *f, enum rfl_fig_by by)
{
	struct rfl_mark **marks = rfl_figure__sort(f, by == RFL_BY_BATCH     ? by_batch
						      : by == RFL_BY_CONTEXT ? by_context
									     : by_past);

	for (size_t from = 0, to; from < f->nmarks; from = to) {
		bool ordered = true, new = false;

		for (to = from; to < f->nmarks && !compare_others(marks[from], marks[to], by);
		     to++) {
			ordered = ordered && (to == from ||
					      size_of(marks[to - 1], by) < size_of(marks[to], by));
			new = new || (!marks[to]->next && !marks[to]->linked);
		}
		if (!ordered || !new || to == from + 1)
			continue;
		for (size_t i = from + 1; i < to; i++) {
			struct rfl_mark *a = marks[i - 1], *b = marks[i];

			if (a->next || b->linked) {
				a->also = b;
				continue;
			}
			a->next = b;
			b->linked = true;
		}
		f->has_series = true;
		f->joins |= 1U << by;
	}
}

/* Link each prefill to the decode steps of its batch, of which those after about as many tokens. */
static void link_prefills(struct rfl_figure *f)
{
	for (struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		const double after =
			(double)m->point->context_length + fmax(0, (double)m->point->past);
		double nearest = INFINITY;

		if (!rfl_text_same(m->point->mode, "prefill"))
			continue;
		for (struct rfl_mark *d = f->marks; d < f->marks + f->nmarks; d++) {
			const double off = fabs((double)d->point->past - after);

			if (!rfl_text_same(d->point->mode, "decode") || off >= nearest ||
			    d->point->batch != m->point->batch || compare_series(m, d, false))
				continue;
			nearest = off;
			m->decode = d;
			f->has_prefills = true;
		}
	}
}

/* The sizes of a series that begins with a mark: "1, 2, 4". */
static const char *stops_of(struct rfl_figure *f, const struct rfl_mark *m)
{
	enum rfl_fig_by by = sizes[0];
	const char *text;

	for (size_t i = 0; i < SIZES; i++)
		if (f->joins & 1U << sizes[i])
			by = sizes[i];
	text = SAY(f, "%lld", (long long)size_of(m, by));
	for (size_t n = 0; m->next && n < 16; n++) {
		m = m->next;
		text = SAY(f, "%s, %lld", text, (long long)size_of(m, by));
	}
	return m->next ? "" : text;
}

/* Set the sizes of all trajectories if they are the same. */
static void compare_stops(struct rfl_figure *f)
{
	for (size_t i = 0; i < f->nmarks && !(f->joins & (f->joins - 1)); i++) {
		const struct rfl_mark *m = &f->marks[i];
		const char *text = m->linked || !m->next ? NULL : stops_of(f, m);

		if (!text)
			continue;
		if (!*text || (f->stops && strcmp(f->stops, text) != 0)) {
			f->stops = NULL;
			return;
		}
		f->stops = text;
	}
}

/* Join the marks by the size with the most values, then those left by the others. */
static void join_marks(struct rfl_figure *f)
{
	int64_t *values = rfl_arena_array(f->scene->arena, f->nmarks, sizeof(*values));
	size_t n[SIZES];

	for (size_t i = 0; i < f->nmarks; i++)
		f->marks[i].variant = rfl_figure__variant(f->scene, f->marks[i].point);
	if (f->in->kind == RFL_PLOT_HIERARCHICAL || f->in->kind == RFL_PLOT_COMPARE)
		return; /* lines join levels, or earlier and later points */
	if (f->nmarks > (f->parts ? RFL_FIG_PAIRS : RFL_FIG_NUMBERED) &&
	    f->in->kind != RFL_PLOT_TRAJECTORY)
		return; /* lines would cover the marks */
	for (size_t i = 0; i < SIZES; i++)
		n[i] = sizes_of(f, sizes[i], values);
	for (size_t k = 0; k < SIZES; k++) {
		size_t most = 0;

		for (size_t i = 1; i < SIZES; i++)
			most = n[i] > n[most] ? i : most;
		n[most] = 0;
		link_series(f, sizes[most]);
	}
	if (f->in->kind == RFL_PLOT_TRAJECTORY)
		compare_stops(f);
	else
		link_prefills(f);
}

void rfl_figure__encode(struct rfl_figure *f)
{
	choose_shapes(f);
	choose_colors(f);
	join_marks(f);
}
