/*
 * several.c - the rooflines of several environments on one page: small multiples with common axes
 * and one key, or an overlay with one colour each. Names, shapes and colours are chosen for all
 * points together, in the figure of the page. Each environment is a part of that figure, with its
 * own marks and ceilings.
 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "plot/figure.h"

#define GAP     36 /* between cells */
#define HEADING 26 /* above a cell */

/* Sort the points by environment, so that those of a part are contiguous. */
static const struct rfl_points *grouped(struct rfl_figure *f)
{
	const struct rfl_points *all = f->in->points;
	struct rfl_points *ret = rfl_scene_array(f->scene, 1, sizeof(*ret));
	struct rfl_point *points = rfl_scene_array(f->scene, all->n + 1, sizeof(*points));

	if (!ret || !points)
		return NULL;
	*ret = *all;
	ret->points = points;
	ret->n = 0;
	for (size_t k = 0; k < f->in->nenvs; k++)
		for (size_t i = 0; i < all->n; i++)
			if (rfl_text_same(all->points[i].env, f->in->envs[k]->name))
				points[ret->n++] = all->points[i];
	return ret;
}

/* Copy the marks of a part, from index `from` of the page on. @return the number of marks */
static size_t take_marks(struct rfl_figure *page, struct rfl_figure *part, size_t from)
{
	const char *env = part->in->env->name;
	size_t n = 0, ranks = 0;

	while (from + n < page->nmarks && rfl_text_same(page->marks[from + n].point->env, env))
		n++;
	part->nmarks = n;
	part->marks = rfl_scene_array(page->scene, n + 1, sizeof(*part->marks));
	part->by_rank = rfl_scene_array(page->scene, n + 1, sizeof(*part->by_rank));
	if (!part->marks || !part->by_rank)
		return n;
	part->has_series = false;
	for (size_t i = 0; i < n; i++) {
		struct rfl_mark *m = &part->marks[i];

		*m = page->marks[from + i];
		m->next = m->next < 0 ? -1 : m->next - (int)from;
		m->also = m->also < 0 ? -1 : m->also - (int)from;
		part->has_series |= m->next >= 0;
	}
	part->idle = rfl_scene_array(page->scene, page->nidle + 1, sizeof(*part->idle));
	part->nidle = 0;
	for (size_t i = 0; part->idle && i < page->nidle; i++)
		if (rfl_text_same(page->idle[i]->env, env))
			part->idle[part->nidle++] = page->idle[i];
	for (size_t i = 0; i < page->nmarks; i++) {
		const size_t at = (size_t)page->by_rank[i];

		if (at < from || at >= from + n)
			continue;
		part->marks[at - from].rank = (int)ranks;
		part->by_rank[ranks++] = (int)(at - from);
	}
	return n;
}

/* Add the environment to names that marks of several environments share. */
static void complete_names(struct rfl_figure *f)
{
	const char **names = rfl_scene_array(f->scene, f->nmarks, sizeof(*names));

	for (size_t i = 0; names && i < f->nmarks; i++) {
		struct rfl_mark *m = &f->marks[i];

		names[i] = m->name;
		for (size_t k = 0; k < f->nmarks && names[i] == m->name; k++)
			if (k != i && strcmp(k < i ? names[k] : f->marks[k].name, names[i]) == 0)
				m->name = SAY(f, "%s, %s", names[i], m->point->env);
	}
}

/* In an overlay, a colour is an environment; only roofs are drawn, labelled with the environment.
 */
static void overlay_part(struct rfl_figure *page, struct rfl_figure *part, size_t k)
{
	struct rfl_theme *t = rfl_scene_array(page->scene, 1, sizeof(*t));
	size_t kept = 0;

	if (!t)
		return;
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
	struct rfl_theme *t = rfl_scene_array(f->scene, 1, sizeof(*t));

	if (!t || !rfl_figure__palette(f, f->in->nenvs))
		return;
	*t = *f->theme;
	t->memory = t->compute = t->paper; /* every environment has its own knee */
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

enum rfl_rc rfl_figure__several(struct rfl_figure *f, struct rfl_err *err)
{
	const size_t n = f->in->nenvs;
	const size_t most = f->in->overlay ? RFL_THEME_COLORS : RFL_PLOT_MAX_CELLS;
	struct rfl_plot_input *inputs = rfl_scene_array(f->scene, n + 1, sizeof(*inputs));
	enum rfl_rc rc;
	size_t from = 0;

	if (n > most)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%zu environments are too many for one figure; choose up to %zu", n,
				most);
	f->subs = rfl_scene_array(f->scene, n, sizeof(*f->subs));
	if (!inputs || !f->subs)
		return rfl_scene_check(f->scene, err);
	inputs[n] = *f->in;
	inputs[n].points = grouped(f);
	inputs[n].env = NULL;
	f->in = &inputs[n];
	if (!f->in->points)
		return rfl_scene_check(f->scene, err);
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
		if ((rc = rfl_scene_check(f->scene, err)) != RFL_OK)
			return rc;
		if (part->nmarks == 0)
			return rfl_fail(err, RFL_EMISSING, 0,
					"environment %s: no point to draw; leave it out",
					part->in->env->name);
		if ((rc = rfl_figure__ceilings(part, err)) != RFL_OK)
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
	return rfl_scene_check(f->scene, err);
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
		double cost = 0.3 * (double)(rows * columns - f->nsubs);

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
	const double step =
		f->grows ? f->aspect * w + (GAP + HEADING) * s : (box.h + GAP * s) / (double)rows;

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
	if (!f->place)
		return; /* the scene has failed */
	rfl_draw__plot(f, false);
}

void rfl_draw__cells(struct rfl_figure *f)
{
	f->has_numbers = false;
	f->nlost = 0;
	for (size_t k = 0; k < f->nsubs; k++) {
		draw_cell(&f->subs[k]);
		f->has_numbers |= f->subs[k].has_numbers;
		f->nlost += f->subs[k].nlost;
	}
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
		for (size_t i = 0; i < part->nmarks; i++) /* the legend explains hollow marks */
			if (!isnan(part->marks[i].px_best))
				f->marks[0].px_best = part->marks[i].px_best;
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
	for (size_t k = 0; k < f->nsubs && !timed; k++)
		rfl_draw__roof_labels(&f->subs[k]);
	rfl_scene_raise(f->scene, from, to);
	rfl_draw__labels(f);
}
