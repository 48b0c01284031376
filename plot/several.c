/*
 * several.c - the rooflines of several environments on one page: small multiples with common axes
 * and one key, or an overlay with one colour each. Names, shapes and colours are chosen for all
 * points together, in the figure of the page. Each environment is a part of that figure, with its
 * own marks and ceilings.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "plot/figure.h"

#define GAP     36 /* between cells */
#define HEADING 26 /* above a cell */

/* Sort the points by environment, so that the points of a part are contiguous. */
static const struct rfl_points *grouped(struct rfl_figure *f)
{
	const struct rfl_points *all = f->in->points;
	struct rfl_points *ret = rfl_arena_array(f->scene->arena, 1, sizeof(*ret));
	struct rfl_point *points = rfl_arena_array(f->scene->arena, all->n + 1, sizeof(*points));

	*ret = *all;
	ret->points = points;
	ret->n = 0;
	for (size_t k = 0; k < f->in->nenvs; k++)
		for (size_t i = 0; i < all->n; i++)
			if (rfl_text_same(all->points[i].env, f->in->envs[k]->name))
				points[ret->n++] = all->points[i];
	return ret;
}

/* Select the marks of a part, from index `from` of the page on. @return the number of marks */
static size_t take_marks(struct rfl_figure *page, struct rfl_figure *part, size_t from)
{
	const char *env = part->in->env->name;

	part->marks = page->marks + from;
	part->nmarks = part->nidle = 0;
	part->has_series = false;
	part->by_rank = rfl_arena_array(page->scene->arena, page->nmarks, sizeof(*part->by_rank));
	part->idle = rfl_arena_array(page->scene->arena, page->nidle + 1, sizeof(*part->idle));
	for (size_t i = 0; i < page->nmarks; i++) {
		struct rfl_mark *m = page->by_rank[i];

		if (!rfl_text_same(m->point->env, env))
			continue;
		part->has_series |= m->next != NULL;
		part->by_rank[part->nmarks++] = m;
	}
	for (size_t i = 0; i < page->nidle; i++)
		if (rfl_text_same(page->idle[i].point->env, env))
			part->idle[part->nidle++] = page->idle[i];
	return part->nmarks;
}

/* Add the environment to names that marks of several environments share. */
static void complete_names(struct rfl_figure *f)
{
	for (struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++)
		for (const struct rfl_mark *o = f->marks; o < f->marks + f->nmarks; o++)
			if (o != m && strcmp(o->name, m->name) == 0)
				m->full = SAY(f, "%s, %s", m->name, m->point->env);
	for (struct rfl_mark *m = f->marks; m < f->marks + f->nmarks && f->in->overlay; m++)
		m->name = m->full;
}

/* In an overlay, a colour is an environment; only roofs are drawn, labelled with the environment.
 */
static void overlay_part(struct rfl_figure *page, struct rfl_figure *part, size_t k)
{
	struct rfl_theme *t = rfl_arena_array(page->scene->arena, 1, sizeof(*t));
	size_t kept = 0;

	*t = *page->theme;
	t->roof = t->roof_quiet = rfl_figure__line_color(page, page->palette[k]);
	part->theme = t;
	for (size_t i = 0; i < part->nceilings; i++) {
		struct rfl_fig_ceiling c = part->ceilings[i];

		if (!c.primary)
			continue;
		c.color = -1;
		c.dash = k == 0 ? RFL_DASH_SOLID : RFL_DASH_DASHED;
		for (size_t j = 0; j < RFL_ARRAY_LEN(c.labels); j++)
			c.labels[j] = SAY(page, "%s: %s", part->in->env->name, c.labels[j]);
		part->ceilings[kept++] = c;
	}
	part->nceilings = kept;
}

static void color_environments(struct rfl_figure *f)
{
	struct rfl_theme *t = rfl_arena_array(f->scene->arena, 1, sizeof(*t));

	rfl_figure__palette(f, f->in->nenvs);
	*t = *f->theme;
	t->memory = t->compute = t->paper; /* every environment has its own ridge point */
	f->theme = t;
	f->by = RFL_BY_ENV;
	for (size_t k = 0; k < f->ncolors; k++) {
		const struct rfl_peaks_env *env = f->in->envs[k];

		f->palette[k] = f->theme->category[k];
		f->colors[k] = env->device && *env->device
				       ? SAY(f, "%s (%s)", env->name, env->device)
				       : env->name;
		for (size_t i = 0; i < f->nmarks; i++)
			if (rfl_text_same(f->marks[i].point->env, env->name))
				f->marks[i].color = (int)k;
	}
}

/* The roofs of an environment without points, in the precision of the first mark of the page. */
static enum rfl_rc add_roofs_alone(struct rfl_figure *page, struct rfl_figure *part,
				   struct rfl_err *err)
{
	const struct rfl_peaks_env *env = part->in->env;
	const char *key = page->marks[0].point->compute_key;
	const struct rfl_peak *peak = key ? rfl_peaks_compute(env, key) : NULL;
	const struct rfl_peak *dram = rfl_peaks_dram(env);
	struct rfl_point point = *page->marks[0].point;
	struct rfl_mark mark = page->marks[0];
	enum rfl_rc rc;

	if (!rfl_peak_usable(peak) || !rfl_peak_usable(dram))
		return rfl_fail(err, RFL_EMISSING, 0,
				"environment %s: no point to draw, and no %s with a DRAM bandwidth "
				"for roofs; leave it out",
				env->name, key ? key : "compute ceiling");
	point.peak_gflops = peak->value / 1e9;
	point.peak_gbps = dram->value / 1e9;
	mark.point = &point;
	part->marks = &mark;
	part->nmarks = 1;
	rc = rfl_figure__ceilings(part, err);
	part->marks = page->marks;
	part->nmarks = 0;
	return rc;
}

enum rfl_rc rfl_figure__several(struct rfl_figure *f, struct rfl_err *err)
{
	const size_t n = f->in->nenvs;
	const size_t most = f->in->overlay ? RFL_THEME_COLORS : RFL_PLOT_MAX_CELLS;
	struct rfl_plot_input *inputs = rfl_arena_array(f->scene->arena, n + 1, sizeof(*inputs));
	enum rfl_rc rc;
	size_t from = 0;

	if (n > most)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%zu environments are too many for one figure; choose up to %zu", n,
				most);
	f->subs = rfl_arena_array(f->scene->arena, n, sizeof(*f->subs));
	inputs[n] = *f->in;
	inputs[n].points = grouped(f);
	inputs[n].env = NULL;
	f->in = &inputs[n];
	if ((rc = rfl_figure__marks(f, err)) != RFL_OK)
		return rc;
	if (f->in->overlay)
		color_environments(f);
	for (size_t k = 0; k < n; k++) {
		struct rfl_figure *part = &f->subs[k];

		*part = *f;
		inputs[k] = *f->in;
		inputs[k].env = f->in->envs[k];
		part->in = &inputs[k];
		part->subs = NULL;
		from += take_marks(f, part, from);
		rc = part->nmarks ? rfl_figure__ceilings(part, err)
				  : add_roofs_alone(f, part, err);
		if (rc != RFL_OK)
			return rc;
		for (size_t i = 0; i < part->nceilings; i++)
			part->ceilings[i].id =
				SAY(f, "%s-%s", part->ceilings[i].id, part->in->env->name);
		if (f->in->overlay)
			overlay_part(f, part, k);
	}
	f->nsubs = n;
	f->gbps = f->subs[0].gbps;
	f->gflops = f->top = f->subs[0].gflops;
	f->knee = f->knee_lo = f->knee_hi = f->subs[0].knee;
	complete_names(f);
	return RFL_OK;
}

/* ---- small multiples ---- */

/* The number of columns: cells close to 4 by 3, few of them empty; as many as fit on a page that
 * grows. */
static size_t columns_of(const struct rfl_figure *f, double wide, double high)
{
	const double s = f->scale;
	size_t best = 1;
	double least = INFINITY;

	for (size_t columns = 1; columns <= f->nsubs; columns++) {
		const size_t rows = (f->nsubs + columns - 1) / columns;
		const double w = (wide - (double)(columns - 1) * GAP * s) / (double)columns;
		const double h = (high + GAP * s) / (double)rows - (GAP + HEADING) * s;
		double cost = (f->grows ? 0.15 : 0.3) * (double)(rows * columns - f->nsubs);

		if (f->grows)
			cost -= 0.2 * (double)columns;
		else
			cost += h > 0 ? fabs(log(w / h / 1.35)) : 1e3;
		if ((columns > 1 && w < (f->grows ? 230 : 130) * s) || cost >= least)
			continue;
		least = cost;
		best = columns;
	}
	return best;
}

double rfl_figure__cells(struct rfl_figure *f, struct rfl_box box)
{
	const double s = f->scale;
	const size_t columns = columns_of(f, box.w, box.h);
	const size_t rows = (f->nsubs + columns - 1) / columns;
	const double w = (box.w - (double)(columns - 1) * GAP * s) / (double)columns;
	/* narrow cells need more height for their labels */
	const double aspect = f->aspect * (columns > 1 ? 1.25 : 1);
	const double step =
		f->grows ? aspect * w + (GAP + HEADING) * s : (box.h + GAP * s) / (double)rows;

	f->is_cramped = w < 100 * s || step - (GAP + HEADING) * s < 70 * s;
	if (f->is_cramped)
		return 0;
	for (size_t k = 0; k < f->nsubs; k++) {
		struct rfl_figure *part = &f->subs[k];

		part->plot = (struct rfl_box){ box.x + (double)(k % columns) * (w + GAP * s),
					       box.y + (double)(k / columns) * step + HEADING * s,
					       w, step - (GAP + HEADING) * s };
		part->has_tick_x = k + columns >= f->nsubs;
		part->has_tick_y = k % columns == 0;
	}
	f->spare = f->subs[f->nsubs - 1].plot;
	f->spare.x += w + GAP * s;
	f->spare.w = f->grows ? box.x + box.w - f->spare.x : 0;
	return (double)rows * step - GAP * s;
}

static void draw_cell(struct rfl_figure *f)
{
	const struct rfl_peaks_env *env = f->in->env;
	const double s = f->scale, size = SZ(f, subtitle), y = f->plot.y - 8 * s;
	const char *name = rfl_words_fit(f->scene, env->name, RFL_FACE_BOLD, size, f->plot.w);
	const double x = f->plot.x + rfl_text_width(name, RFL_FACE_BOLD, size) + 8 * s;
	const double room = f->plot.x + f->plot.w - x;

	rfl_draw__text(f, "cell", name, f->plot.x, y, size, f->theme->ink, RFL_ANCHOR_START)
		->at.text.face = RFL_FACE_BOLD;
	if (env->device && room > 40 * s)
		rfl_draw__text(f, "cell-device",
			       rfl_words_fit(f->scene, env->device, RFL_FACE_REGULAR, size, room),
			       x, y, size, f->theme->soft, RFL_ANCHOR_START);
	f->place = rfl_place_new(f->scene, rfl_box_grow(f->plot, -3 * s));
	rfl_draw__plot(f, false);
}

void rfl_draw__cells(struct rfl_figure *f)
{
	f->has_numbers = false;
	f->nlost = 0;
	for (struct rfl_figure *part = f->subs; part < f->subs + f->nsubs; part++) {
		part->unsettled = false;
		draw_cell(part);
		f->unsettled |= part->unsettled;
		f->has_numbers |= part->has_numbers;
		f->nlost += part->nlost;
	}
	rfl_draw__list(f);
	rfl_draw__axis_titles(f);
}

void rfl_draw__survey_cells(struct rfl_figure *f)
{
	f->has_errors = f->has_whiskers = f->has_above = f->has_edges = f->bars_hidden = false;
	for (struct rfl_figure *part = f->subs; part < f->subs + f->nsubs; part++) {
		rfl_draw__survey(part);
		f->has_errors |= part->has_errors;
		f->has_whiskers |= part->has_whiskers;
		f->has_above |= part->has_above;
		f->has_edges |= part->has_edges;
		f->bars_hidden |= part->bars_hidden;
	}
}

/* ---- overlay ---- */

void rfl_draw__overlay(struct rfl_figure *f)
{
	const bool timed = rfl_figure__is_time(f);
	size_t from, to;

	f->gutter_hidden = f->nidle > 0;
	rfl_draw__ground(f);
	rfl_draw__axes(f);
	rfl_draw__axis_titles(f);
	if (timed) /* isochrones are common to all */
		rfl_draw__roofs(f);
	/* the first has solid roofs: equal ones of others are visible above them */
	for (size_t k = 0; k < f->nsubs && !timed; k++) {
		struct rfl_figure *part = &f->subs[k];

		part->plot = f->plot;
		part->place = f->place;
		rfl_draw__roofs(part);
	}
	from = f->scene->n;
	rfl_draw__marks(f);
	to = f->scene->n;
	if (timed)
		rfl_draw__roof_labels(f);
	for (struct rfl_figure *part = f->subs; part < f->subs + f->nsubs && !timed; part++) {
		part->unsettled = false;
		rfl_draw__roof_labels(part);
		f->unsettled |= part->unsettled;
	}
	rfl_scene_raise(f->scene, from, to);
	rfl_draw__labels(f);
}
