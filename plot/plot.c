/*
 * plot.c - builds a figure from its data: arranges the page (scale, boxes of plot, panel, legend
 * strip and footnote, ranges of the axes), then draws in order.
 */
#include "plot/plot.h"

#include <math.h>
#include <string.h>

#include "plot/figure.h"
#include "roofline/roofline.h"

static double decade_of(double value)
{
	return pow(10, floor(log10(value) + 1e-9));
}

double rfl_axis_step(double value, bool up)
{
	static const double digits[] = { 1, 2, 5, 10 };
	const double digit = value / decade_of(value);
	size_t i = up ? 0 : 2;

	while (up ? digits[i] < digit * (1 - 1e-9) : digits[i] > digit * (1 + 1e-9))
		i += up ? 1 : (size_t)-1;
	return digits[i] * decade_of(value);
}

/* 1, 2, ... 9 times a power of ten. */
static double round_down(double value)
{
	return floor(value / decade_of(value) + 1e-9) * decade_of(value);
}

static double round_up(double value)
{
	return ceil(value / decade_of(value) - 1e-9) * decade_of(value);
}

void rfl_axis_fit(struct rfl_axis *a, double lo, double hi, double from, double to, double room)
{
	const double max = round_up(hi);

	lo = round_down(lo);
	rfl_axis_set(a, lo, max < lo * 9 ? lo * 10 : max, from, to, room);
}

void rfl_axis_set(struct rfl_axis *a, double lo, double hi, double from, double to, double room)
{
	const double length = fabs(to - from) / log10(hi / lo); /* of a decade on the page */
	const bool few = hi < lo * 8.9; /* limits set by the user may lie within a decade */
	const int every = (int)fmax(1, ceil(0.75 * room / length)); /* decades with a label */
	const bool many = hi > lo * 1e14;                           /* without minor ticks */
	double decade;

	*a = (struct rfl_axis){ .min = lo, .max = hi, .from = from, .to = to };
	for (decade = decade_of(a->min); decade <= a->max * 1.0001; decade *= 10) {
		for (int digit = 1; digit < 10; digit++) {
			double value = decade * digit;
			bool labelled = digit == 1 && lround(log10(decade)) % every == 0;

			if (value < a->min * 0.9999 || value > a->max * 1.0001 ||
			    a->nticks == RFL_AXIS_MAX_TICKS ||
			    (many && (digit > 1 || lround(log10(decade)) % every)))
				continue;
			/* labels at 1, 2, 5, or at 1, 3, or at 1, depending on the room */
			if (few && length * 0.14 >= room)
				labelled = digit <= 3 || digit == 5 || digit == 7;
			else if (few || length * 0.3 >= room)
				labelled = labelled || digit == 2 || digit == 5;
			else if (length * 0.47 >= room)
				labelled = labelled || digit == 3;
			a->ticks[a->nticks++] = (struct rfl_tick){ value, digit == 1, labelled };
		}
	}
}

double rfl_axis_at(const struct rfl_axis *a, double value)
{
	return a->from + (a->to - a->from) * log10(value / a->min) / log10(a->max / a->min);
}

/* Least and largest value of each axis. */
struct ranges {
	double x[2], y[2];
};

/* Choose one range for the times of both axes, with room for the measured ones. */
static struct ranges times_of(const struct rfl_figure *f)
{
	double lo = INFINITY, hi = 0;

	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		lo = fmin(lo, 0.6 * fmin(m->x, m->y));
		hi = fmax(hi, 1.3 * fmax(m->time, m->roof));
	}
	lo = fmax(lo, hi / 1e8); /* the others become marks at the edge */
	return (struct ranges){ { lo, hi }, { lo, hi } };
}

/* Whether a training step can stand under a ceiling, or under one that this is a part of. */
static bool is_roof(const struct rfl_peaks_env *env, const char *key)
{
	const struct rfl_peaks_part *line = rfl_peaks_part(key, false);
	const size_t len = line ? strlen(key) - strlen(line->word) - 1 : strlen(key);
	const struct rfl_ceiling *c;

	if (line && line->line == RFL_LINE_NONE)
		return false;
	for (size_t i = 0; !env->short_form && (c = rfl_ceiling_at(i)); i++) {
		const char *keys[] = { c->key, c->faster, c->elementwise };

		for (size_t k = 0; !c->inference && k < RFL_ARRAY_LEN(keys); k++)
			if (keys[k] && strlen(keys[k]) == len && strncmp(keys[k], key, len) == 0)
				return true;
	}
	return env->short_form;
}

/* The ranges that show all ceilings of the environment, whatever its points are, so that figures of
 * one machine can be compared. Below the roofs, there are almost two decades of rates; the
 * intensities of training hardly depend on the machine. */
static struct ranges machine_of(const struct rfl_figure *f)
{
	const struct rfl_peaks_env *env = f->in->env;
	const bool parts = f->parts || f->in->kind == RFL_PLOT_HIERARCHICAL;
	double lo = INFINITY, hi = f->top, least = INFINITY, fastest = f->gbps;

	for (size_t i = 0; i < env->ncompute; i++) {
		const struct rfl_peak *p = &env->compute[i].peak;

		if (!rfl_peak_usable(p) || !is_roof(env, env->compute[i].key))
			continue;
		hi = fmax(hi, fmax(p->value, p->spec) / 1e9);
		least = fmin(least, p->value / 1e9);
		if (!rfl_peaks_part(env->compute[i].key, false))
			lo = fmin(lo, p->value / 1e9);
	}
	for (size_t i = 0; i < f->nmarks; i++) /* other ceilings, such as of FP64 */
		lo = fmin(lo, f->marks[i].point->peak_gflops);
	for (size_t i = 0; i < env->nlevels && f->in->kind == RFL_PLOT_HIERARCHICAL; i++)
		if (rfl_peak_usable(&env->levels[i].peak))
			fastest = fmax(fastest, env->levels[i].peak.value / 1e9);
	return (struct ranges){ { round_down(fmin(parts ? 0.1 : INFINITY, lo / fastest / 20)),
				  round_up(fmax(500, 4 * hi / f->gbps)) },
				{ round_down(fmin(least / 2, lo / 50)), round_up(1.6 * hi) } };
}

#define FAR 100 /* a value this many times outside the range does not extend it */

static bool is_near(const double machine[2], double value)
{
	return value * FAR >= machine[0] && value <= machine[1] * FAR;
}

static void extend(double range[2], const double machine[2], double value)
{
	if (is_near(machine, value) && value < 1.1 * range[0])
		range[0] = rfl_axis_step(value / 1.1, false);
	if (is_near(machine, value) && value * 1.1 > range[1])
		range[1] = rfl_axis_step(value * 1.1, true);
}

/* Choose the ranges of the axes: the machine's, extended to points outside them, such as
 * steps far below the roof. A point that is still outside becomes a mark at the edge. */
static struct ranges ranges_of(const struct rfl_figure *f)
{
	struct ranges all, r;

	if (rfl_figure__is_time(f))
		return times_of(f);
	all = r = machine_of(f);
	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		const double xs[] = { m->x, m->x_was, m->x_cache[0], m->x_cache[1] };
		const double ys[] = { m->y, m->y_was, NAN, NAN };

		for (int i = 0; i < 4 && is_near(all.x, m->x) && is_near(all.y, m->y); i++) {
			extend(r.x, all.x, xs[i]);
			extend(r.y, all.y, ys[i]);
		}
	}
	return r;
}

/* The least distance between the labels of the x-axis. */
static double label_room(const struct rfl_figure *f, double lo, double hi)
{
	const double ends[] = { decade_of(lo), 2 * decade_of(hi) };
	double room = 40 * f->scale;

	for (size_t i = 0; i < RFL_ARRAY_LEN(ends); i++)
		room = fmax(room, rfl_width(SAY(f, "%.12g", ends[i]), SZ(f, tick)) + 6 * f->scale);
	return room;
}

/* Set the axes to the limits of the user or, without any, to these ranges. */
static void set_axes(struct rfl_figure *f, const struct ranges *r)
{
	const bool set_x = f->in->xlim[1] > 0, set_y = f->in->ylim[1] > 0;
	const double *x = set_x ? f->in->xlim : r->x, *y = set_y ? f->in->ylim : r->y;
	const struct rfl_box *b = &f->plot;

	f->unit = !rfl_figure__is_time(f) && y[1] > 20000 ? 1000 : 1;
	(set_x ? rfl_axis_set : rfl_axis_fit)(&f->x, x[0], x[1], b->x, b->x + b->w,
					      label_room(f, x[0], x[1]));
	(set_y ? rfl_axis_set : rfl_axis_fit)(&f->y, y[0] / f->unit, y[1] / f->unit, b->y + b->h,
					      b->y, 24 * f->scale);
}

static void fit_axes(struct rfl_figure *f)
{
	struct ranges r = ranges_of(f->nsubs ? &f->subs[0] : f);

	for (size_t k = 1; k < f->nsubs; k++) {
		const struct ranges other = ranges_of(&f->subs[k]);

		r = (struct ranges){ { fmin(r.x[0], other.x[0]), fmax(r.x[1], other.x[1]) },
				     { fmin(r.y[0], other.y[0]), fmax(r.y[1], other.y[1]) } };
	}
	set_axes(f, &r);
	for (size_t k = 0; k < f->nsubs; k++) {
		if (f->in->overlay)
			f->subs[k].plot = f->plot;
		f->subs[k].scale = f->scale;
		f->subs[k].has_legend = f->has_legend;
		f->subs[k].tight = f->tight;
		set_axes(&f->subs[k], &r);
	}
}

/* Whether the page has small multiples. */
static bool has_cells(const struct rfl_figure *f)
{
	return f->nsubs > 0 && !f->in->overlay;
}

#define SIDE_SHARE 0.42 /* of the width, for a list of names to the right of the plot */

/* Divide the page. A page that grows has room for everything; on others, lines of the footnote are
 * dropped first, then the list of names moves to the right, then the legend is dropped, so that the
 * plot keeps its share. */
static void fit_boxes(struct rfl_figure *f)
{
	const struct rfl_theme *t = f->theme;
	double w = f->scene->width, h = f->scene->height, s = f->scale;
	double left = t->left * s, below = t->below * s, wide = w - left - t->right * s;
	double top = (!f->has_title ? 10 : *f->subtitle ? t->top : t->top - 22) * s;
	double panel_w = 330 * s, gap = 30 * s, strip_h = 0, plot_h;
	/* texts are aligned with the plot, but without a title the legend has the whole width */
	const double strip_x = f->has_title ? left : t->right * s;
	const double strip_w = w - t->right * s - strip_x;
	const char **lines;
	size_t n = 0;

	f->foot = (struct rfl_box){ 0, 0, wide, h + RFL_PLOT_HEIGHT }; /* for all of the text */
	if (f->has_footnote)
		n = rfl_figure__note_lines(f, &lines);
	f->has_panel = t->has_panel && !f->in->no_panel && !f->nsubs &&
		       wide - panel_w - gap >= fmax(400 * s, 0.5 * w) && h >= 560 * s;
	f->plot = (struct rfl_box){ left, top, wide - (f->has_panel ? panel_w + gap : 0), 0 };
	/* on a page that does not grow, a list once needed remains: without it, labels have more
	 * room */
	f->needs_key = f->has_numbers || f->nlost || (f->needs_key && !f->grows);
	f->has_positions = f->nlost || (f->has_positions && !f->grows);
	f->has_key = f->needs_key && !f->has_panel && f->nmarks <= RFL_FIG_NUMBERED;
	f->side.columns = 0;
	plot_h = has_cells(f) ? rfl_figure__cells(f, f->plot) : f->aspect * wide;
	if (!f->has_panel)
		strip_h = rfl_draw__legend(f, (struct rfl_box){ 0, 0, strip_w, 0 }, false) + 8 * s;
	f->foot.h = (n ? 22 + 13 * (double)n : 6) * s;
	if (f->grows)
		f->scene->height = h = top + plot_h + below + strip_h + f->foot.h;
	for (;;) {
		f->foot.h = (n ? 22 + 13 * (double)n : 6) * s;
		f->plot.h = h - top - below - strip_h - f->foot.h;
		if (f->plot.h >= 0.45 * h || f->grows)
			break;
		if (n > 1) {
			n--;
		} else if (f->has_key) {
			f->has_key = false;
			strip_h = rfl_draw__legend(f, (struct rfl_box){ 0, 0, strip_w, 0 }, false) +
				  8 * s;
			for (int roofs = 1; roofs >= 0 && !has_cells(f) && !f->side.columns;
			     roofs--)
				f->side =
					rfl_draw__key_in(f, SIDE_SHARE * wide,
							 h - top - below - strip_h - f->foot.h -
								 roofs * rfl_draw__roofs_height(f));
			f->plot.w -= (double)f->side.columns * f->side.column_w;
		} else if (strip_h > 0)
			strip_h = 0;
		else
			break;
	}
	if (has_cells(f) && !f->grows)
		(void)rfl_figure__cells(f, f->plot);
	f->has_legend = f->has_panel || strip_h > 0 || f->side.columns;
	f->foot = (struct rfl_box){ left, h - f->foot.h, wide, f->foot.h };
	f->strip = (struct rfl_box){ strip_x, f->plot.y + f->plot.h + below, strip_w, strip_h };
	f->panel = (struct rfl_box){ left + f->plot.w + gap, top, panel_w, f->plot.h + below };
}

void rfl_draw__plot(struct rfl_figure *f, bool titles)
{
	size_t from, to;

	rfl_draw__ground(f);
	rfl_draw__axes(f);
	if (titles)
		rfl_draw__axis_titles(f);
	rfl_draw__roofs(f);
	from = f->scene->n;
	rfl_draw__marks(f);
	to = f->scene->n;
	rfl_draw__gutter(f);
	rfl_draw__roof_labels(f);
	rfl_scene_raise(f->scene, from, to);
	rfl_draw__labels(f);
}

static void draw(struct rfl_figure *f)
{
	const struct rfl_theme *t = f->theme;
	const double page_h = t->height > 0 ? t->height : f->scene->height;

	f->scale = t->scale * fmin(f->scene->width / t->width, f->scene->height / page_h);
	if (has_cells(f))
		f->scale *= pow(2.0 / (double)f->nsubs, 0.4);
	f->scale = fmin(fmax(f->scale, t->least), 4);
	f->has_title = t->has_title || (f->in->title && *f->in->title);
	f->has_footnote = t->has_footnote;
	/* Only in the second round are the kinds of marks, and so the legend entries, known. */
	for (int round = 0; round < 2; round++) {
		rfl_figure__words(f);
		fit_boxes(f);
		if (f->is_cramped)
			return;
		fit_axes(f);
		if (has_cells(f))
			rfl_draw__survey_cells(f);
		else
			rfl_draw__survey(f);
	}
	f->place = rfl_place_new(f->scene, rfl_box_grow(f->plot, -3 * f->scale));
	f->scene->n = 0;
	f->scene->title = f->title;
	f->scene->caption = rfl_figure__caption(f);
	f->scene->has_caption = f->has_title && f->has_footnote;
	f->scene->paper = f->theme->paper;
	if (has_cells(f))
		rfl_draw__cells(f);
	else if (f->nsubs)
		rfl_draw__overlay(f);
	else
		rfl_draw__plot(f, true);
	rfl_draw__panel(f);
	rfl_figure__words(f); /* the number of marks without a label is known now */
	rfl_draw__caption(f);
}

enum rfl_rc rfl_plot_check_limits(const char *name, const double limits[2], struct rfl_err *err)
{
	const double lo = limits[0], hi = limits[1];

	if (hi > 0 && hi < lo)
		return rfl_fail(err, RFL_EINVAL, 0, "%s: %g:%g is reversed; use %g:%g", name, lo,
				hi, hi, lo);
	if (!(lo >= 1e-6 && hi <= 1e12 && hi >= 3 * lo && hi <= lo * 1e12))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %g:%g is not a valid range of a logarithmic axis; use LO of "
				"at least 1e-6 and HI from 3 times LO up to 1e12",
				name, lo, hi);
	return RFL_OK;
}

static enum rfl_rc check_input(const struct rfl_plot_input *in, const struct rfl_theme *t,
			       struct rfl_err *err)
{
	const struct {
		const char *side, *range;
		double length, least;
		const double *limits;
	} axes[] = {
		{ "width", "xlim", in->width > 0 ? in->width : t->width, RFL_PLOT_MIN_WIDTH,
		  in->xlim },
		{ "height", "ylim", in->height > 0 ? in->height : RFL_PLOT_HEIGHT,
		  RFL_PLOT_MIN_HEIGHT, in->ylim },
	};
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(axes) && rc == RFL_OK; i++) {
		if (!(axes[i].length >= axes[i].least && axes[i].length <= RFL_PLOT_MAX_SIDE))
			return rfl_fail(err, RFL_EINVAL, 0,
					"a %s of %g points is out of range; use %g to %g",
					axes[i].side, axes[i].length, axes[i].least,
					RFL_PLOT_MAX_SIDE);
		if (axes[i].limits[0] != 0 || axes[i].limits[1] != 0)
			rc = rfl_plot_check_limits(axes[i].range, axes[i].limits, err);
	}
	return rc;
}

enum rfl_rc rfl_plot_check(const struct rfl_plot_input *in, struct rfl_err *err)
{
	struct rfl_figure f = { .in = in, .theme = rfl_themes, .scene = rfl_scene_new(1, 1) };
	enum rfl_rc rc = rfl_figure__marks(&f, err);

	rfl_scene_free(f.scene);
	return rc;
}

enum rfl_rc rfl_plot_roofline(const struct rfl_plot_input *in, struct rfl_scene **ret,
			      struct rfl_err *err)
{
	struct rfl_figure f = { .in = in, .theme = rfl_theme_find(in->style) };
	enum rfl_rc rc;

	if (!f.theme)
		return rfl_fail(err, RFL_EINVAL, 0, "'%s' is not a style", in->style);
	if ((rc = check_input(in, f.theme, err)) != RFL_OK)
		return rc;
	f.aspect = 0.66;
	f.grows = in->height <= 0 && f.theme->height <= 0;
	f.scene = rfl_scene_new(in->width > 0 ? in->width : f.theme->width,
				in->height > 0 ? in->height
				: f.grows      ? RFL_PLOT_HEIGHT
					       : f.theme->height);
	f.has_tick_x = f.has_tick_y = true;
	if (in->nenvs > 1)
		rc = rfl_figure__several(&f, err);
	else if ((rc = rfl_figure__marks(&f, err)) == RFL_OK)
		rc = rfl_figure__ceilings(&f, err);
	if (rc != RFL_OK)
		goto done;
	/* the legend below the axis and the footnote need room for numbers and for what has no
	 * label, which is known only after drawing */
	for (int i = 0; i < 12; i++) {
		const bool numbers = f.has_numbers;
		const size_t lost = f.nlost;

		f.unsettled = false;
		for (size_t k = 0; k < f.nmarks && i == 6; k++)
			f.marks[k].listed = true; /* then the list has a constant height */
		draw(&f);
		if (f.is_cramped) {
			rc = rfl_fail(
				err, RFL_EINVAL, 0,
				"%zu environments do not fit on a page of %g x %g points; use "
				"a larger page, fewer environments or an overlay",
				f.nsubs, f.scene->width, f.scene->height);
			goto done;
		}
		if (f.nlost && f.nmarks <= RFL_FIG_NUMBERED && f.tight < 2 && !f.parts) {
			f.tight++; /* smaller marks leave more room */
			continue;
		}
		if (f.nlost != lost || f.unsettled || (f.has_numbers != numbers && !f.has_panel))
			continue;
		/* a page that grows makes room for the marks without a label */
		if (!f.grows || !f.nlost || f.nmarks > RFL_FIG_NUMBERED || f.aspect > 1.3)
			break;
		f.aspect += 0.16;
		for (size_t k = 0; k < f.nmarks; k++)
			f.marks[k].listed = false;
		i = -1;
	}
	*ret = f.scene;
	f.scene = NULL;
done:
	rfl_scene_free(f.scene);
	return rc;
}
