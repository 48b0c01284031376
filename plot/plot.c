/*
 * plot.c - builds a figure from its data: arranges the page (scale, boxes of plot, panel, legend
 * strip and footnote, ranges of the axes), then draws in order. On small pages, the panel is
 * dropped first, then lines of the footnote, so that the plot keeps its share.
 */
#include "plot/plot.h"

#include <math.h>

#include "plot/figure.h"

#define HEX(rgb)                                                    \
	{                                                           \
		(rgb) >> 16 & 255, (rgb) >> 8 & 255, (rgb)&255, 255 \
	}

const struct rfl_theme rfl_theme_light = {
	.paper = HEX(0xffffff),
	.ink = HEX(0x1f2328),
	.soft = HEX(0x636c76),
	.faint = HEX(0xd5d9de),
	.grid = HEX(0xdfe3e8),
	.grid_minor = HEX(0xeef0f3),
	.memory = HEX(0xf5fafe),
	.compute = HEX(0xfffaf3),
	.roof = HEX(0x1f2328),
	.roof_quiet = HEX(0x6e7781),
	.band = HEX(0xd3d6da),
	.leader = HEX(0x8c959f),
	.alarm = HEX(0xd55e00),
	.category = { HEX(0x0072b2), HEX(0xe69f00), HEX(0x009e73), HEX(0xd55e00), HEX(0xcc79a7),
		      HEX(0x56b4e9), HEX(0x4d4d4d) },
	.phase = { HEX(0xb7a3d9), HEX(0x7a5ba6), HEX(0x43306b), HEX(0xb3b8be) },
	.title = 17,
	.subtitle = 11,
	.axis = 12,
	.tick = 11,
	.label = 10.5,
	.label_second = 9.2,
	.ceiling = 10.5,
	.ceiling_quiet = 9.5,
	.heading = 12,
	.table = 10,
	.table_head = 9.2,
	.legend = 9.8,
	.footnote = 8.6,
	.marker = 7,
	.stroke_roof = 2,
	.stroke_quiet = 0.9,
	.stroke_axis = 1,
	.stroke_grid = 0.7,
	.stroke_mark = 0.8,
	.stroke_thin = 0.9,
	.halo = 3.2,
};

static double decade_of(double value)
{
	return pow(10, floor(log10(value) + 1e-9));
}

void rfl_axis_fit(struct rfl_axis *a, double lo, double hi, double from, double to, double room)
{
	double decade = decade_of(lo), length;

	/* limits are 1, 2, ... 9 times a power of ten */
	a->min = floor(lo / decade + 1e-9) * decade;
	decade = decade_of(hi);
	a->max = ceil(hi / decade - 1e-9) * decade;
	if (a->max < a->min * 9)
		a->max = a->min * 10;
	a->from = from;
	a->to = to;
	a->nticks = 0;
	length = fabs(to - from) / log10(a->max / a->min); /* length of a decade on the page */
	for (decade = decade_of(a->min); decade <= a->max * 1.0001; decade *= 10) {
		for (int digit = 1; digit < 10; digit++) {
			double value = decade * digit;
			bool labelled = digit == 1;

			if (value < a->min * 0.9999 || value > a->max * 1.0001 ||
			    a->nticks == RFL_AXIS_MAX_TICKS)
				continue;
			/* labels at 1, 2, 5, or at 1, 3, or at 1, depending on the room */
			if (length * 0.3 >= room)
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

/* Choose the ranges of the axes. A point more than three decades from the knee or the roof does not
 * extend them, but becomes a mark at the edge. */
static void fit_axes(struct rfl_figure *f)
{
	double x0 = f->knee / 20, x1 = f->knee * 4, y0 = f->gflops / 20, y1 = f->gflops;
	double s = f->scale;

	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		double best = isnan(m->x_best) ? m->x : m->x_best;

		x0 = fmin(x0, m->x * 0.5);
		x1 = fmax(x1, fmax(m->x * 4, best * 5));
		for (int k = 0; k < RFL_FIG_CACHES; k++) {
			x0 = m->x_cache[k] > 0 ? fmin(x0, m->x_cache[k] * 0.5) : x0;
			x1 = m->x_cache[k] > 0 ? fmax(x1, m->x_cache[k] * 4) : x1;
		}
		y0 = fmin(y0, m->y * 0.5);
		y1 = fmax(y1, m->y);
	}
	for (size_t i = 0; i < f->nceilings; i++)
		if (f->ceilings[i].kind == RFL_FIG_COMPUTE)
			y1 = fmax(y1, f->ceilings[i].value);
	x0 = fmin(x0, f->knee_lo / 20);
	x1 = fmax(x1, f->knee_hi * 4);
	x0 = fmax(x0, f->knee / 1000);
	x1 = fmin(x1, f->knee * 3000);
	y0 = fmax(y0, f->gflops / 3000);
	y1 = fmin(y1, f->top * 10);
	f->unit = y1 > 20000 ? 1000 : 1;
	rfl_axis_fit(&f->x, x0, x1, f->plot.x, f->plot.x + f->plot.w, 40 * s);
	rfl_axis_fit(&f->y, y0 / f->unit, y1 * 1.6 / f->unit, f->plot.y + f->plot.h, f->plot.y,
		     24 * s);
}

static void fit_boxes(struct rfl_figure *f)
{
	double w = f->scene->width, h = f->scene->height, s = f->scale;
	double left = 92 * s, right = 32 * s, top = (*f->subtitle ? 84 : 62) * s, below = 62 * s;
	double panel_w = 330 * s, gap = 30 * s, wide = w - left - right, strip_h = 0;
	const char **lines;
	size_t n;

	f->foot = (struct rfl_box){ 0, 0, wide, h }; /* room for the whole footnote */
	n = rfl_figure__note_lines(f, &lines);
	f->has_panel = wide - panel_w - gap >= fmax(400 * s, 0.5 * w) && h >= 560 * s;
	f->plot = (struct rfl_box){ left, top, wide - (f->has_panel ? panel_w + gap : 0), 0 };
	f->has_key = f->has_numbers && !f->has_panel && f->nmarks <= RFL_FIG_NUMBERED;
	if (!f->has_panel)
		strip_h = rfl_draw__legend(f, (struct rfl_box){ 0, 0, wide, 0 }, false) + 8 * s;
	for (;;) {
		f->foot.h = (22 + 13 * (double)n) * s;
		f->plot.h = h - top - below - strip_h - f->foot.h;
		if (f->plot.h >= 0.45 * h)
			break;
		if (n > 1) {
			n--;
		} else if (f->has_key) {
			f->has_key = false;
			strip_h = rfl_draw__legend(f, (struct rfl_box){ 0, 0, wide, 0 }, false) +
				  8 * s;
		} else if (strip_h > 0)
			strip_h = 0;
		else
			break;
	}
	f->foot = (struct rfl_box){ left, h - f->foot.h, wide, f->foot.h };
	f->strip = (struct rfl_box){ left, f->plot.y + f->plot.h + below, wide, strip_h };
	f->panel = (struct rfl_box){ left + f->plot.w + gap, top, panel_w, f->plot.h + below };
}

static void draw(struct rfl_figure *f)
{
	f->scale = fmin(f->scene->width / RFL_PLOT_WIDTH, f->scene->height / RFL_PLOT_HEIGHT);
	f->scale = fmin(fmax(f->scale, 0.62), 4);
	/* Only in the second round are the kinds of marks, and so the legend entries, known. */
	for (int round = 0; round < 2; round++) {
		rfl_figure__words(f);
		fit_boxes(f);
		fit_axes(f);
		rfl_draw__survey(f);
	}
	f->place = rfl_place_new(f->scene, rfl_box_grow(f->plot, -3 * f->scale));
	if (!f->place)
		return; /* the scene has failed */
	f->scene->n = 0;
	f->scene->title = f->title;
	f->scene->paper = f->theme->paper;
	rfl_draw__ground(f);
	rfl_draw__axes(f);
	rfl_draw__roofs(f);
	rfl_draw__mark_obstacles(f);
	rfl_draw__gutter(f);
	rfl_draw__roof_labels(f);
	rfl_draw__marks(f);
	rfl_draw__labels(f);
	rfl_draw__panel(f);
	rfl_figure__words(f); /* the number of marks without a label is known now */
	rfl_draw__caption(f);
}

enum rfl_rc rfl_plot_roofline(const struct rfl_plot_input *in, struct rfl_scene **ret,
			      struct rfl_err *err)
{
	const struct {
		const char *name;
		double value, least;
	} sides[] = {
		{ "width", in->width > 0 ? in->width : RFL_PLOT_WIDTH, RFL_PLOT_MIN_WIDTH },
		{ "height", in->height > 0 ? in->height : RFL_PLOT_HEIGHT, RFL_PLOT_MIN_HEIGHT },
	};
	struct rfl_figure f = { .in = in, .theme = &rfl_theme_light };
	enum rfl_rc rc;

	for (size_t i = 0; i < RFL_ARRAY_LEN(sides); i++)
		if (!(sides[i].value >= sides[i].least && sides[i].value <= RFL_PLOT_MAX_SIDE))
			return rfl_fail(err, RFL_EINVAL, 0,
					"a %s of %g points is out of range; use %g to %g",
					sides[i].name, sides[i].value, sides[i].least,
					RFL_PLOT_MAX_SIDE);
	f.scene = rfl_scene_new(sides[0].value, sides[1].value);
	if (!f.scene)
		return rfl_fail(err, RFL_ENOMEM, 0, "figure: out of memory");
	if ((rc = rfl_figure__marks(&f, err)) != RFL_OK ||
	    (rc = rfl_figure__ceilings(&f, err)) != RFL_OK)
		goto done;
	/* only after drawing is it known that marks have numbers, or neither name nor number, for
	 * which the legend below the axis and the footnote need room */
	for (int i = 0; i < 4; i++) {
		const bool numbers = f.has_numbers;
		const size_t lost = f.nlost;

		draw(&f);
		if (f.nlost && f.nmarks <= RFL_FIG_NUMBERED && f.tight < 2 && !f.parts)
			f.tight++; /* smaller marks leave more room */
		else if (f.nlost == lost && (f.has_numbers == numbers || f.has_panel))
			break;
	}
	rc = rfl_scene_check(f.scene, err);
	if (rc != RFL_OK)
		goto done;
	*ret = f.scene;
	f.scene = NULL;
done:
	rfl_scene_free(f.scene);
	return rc;
}
