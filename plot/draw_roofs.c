/*
 * draw_roofs.c - draws the ceilings with their spread, their ridge points, and labels along the
 * lines and in the regions left and right of the ridge points.
 */
#include <math.h>

#include "plot/figure.h"

struct segment {
	double x0, y0, x1, y1; /* page coordinates, from left to right */
	bool visible;
};

/* The part of a ceiling that is drawn: a bandwidth up to the compute roof, a compute ceiling to the
 * right of the bandwidth roof. */
static struct segment segment_of(const struct rfl_figure *f, const struct rfl_fig_ceiling *c,
				 double value)
{
	double x0 = f->x.min, x1 = f->x.max, y0 = value, y1 = value;
	struct segment g;

	if (c->kind == RFL_FIG_BANDWIDTH) {
		x1 = f->top / value;
		y0 = value * x0;
		y1 = value * x1;
	} else {
		x0 = value / f->gbps;
	}
	g.x0 = rfl_axis_at(&f->x, x0);
	g.x1 = rfl_axis_at(&f->x, x1);
	g.y0 = rfl_axis_at(&f->y, y0 / f->unit);
	g.y1 = rfl_axis_at(&f->y, y1 / f->unit);
	g.visible = g.x0 < g.x1 && rfl_clip_line(&f->plot, &g.x0, &g.y0, &g.x1, &g.y1);
	return g;
}

static void draw_band(struct rfl_figure *f, const struct rfl_fig_ceiling *c)
{
	const struct segment lo = segment_of(f, c, c->lo), hi = segment_of(f, c, c->hi);
	struct rfl_xy points[6];
	size_t n = 0;

	if (!c->primary || isnan(c->lo) || isnan(c->hi) || !lo.visible || !hi.visible)
		return;
	/* if the frame clips one line more than the other, the band follows the frame */
	if (lo.x0 > hi.x0 && lo.y0 > hi.y0)
		points[n++] = (struct rfl_xy){ hi.x0, lo.y0 };
	points[n++] = (struct rfl_xy){ lo.x0, lo.y0 };
	points[n++] = (struct rfl_xy){ lo.x1, lo.y1 };
	if (hi.x1 < lo.x1 && lo.y1 > hi.y1)
		points[n++] = (struct rfl_xy){ lo.x1, hi.y1 };
	points[n++] = (struct rfl_xy){ hi.x1, hi.y1 };
	points[n++] = (struct rfl_xy){ hi.x0, hi.y0 };
	rfl_scene_polygon(f->scene, points, n, f->theme->band)->id = SAY(f, "band-%s", c->id);
}

static bool has_knee(const struct rfl_fig_ceiling *c)
{
	return c->primary && c->kind == RFL_FIG_COMPUTE;
}

/* x of the ridge point of a compute ceiling on the page. */
static double knee_at(const struct rfl_figure *f, const struct rfl_fig_ceiling *c)
{
	return rfl_axis_at(&f->x, c->value / f->gbps);
}

static bool knee_in_plot(const struct rfl_figure *f, double px)
{
	return px >= f->plot.x && px <= f->plot.x + f->plot.w;
}

/* Mark where a compute ceiling meets the bandwidth. */
static void draw_knee(struct rfl_figure *f, const struct rfl_fig_ceiling *c)
{
	const double px = knee_at(f, c), py = rfl_axis_at(&f->y, c->value / f->unit);
	const double bottom = f->plot.y + f->plot.h, s = f->scale;
	const char *of = c == &f->ceilings[1] ? "" : SAY(f, "-%s", c->id);
	struct rfl_prim *p;

	if (!knee_in_plot(f, px))
		return;
	p = rfl_scene_line(f->scene, px, py, px, bottom, f->theme->roof_quiet, SZ(f, stroke_thin));
	p->dash = RFL_DASH_DOTTED;
	p->id = SAY(f, "knee-drop%s", of);
	rfl_place_add(f->place, RFL_OBSTACLE_LINE, RFL_NO_OWNER, rfl_hull_line(px, py, px, bottom));
	p = rfl_scene_marker(f->scene, RFL_MARKER_DIAMOND, px, py, 4.2 * s,
			     c->color < 0 ? f->theme->roof : f->palette[c->color], f->theme->paper,
			     0.8 * s);
	p->id = SAY(f, "knee%s", of);
	p->tip = SAY(f, "ridge point: %s FLOP per byte",
		     rfl_words_number(f->scene, c->value / f->gbps));
	rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, /* which no leader crosses */
		      rfl_hull_box((struct rfl_box){ px - 5 * s, py - 5 * s, 10 * s, 10 * s }));
}

void rfl_draw__roofs(struct rfl_figure *f)
{
	if (rfl_figure__is_time(f)) {
		rfl_draw__isochrones(f);
		return;
	}
	for (size_t i = 0; i < f->nceilings; i++)
		draw_band(f, &f->ceilings[i]);
	for (size_t i = f->nceilings; i-- > 0;) {
		const struct rfl_fig_ceiling *c = &f->ceilings[i];
		const struct segment g = segment_of(f, c, c->value);
		/* the ceilings of the most points are the thickest */
		const double width = i < 2        ? SZ(f, stroke_roof)
				     : c->primary ? 0.7 * SZ(f, stroke_roof)
						  : SZ(f, stroke_quiet);
		struct rfl_prim *p;

		/* nothing names a thin line without a label if there is no legend */
		if (!g.visible || (c->listed && !c->primary && !f->has_legend))
			continue;
		p = rfl_scene_line(f->scene, g.x0, g.y0, g.x1, g.y1,
				   c->primary ? f->theme->roof : f->theme->roof_quiet, width);
		p->id = c->id;
		p->tip = c->labels[0];
		p->dash = c->dash;
		rfl_place_add(f->place, c->primary ? RFL_OBSTACLE_ROOF : RFL_OBSTACLE_QUIET,
			      RFL_NO_OWNER, rfl_hull_band(g.x0, g.y0, g.x1, g.y1, width));
	}
	for (size_t i = 1; i < f->nceilings; i++)
		if (has_knee(&f->ceilings[i]))
			draw_knee(f, &f->ceilings[i]);
}

/* Is there room for a text with `pad` at both ends to separate it from other texts? */
static bool is_free(const struct rfl_figure *f, const struct rfl_prim *p, double pad)
{
	struct rfl_xy c[4];
	struct rfl_hull hull;
	double ux, uy, len;

	rfl_prim_text_corners(p, c);
	len = hypot(c[1].x - c[0].x, c[1].y - c[0].y);
	if (len <= 0)
		return false;
	ux = (c[1].x - c[0].x) / len * pad;
	uy = (c[1].y - c[0].y) / len * pad;
	for (int i = 0; i < 4; i++) {
		const bool left = i == 0 || i == 3;

		c[i].x += left ? -ux : ux;
		c[i].y += left ? -uy : uy;
	}
	hull = rfl_hull_corners(c);
	return rfl_place_free(f->place, RFL_OBSTACLE_ALL, RFL_NO_OWNER, &hull);
}

/* Find a position for a text along a line: near the lower end of a slope or the right end of a flat
 * line. */
static bool find_place(const struct rfl_figure *f, const struct rfl_fig_ceiling *c,
		       const struct segment *g, const char *text, struct rfl_prim *ret)
{
	const double size = c->primary ? SZ(f, ceiling) : SZ(f, ceiling_quiet);
	const double len = hypot(g->x1 - g->x0, g->y1 - g->y0), gap = 3.4 * f->scale;
	const double ux = (g->x1 - g->x0) / len, uy = (g->y1 - g->y0) / len;
	const double width = rfl_width(text, size);
	const double step = 6 * f->scale, margin = 8 * f->scale;
	/* distance from the line to a baseline on either side, along the normal (uy, -ux) */
	const double above = gap + RFL_TEXT_DESCENT * size;
	const double off[] = { above, -gap - RFL_TEXT_CAP * size - 0.03 * size, above + size };
	const size_t rows = has_knee(c) && text == c->labels[RFL_ARRAY_LEN(c->labels) - 1] ? 3 : 2;

	*ret = (struct rfl_prim){
		.kind = RFL_PRIM_TEXT,
		.at.text = { .text = text, .size = size, .angle = atan2(-uy, ux) },
	};
	for (size_t side = 0; side < rows; side++)
		for (double t = margin; t + width + margin <= len; t += step) {
			double from = c->kind == RFL_FIG_COMPUTE ? len - t - width : t + 2 * step;

			ret->at.text.x = g->x0 + ux * from + uy * off[side];
			ret->at.text.y = g->y0 + uy * from - ux * off[side];
			if (is_free(f, ret, margin / 2))
				return true;
		}
	return false;
}

/* Find a position for the longest label with room. That of a compute ceiling may begin left of its
 * ridge point. */
static bool find_label(const struct rfl_figure *f, const struct rfl_fig_ceiling *c,
		       const struct segment *g, struct rfl_prim *ret)
{
	const size_t n = RFL_ARRAY_LEN(c->labels);
	struct segment wide = *g;

	for (size_t i = 0; i < n; i++)
		if (find_place(f, c, g, c->labels[i], ret))
			return true;
	wide.y0 = wide.y1 = g->y1 - 3 * f->scale; /* above the mark of the ridge point */
	for (size_t i = n - 2; i < n && has_knee(c); i++) {
		wide.x0 = fmax(g->x1 - rfl_width(c->labels[i], SZ(f, ceiling)) - 24 * f->scale,
			       f->plot.x);
		if (find_place(f, c, &wide, c->labels[i], ret))
			return true;
	}
	return false;
}

/* Label the region on one side of all ridge points if there is room. */
static void label_region(struct rfl_figure *f, const char *id, const char *text,
			 enum rfl_anchor anchor)
{
	const double s = f->scale, size = SZ(f, ceiling_quiet);
	const bool left = anchor == RFL_ANCHOR_START;
	const double knee = rfl_axis_at(&f->x, left ? f->knee_lo : f->knee_hi);
	const double x = left ? f->plot.x + 9 * s : f->plot.x + f->plot.w - 9 * s;

	if ((left ? knee - x : x - knee) > rfl_width(text, size) + 6 * s &&
	    !rfl_draw__word(f, id, text, size, x, f->plot.y + 8 * s + RFL_TEXT_CAP * size, anchor,
			    2 * s, 0))
		(void)rfl_draw__word(f, id, text, size, x, f->plot.y + f->plot.h - 9 * s, anchor,
				     2 * s, 0);
}

/* Label a ridge point on either side of its line, at one of six heights. */
static void label_knee(struct rfl_figure *f, const struct rfl_fig_ceiling *c)
{
	const double px = knee_at(f, c), s = f->scale, bottom = f->plot.y + f->plot.h;
	const double top = rfl_axis_at(&f->y, c->value / f->unit);
	const char *text = SAY(f, "ridge %s", rfl_words_number(f->scene, c->value / f->gbps));

	for (int i = 0; i < 12 && knee_in_plot(f, px); i++) {
		const double y = bottom - 8 * s - (bottom - top - 20 * s) * (i / 2) / 6;

		if (rfl_draw__word(f, "label-knee", text, SZ(f, ceiling_quiet),
				   px + (i % 2 ? -5 : 5) * s, y,
				   i % 2 ? RFL_ANCHOR_END : RFL_ANCHOR_START, 2 * s, 0))
			return;
	}
}

void rfl_draw__roof_labels(struct rfl_figure *f)
{
	if (rfl_figure__is_time(f)) {
		rfl_draw__isochrone_labels(f);
		return;
	}
	for (struct rfl_fig_ceiling *c = f->ceilings; c < f->ceilings + f->nceilings; c++) {
		const struct segment g = segment_of(f, c, c->value);
		struct rfl_prim found, *p;
		struct rfl_xy corners[4];

		if (!g.visible)
			continue;
		c->labelled = find_label(f, c, &g, &found);
		f->unsettled |= !c->labelled && !c->listed;
		c->listed = c->listed || !c->labelled;
		if (!c->labelled)
			continue;
		p = rfl_draw__text(f, SAY(f, "label-%s", c->id), found.at.text.text,
				   found.at.text.x, found.at.text.y, found.at.text.size,
				   c->primary ? f->theme->ink : f->theme->soft, RFL_ANCHOR_START);
		p->at.text.angle = found.at.text.angle;
		rfl_prim_text_corners(p, corners);
		p->at.text.halo = rfl_draw__ground_color(f, (corners[0].x + corners[1].x) / 2,
							 (corners[0].y + corners[1].y) / 2);
		p->at.text.halo_width = SZ(f, halo);
		rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, rfl_hull_corners(corners));
	}
	for (size_t i = 1; i < f->nceilings; i++)
		if (has_knee(&f->ceilings[i]))
			label_knee(f, &f->ceilings[i]);
	if (f->in->overlay && f->in->nenvs > 1)
		return; /* the regions differ */
	label_region(f, "label-memory", "memory-bound", RFL_ANCHOR_START);
	label_region(f, "label-compute", "compute-bound", RFL_ANCHOR_END);
}
