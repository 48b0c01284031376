/*
 * figure_encode.c - the meaning of shapes, colours and lines. A shape is a model; a colour is the
 * precision, the batch, the variant or the model. No shape or colour ever has two meanings: if
 * there are more values than shapes or colours, all marks get the same one and numbers
 * distinguish them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Batches are ordered: one hue from light to dark. */
static void color_batches(struct rfl_figure *f)
{
	int64_t *batches = rfl_scene_array(f->scene, f->nmarks, sizeof(*batches));
	size_t n = 0;
	double from, to;

	if (!batches)
		return;
	for (size_t i = 0; i < f->nmarks; i++)
		batches[i] = f->marks[i].point->batch;
	qsort(batches, f->nmarks, sizeof(*batches), by_value);
	for (size_t i = 0; i < f->nmarks; i++)
		if (n == 0 || batches[n - 1] != batches[i])
			batches[n++] = batches[i];
	for (size_t i = 0; i < f->nmarks; i++) {
		const int64_t *at =
			bsearch(&f->marks[i].point->batch, batches, n, sizeof(*batches), by_value);

		f->marks[i].color = (int)(at - batches);
	}
	f->palette = rfl_scene_array(f->scene, n, sizeof(*f->palette));
	f->colors = rfl_scene_array(f->scene, n, sizeof(*f->colors));
	if (!f->palette || !f->colors)
		return;
	f->ncolors = n;
	/* a few batches do not need the ends of the ramp */
	from = n < 4 ? .15 : 0;
	to = n < 4 ? .8 : 1;
	for (size_t i = 0; i < n; i++) {
		f->palette[i] = ramp(
			f->theme, n == 1 ? .5 : from + (to - from) * (double)i / (double)(n - 1));
		f->colors[i] = rfl_scene_printf(f->scene, "batch %lld", (long long)batches[i]);
	}
}

/* The levels are three shades of one hue; DRAM is the darkest. */
static void color_levels(struct rfl_figure *f)
{
	static const char *const levels[RFL_FIG_CACHES + 1] = { "L1", "L2", "DRAM" };

	f->palette = rfl_scene_array(f->scene, RFL_ARRAY_LEN(levels), sizeof(*f->palette));
	f->colors = rfl_scene_array(f->scene, RFL_ARRAY_LEN(levels), sizeof(*f->colors));
	if (!f->palette || !f->colors)
		return;
	f->by = RFL_BY_LEVEL;
	f->ncolors = RFL_ARRAY_LEN(levels);
	for (size_t i = 0; i < f->ncolors; i++) {
		f->palette[i] = ramp(f->theme, .1 + .4 * (double)i);
		f->colors[i] = levels[i];
	}
	for (size_t i = 0; i < f->nmarks; i++)
		f->marks[i].color = RFL_FIG_CACHES;
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
		f->by = RFL_BY_BATCH;
		color_batches(f);
		return;
	} else if (has_ways(f) && collect(f, RFL_BY_WAY, keys, RFL_THEME_COLORS, &n) && n > 1) {
		f->by = RFL_BY_WAY;
	} else if (f->nshapes && collect(f, RFL_BY_MODEL, keys, RFL_THEME_COLORS, &n)) {
		f->by = RFL_BY_MODEL;
	} else {
		f->by = RFL_BY_NONE;
		keys[0] = NULL;
		n = 1;
	}
	f->palette = rfl_scene_array(f->scene, n, sizeof(*f->palette));
	f->colors = rfl_scene_array(f->scene, n, sizeof(*f->colors));
	if (!f->palette || !f->colors)
		return;
	f->ncolors = n;
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

/* ---- series: the batches of one configuration ---- */

static const char *text_at(const struct rfl_mark *m, size_t member)
{
	const char *text = *(char *const *)((const char *)m->point + member);

	return text ? text : "";
}

static int compare_series(const struct rfl_mark *x, const struct rfl_mark *y)
{
	static const size_t facts[] = {
		offsetof(struct rfl_point, env),       offsetof(struct rfl_point, model),
		offsetof(struct rfl_point, precision), offsetof(struct rfl_point, mode),
		offsetof(struct rfl_point, layout),    offsetof(struct rfl_point, data_mode),
		offsetof(struct rfl_point, engine),    offsetof(struct rfl_point, part),
		offsetof(struct rfl_point, variant),
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(facts); i++) {
		const int order = strcmp(text_at(x, facts[i]), text_at(y, facts[i]));

		if (order)
			return order;
	}
	return (x->point->threads > y->point->threads) - (x->point->threads < y->point->threads);
}

static int by_series(const void *a, const void *b)
{
	const struct rfl_mark *x = *(struct rfl_mark *const *)a, *y = *(struct rfl_mark *const *)b;
	const int order = compare_series(x, y);

	if (order)
		return order;
	if (x->point->batch != y->point->batch)
		return x->point->batch < y->point->batch ? -1 : 1;
	return x->number - y->number;
}

/* Link each mark to the next batch of its series. A series with two points of one batch has no
 * order. */
static void link_series(struct rfl_figure *f)
{
	struct rfl_mark **marks = rfl_figure__sort(f, by_series);

	for (size_t i = 0; i < f->nmarks; i++)
		f->marks[i].next = -1; /* linked remains false */
	f->has_series = false;
	if (f->in->kind == RFL_PLOT_HIERARCHICAL || f->in->kind == RFL_PLOT_COMPARE)
		return; /* lines join levels, or earlier and later points */
	for (size_t from = 0, to; marks && f->varies.batch && from < f->nmarks; from = to) {
		bool ordered = true;

		for (to = from + 1; to < f->nmarks && !compare_series(marks[from], marks[to]); to++)
			ordered = ordered && marks[to - 1]->point->batch < marks[to]->point->batch;
		for (size_t i = from + 1; i < to && ordered; i++) {
			marks[i - 1]->next = (int)(marks[i] - f->marks);
			marks[i]->linked = true;
		}
		f->has_series = f->has_series || (ordered && to > from + 1);
	}
}

/* The batches of a series that begins with a mark: "1, 2, 4". */
static const char *batches_of(struct rfl_figure *f, const struct rfl_mark *m)
{
	const char *text = rfl_scene_printf(f->scene, "%lld", (long long)m->point->batch);

	for (size_t n = 0; m->next >= 0 && n < 16; n++) {
		m = &f->marks[m->next];
		text = rfl_scene_printf(f->scene, "%s, %lld", text, (long long)m->point->batch);
	}
	return m->next < 0 ? text : "";
}

/* Set the batches of all trajectories if they are the same. */
static void compare_batches(struct rfl_figure *f)
{
	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		const char *text = m->linked || m->next < 0 ? NULL : batches_of(f, m);

		if (!text)
			continue;
		if (!*text || (f->batches && strcmp(f->batches, text) != 0)) {
			f->batches = NULL;
			return;
		}
		f->batches = text;
	}
}

void rfl_figure__encode(struct rfl_figure *f)
{
	choose_shapes(f);
	choose_colors(f);
	link_series(f);
	if (f->in->kind == RFL_PLOT_TRAJECTORY)
		compare_batches(f);
}
