/*
 * draw_data.c - draws the ceilings with their spread, the knee and labels along the lines; then the
 * points: locates them, chooses connectors (to the mark at best), whiskers (to the roof) and error
 * bars, and draws them, with marks over lines and filled marks over hollow ones.
 */
#include <math.h>

#include "plot/figure.h"

/* ---- ceilings ---- */

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
	struct rfl_prim *p;
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
	p = rfl_scene_polyline(f->scene, points, n, RFL_COLOR_NONE, 0);
	p->at.polyline.closed = true;
	p->fill = f->theme->band;
	p->id = rfl_scene_printf(f->scene, "band-%s", c->id);
}

static bool has_knee(const struct rfl_fig_ceiling *c)
{
	return c->primary && c->kind == RFL_FIG_COMPUTE;
}

/* x of the knee of a compute ceiling on the page. */
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
	const char *of = c == &f->ceilings[1] ? "" : rfl_scene_printf(f->scene, "-%s", c->id);
	struct rfl_prim *p;

	if (!knee_in_plot(f, px))
		return;
	p = rfl_scene_line(f->scene, px, py, px, bottom, f->theme->roof_quiet, SZ(f, stroke_thin));
	p->dash = RFL_DASH_DOTTED;
	p->id = rfl_scene_printf(f->scene, "knee-drop%s", of);
	rfl_place_add(f->place, RFL_OBSTACLE_LINE, RFL_NO_OWNER, rfl_hull_line(px, py, px, bottom));
	p = rfl_scene_marker(f->scene, RFL_MARKER_DIAMOND, px, py, 4.2 * s,
			     c->color < 0 ? f->theme->roof : f->palette[c->color], f->theme->paper,
			     0.8 * s);
	p->id = rfl_scene_printf(f->scene, "knee%s", of);
	p->tip = rfl_scene_printf(f->scene, "knee: %s FLOP per byte",
				  rfl_words_number(f->scene, c->value / f->gbps));
	rfl_place_add(f->place, RFL_OBSTACLE_ROOF, RFL_NO_OWNER,
		      rfl_hull_box((struct rfl_box){ px - 5 * s, py - 5 * s, 10 * s, 10 * s }));
}

void rfl_draw__roofs(struct rfl_figure *f)
{
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

		if (!g.visible)
			continue;
		p = rfl_scene_line(f->scene, g.x0, g.y0, g.x1, g.y1,
				   c->primary ? f->theme->roof : f->theme->roof_quiet, width);
		p->id = c->id;
		p->tip = c->labels[0];
		p->dash = c->solid ? RFL_DASH_SOLID : RFL_DASH_DASHED;
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
	const double width = rfl_text_width(text, RFL_FACE_REGULAR, size);
	const double step = 6 * f->scale, margin = 8 * f->scale;
	/* distance from the line to a baseline on either side, along the normal (uy, -ux) */
	const double off[2] = { gap + RFL_TEXT_DESCENT * size,
				-gap - RFL_TEXT_CAP * size - 0.03 * size };

	*ret = (struct rfl_prim){
		.kind = RFL_PRIM_TEXT,
		.at.text = { .text = text, .size = size, .angle = atan2(-uy, ux) },
	};
	for (int side = 0; side < 2; side++)
		for (double t = margin; t + width + margin <= len; t += step) {
			double from = c->kind == RFL_FIG_COMPUTE ? len - t - width : t + 2 * step;

			ret->at.text.x = g->x0 + ux * from + uy * off[side];
			ret->at.text.y = g->y0 + uy * from - ux * off[side];
			if (is_free(f, ret, margin / 2))
				return true;
		}
	return false;
}

/* Label the region on one side of all knees if there is room. */
static void label_region(struct rfl_figure *f, const char *id, const char *text,
			 enum rfl_anchor anchor)
{
	const double s = f->scale, size = SZ(f, ceiling_quiet);
	const bool left = anchor == RFL_ANCHOR_START;
	const double knee = rfl_axis_at(&f->x, left ? f->knee_lo : f->knee_hi);
	const double x = left ? f->plot.x + 9 * s : f->plot.x + f->plot.w - 9 * s;
	const struct rfl_xy at[2] = { { x, f->plot.y + 8 * s + RFL_TEXT_CAP * size },
				      { x, f->plot.y + f->plot.h - 9 * s } };
	const enum rfl_anchor anchors[2] = { anchor, anchor };

	if ((left ? knee - x : x - knee) > rfl_text_width(text, RFL_FACE_REGULAR, size) + 6 * s)
		rfl_draw__word(f, id, text, size, at, anchors, 2, 2 * s, 0);
}

/* Label a knee on either side of its line, at one of six heights. */
static void label_knee(struct rfl_figure *f, const struct rfl_fig_ceiling *c)
{
	const double px = knee_at(f, c), s = f->scale, bottom = f->plot.y + f->plot.h;
	const double top = rfl_axis_at(&f->y, c->value / f->unit);
	struct rfl_xy at[12];
	enum rfl_anchor anchors[12];

	for (int i = 0; i < 12; i++) {
		double y = bottom - 8 * s - (bottom - top - 20 * s) * (i / 2) / 6;

		at[i] = (struct rfl_xy){ px + (i % 2 ? -5 : 5) * s, y };
		anchors[i] = i % 2 ? RFL_ANCHOR_END : RFL_ANCHOR_START;
	}
	if (knee_in_plot(f, px))
		rfl_draw__word(f, "label-knee",
			       rfl_scene_printf(f->scene, "knee %s",
						rfl_words_number(f->scene, c->value / f->gbps)),
			       SZ(f, ceiling_quiet), at, anchors, 12, 2 * s, 0);
}

void rfl_draw__roof_labels(struct rfl_figure *f)
{
	for (const struct rfl_fig_ceiling *c = f->ceilings; c < f->ceilings + f->nceilings; c++) {
		const struct segment g = segment_of(f, c, c->value);
		struct rfl_prim found, *p;
		struct rfl_xy corners[4];
		size_t i = 0;

		while (g.visible && i < RFL_ARRAY_LEN(c->labels) &&
		       !find_place(f, c, &g, c->labels[i], &found))
			i++;
		if (!g.visible || i == RFL_ARRAY_LEN(c->labels))
			continue; /* the tooltip and the footnote still show it */
		p = rfl_draw__text(f, rfl_scene_printf(f->scene, "label-%s", c->id),
				   found.at.text.text, found.at.text.x, found.at.text.y,
				   found.at.text.size, c->primary ? f->theme->ink : f->theme->soft,
				   RFL_ANCHOR_START);
		p->at.text.angle = found.at.text.angle;
		rfl_prim_text_corners(p, corners);
		p->at.text.halo = rfl_draw__ground_color(f, (corners[0].x + corners[1].x) / 2);
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

/* ---- points ---- */

#define GUTTER      6    /* maximum number of points without FLOPs in the list */
#define WHISKERS    8    /* maximum number */
#define WHISKER_MIN 1.15 /* smaller factors get no whisker */

/* Move a position beyond an edge just inside it. */
static double inset(double v, double lo, double hi, double by, unsigned below, unsigned beyond,
		    unsigned *edge)
{
	if (v < lo) {
		*edge |= below;
		return lo + by;
	}
	if (v > hi) {
		*edge |= beyond;
		return hi - by;
	}
	return v;
}

#define SHARE_RADIUS 18.0 /* radius of a share of 100 %, if not limited */

double rfl_draw__share_radius(const struct rfl_figure *f, double share)
{
	return f->scale * fmin(fmax(SHARE_RADIUS * sqrt(share), 2.6), 14);
}

/* Marks shrink as their number grows. The area of the mark of a part shows its share of the time.
 */
static double radius_of(const struct rfl_figure *f, const struct rfl_mark *m)
{
	const size_t n = f->nmarks;
	const double shrink = pow(.8, f->tight);

	if (f->shares[0] > 0)
		return rfl_draw__share_radius(f, fmax(m->point->time_share, 0));
	return shrink * SZ(f, marker) *
	       (n <= RFL_FIG_PAIRS      ? 1
		: n <= 60               ? .8
		: n <= RFL_FIG_NUMBERED ? .6
					: .4);
}

/* List the points without FLOPs at the left edge, with marks of the same areas as in the plot. */
void rfl_draw__gutter(struct rfl_figure *f)
{
	const double s = f->scale, size = SZ(f, label_second), x = f->plot.x + 8 * s;
	const char *texts[1 + GUTTER + 1];
	double radii[RFL_ARRAY_LEN(texts)], w = 0, h = 8 * s, rest = 0, y = f->plot.y + 26 * s;
	size_t n = 0;

	f->gutter_hidden = false;
	for (size_t i = 0; i < f->nidle; i++) {
		const double share = f->idle[i]->time_share;

		if (i == 0) {
			radii[n] = 0;
			texts[n++] = rfl_scene_printf(f->scene, "no FLOPs: %.3g %% of the time",
						      100 * f->shares[1] / f->shares[2]);
		}
		if (n <= GUTTER) {
			radii[n] = rfl_draw__share_radius(f, share);
			texts[n++] =
				rfl_scene_printf(f->scene, "%s %.2g %%",
						 rfl_figure__part_name(f, f->idle[i]), 100 * share);
		} else {
			rest += share;
		}
	}
	if (rest > 0) {
		radii[n] = 0;
		texts[n++] = rfl_scene_printf(f->scene, "and %zu more, %.2g %%", f->nidle - GUTTER,
					      100 * rest);
	}
	for (size_t i = 0; i < n; i++) {
		w = fmax(w, rfl_text_width(texts[i], RFL_FACE_REGULAR, size));
		h += fmax(13 * s, 2 * radii[i] + 2 * s);
	}
	w += 34 * s;
	for (; n > 0; y += 6 * s) {
		const struct rfl_box box = { x, y, w, h };
		const struct rfl_hull hull = rfl_hull_box(box);

		if (y + h > f->plot.y + f->plot.h - 4 * s) {
			f->gutter_hidden = true;
			return;
		}
		if (!rfl_place_free(f->place, RFL_OBSTACLE_ALL, RFL_NO_OWNER, &hull))
			continue;
		rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, hull);
		break;
	}
	y += 4 * s;
	for (size_t i = 0; i < n; i++) {
		const double row = fmax(13 * s, 2 * radii[i] + 2 * s), mid = y + row / 2;

		if (radii[i] > 0)
			rfl_scene_marker(f->scene, RFL_MARKER_CIRCLE, x + 14 * s, mid, radii[i],
					 f->theme->faint, f->theme->soft, SZ(f, stroke_mark))
				->id = rfl_scene_printf(f->scene, "idle-%zu", i);
		rfl_draw__text(f, rfl_scene_printf(f->scene, "idle-name-%zu", i), texts[i],
			       x + (radii[i] > 0 ? 31 : 0) * s, mid + RFL_TEXT_CAP / 2 * size, size,
			       f->theme->soft, RFL_ANCHOR_START);
		y += row;
	}
}

static void locate(struct rfl_figure *f, struct rfl_mark *m)
{
	const struct rfl_box *b = &f->plot;
	double r = m->r * 1.6;

	m->edge = m->edge_best = 0;
	m->px = inset(rfl_axis_at(&f->x, m->x), b->x, b->x + b->w, r, RFL_EDGE_LEFT, RFL_EDGE_RIGHT,
		      &m->edge);
	m->py = inset(rfl_axis_at(&f->y, m->y / f->unit), b->y, b->y + b->h, r, RFL_EDGE_TOP,
		      RFL_EDGE_BOTTOM, &m->edge);
	m->px_best = isnan(m->x_best) ? NAN
				      : inset(rfl_axis_at(&f->x, m->x_best), b->x, b->x + b->w, r,
					      RFL_EDGE_LEFT, RFL_EDGE_RIGHT, &m->edge_best);
	if (m->px_best < m->px + 1)
		m->px_best = NAN;
	m->px_was = m->y_was > 0 ? rfl_axis_at(&f->x, m->x_was) : NAN;
	m->py_was = m->y_was > 0 ? rfl_axis_at(&f->y, m->y_was / f->unit) : NAN;
	if (!(m->px_was >= b->x && m->px_was <= b->x + b->w && m->py_was >= b->y &&
	      m->py_was <= b->y + b->h && !m->edge))
		m->px_was = m->py_was = NAN;
	for (int i = 0; i < RFL_FIG_CACHES; i++) {
		const double px = m->x_cache[i] > 0 ? rfl_axis_at(&f->x, m->x_cache[i]) : NAN;

		m->px_cache[i] = px >= b->x && px <= b->x + b->w && !m->edge ? px : NAN;
	}
}

/* An error bar, clipped to the frame; hidden at an edge or if its mark would cover it. */
static struct rfl_fig_bar bar_of(struct rfl_figure *f, const struct rfl_mark *m,
				 const struct rfl_axis *axis, double lo, double hi)
{
	double a = fmin(axis->from, axis->to), b = fmax(axis->from, axis->to);
	double from = rfl_axis_at(axis, lo), to = rfl_axis_at(axis, hi);
	bool large = lo > 0 && hi > lo && fabs(to - from) > 2.3 * m->r;

	f->has_errors |= large;
	f->bars_hidden |= !large && hi > lo;
	return (struct rfl_fig_bar){ large && !m->edge, fmin(fmax(from, a), b),
				     fmin(fmax(to, a), b) };
}

static double roof_at(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return rfl_axis_at(&f->y, m->roof / f->unit);
}

/* Would a vertical line cross another mark, or be too close to another whisker? */
static bool crowded(const struct rfl_figure *f, const struct rfl_mark *m, double top)
{
	const double r = 1.4 * m->r;

	for (const struct rfl_mark *o = f->marks; o < f->marks + f->nmarks; o++) {
		const bool beside = o->py > top - r && o->py < m->py + r;

		if (o == m)
			continue;
		if ((o->whisker && fabs(o->px - m->px) < 12 * f->scale) ||
		    (beside && (fabs(o->px - m->px) < r || fabs(o->px_best - m->px) < r)))
			return true;
	}
	return false;
}

void rfl_draw__survey(struct rfl_figure *f)
{
	int whiskers =
		f->nmarks > RFL_FIG_FEW || f->in->kind >= RFL_PLOT_HIERARCHICAL ? 0 : WHISKERS;

	f->has_errors = f->has_whiskers = f->has_above = f->has_edges = f->bars_hidden = false;
	for (size_t i = 0; i < f->nmarks; i++) {
		struct rfl_mark *m = &f->marks[i];
		const struct rfl_point *p = m->point;

		m->r = radius_of(f, m);
		locate(f, m);
		m->bar_y = bar_of(f, m, &f->y, p->attained_gflops_lo, p->attained_gflops_hi);
		m->bar_x = bar_of(f, m, &f->x, p->ai_lo, p->ai_hi);
		m->whisker = false;
		f->has_above |= m->above;
		f->has_edges |= m->edge || m->edge_best;
	}
	for (size_t rank = 0; rank < f->nmarks && whiskers > 0; rank++) {
		struct rfl_mark *m = &f->marks[f->by_rank[rank]];
		double top = roof_at(f, m);

		if (m->edge || m->above || m->roof / m->y < WHISKER_MIN || top < f->plot.y ||
		    m->py - top < 26 * f->scale || crowded(f, m, top))
			continue;
		m->whisker = f->has_whiskers = true;
		whiskers--;
	}
}

static void add_line(struct rfl_figure *f, int owner, double x0, double y0, double x1, double y1)
{
	rfl_place_add(f->place, RFL_OBSTACLE_LINE, owner,
		      rfl_hull_band(x0, y0, x1, y1, SZ(f, stroke_thin)));
}

/* The next mark of the series, unless one of the two is drawn at the edge. */
static const struct rfl_mark *next_of(const struct rfl_figure *f, const struct rfl_mark *m)
{
	const struct rfl_mark *to = m->next < 0 ? NULL : &f->marks[m->next];

	return to && !m->edge && !to->edge ? to : NULL;
}

static void add_disc(struct rfl_figure *f, int owner, double x, double y)
{
	const double r = 1.27 * f->marks[owner].r;

	rfl_place_add(f->place, RFL_OBSTACLE_MARK, owner,
		      rfl_hull_box((struct rfl_box){ x - r, y - r, 2 * r, 2 * r }));
}

void rfl_draw__mark_obstacles(struct rfl_figure *f)
{
	for (int i = 0; i < (int)f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i], *to = next_of(f, m);

		/* long lines fill the grid, and only few of many points have labels */
		if (to && f->nmarks <= RFL_FIG_NUMBERED)
			rfl_place_add(f->place, RFL_OBSTACLE_SERIES, i,
				      rfl_hull_line(m->px, m->py, to->px, to->py));
		add_disc(f, i, m->px, m->py);
		if (!isnan(m->px_was)) {
			add_disc(f, i, m->px_was, m->py_was);
			rfl_place_add(f->place, RFL_OBSTACLE_SERIES, i,
				      rfl_hull_line(m->px_was, m->py_was, m->px, m->py));
		}
		for (int k = 0; k < RFL_FIG_CACHES; k++)
			if (!isnan(m->px_cache[k])) {
				add_disc(f, i, m->px_cache[k], m->py);
				add_line(f, i, m->px, m->py, m->px_cache[k], m->py);
			}
		if (!isnan(m->px_best)) {
			add_disc(f, i, m->px_best, m->py);
			add_line(f, i, m->px, m->py, m->px_best, m->py);
		}
		if (m->whisker)
			add_line(f, i, m->px, m->py, m->px, roof_at(f, m));
		if (m->bar_y.shown)
			add_line(f, i, m->px, m->bar_y.from, m->px, m->bar_y.to);
		if (m->bar_x.shown)
			add_line(f, i, m->bar_x.from, m->py, m->bar_x.to, m->py);
	}
}

/* A mark beyond an edge becomes an arrowhead that points to it. */
static enum rfl_marker shape_of(const struct rfl_mark *m, unsigned edge)
{
	if (edge & RFL_EDGE_LEFT)
		return RFL_MARKER_LEFT;
	if (edge & RFL_EDGE_RIGHT)
		return RFL_MARKER_RIGHT;
	if (edge & RFL_EDGE_TOP)
		return RFL_MARKER_TRIANGLE;
	return edge & RFL_EDGE_BOTTOM ? RFL_MARKER_TRIANGLE_DOWN : m->shape;
}

/* Draw an arrow from a place to the rim of a mark. `m`: the mark to which the arrow belongs */
static void draw_arrow(struct rfl_figure *f, struct rfl_xy from, const struct rfl_mark *to,
		       const struct rfl_mark *m)
{
	const double dx = to->px - from.x, dy = to->py - from.y, len = hypot(dx, dy);
	const double r = 1.2 * m->r, head = 7 * f->scale;
	const struct rfl_color color = rfl_figure__line_color(f, f->palette[m->color]);
	const double ux = dx / len, uy = dy / len;
	const struct rfl_xy tip = { to->px - ux * r, to->py - uy * r };
	const struct rfl_xy corners[3] = {
		tip,
		{ tip.x - ux * head - uy * head * .4, tip.y - uy * head + ux * head * .4 },
		{ tip.x - ux * head + uy * head * .4, tip.y - uy * head - ux * head * .4 },
	};
	struct rfl_prim *p;

	rfl_scene_line(f->scene, from.x, from.y, to->px, to->py, color, 1.1 * f->scale)->id =
		rfl_scene_printf(f->scene, "series-%d", m->number);
	if (len < 2 * r + head)
		return; /* the marks nearly touch */
	p = rfl_scene_polyline(f->scene, corners, 3, RFL_COLOR_NONE, 0);
	p->at.polyline.closed = true;
	p->fill = color;
	p->id = rfl_scene_printf(f->scene, "arrow-%d", m->number);
}

/* The x where a line y = x + c crosses the edge from a to b. @return false if it does not */
static bool crosses(struct rfl_xy a, struct rfl_xy b, double c, double *x)
{
	const double da = a.y - a.x - c, db = b.y - b.x - c;

	if ((da < 0) == (db < 0))
		return false;
	*x = a.x + (b.x - a.x) * da / (da - db);
	return true;
}

void rfl_draw__hatch(struct rfl_figure *f, const char *id, enum rfl_marker shape, struct rfl_xy at,
		     double r)
{
	struct rfl_xy q[24];
	size_t n = rfl_marker_outline(shape, r, q);

	for (int i = 0; n == 0 && i < 24; i++) {
		const double angle = i * acos(-1) / 12;

		q[i] = (struct rfl_xy){ r * cos(angle), r * sin(angle) };
	}
	n = n ? n : 24;
	for (double c = -2 * r; c < 2 * r; c += 0.62 * r) {
		double x[RFL_MARKER_MAX_POINTS];
		size_t hits = 0;

		for (size_t i = 0; i < n && hits < RFL_ARRAY_LEN(x); i++) {
			size_t k = hits;
			double found;

			if (!crosses(q[i], q[(i + 1) % n], c, &found))
				continue;
			for (hits++; k > 0 && x[k - 1] > found; k--)
				x[k] = x[k - 1];
			x[k] = found;
		}
		for (size_t i = 0; i + 1 < hits; i += 2)
			rfl_scene_line(f->scene, at.x + x[i], at.y + x[i] + c, at.x + x[i + 1],
				       at.y + x[i + 1] + c, f->theme->paper, 0.17 * r)
				->id = id;
	}
}

void rfl_draw__marks(struct rfl_figure *f)
{
	struct rfl_scene *s = f->scene;
	const double u = f->scale, thin = SZ(f, stroke_thin);
	const struct rfl_color ink = f->theme->ink;

	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i], *to = next_of(f, m);

		if (to && f->in->kind == RFL_PLOT_TRAJECTORY)
			draw_arrow(f, (struct rfl_xy){ m->px, m->py }, to, m);
		else if (to)
			rfl_scene_line(s, m->px, m->py, to->px, to->py, f->theme->leader, 1.1 * u)
				->id = rfl_scene_printf(s, "series-%d", m->number);
		if (!isnan(m->px_was)) {
			const struct rfl_xy was = { m->px_was, m->py_was };

			draw_arrow(f, was, m, m);
			rfl_scene_marker(s, m->shape, was.x, was.y, 0.7 * m->r, f->theme->faint,
					 f->theme->leader, 1.1 * u)
				->id = rfl_scene_printf(s, "was-%d", m->number);
		}
		for (int k = 0; k < RFL_FIG_CACHES; k++)
			if (!isnan(m->px_cache[k]))
				rfl_scene_line(s, m->px, m->py, m->px_cache[k], m->py,
					       f->theme->leader, 1.1 * u)
					->id = rfl_scene_printf(s, "levels-%d", m->number);
	}
	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		const struct rfl_color color = rfl_figure__line_color(f, f->palette[m->color]);
		const double top = roof_at(f, m);
		struct rfl_prim *p;

		if (m->whisker) {
			p = rfl_scene_line(s, m->px, m->py, m->px, top, color, thin);
			p->dash = RFL_DASH_DASHED;
			p->id = rfl_scene_printf(s, "headroom-%d", m->number);
			rfl_scene_line(s, m->px - 4 * u, top, m->px + 4 * u, top, color, 1.6 * u);
		}
		if (!isnan(m->px_best))
			rfl_scene_line(s, m->px, m->py, m->px_best, m->py, color, thin)->id =
				rfl_scene_printf(s, "traffic-%d", m->number);
		if (m->bar_y.shown)
			rfl_scene_line(s, m->px, m->bar_y.from, m->px, m->bar_y.to, ink, 1.2 * u)
				->id = rfl_scene_printf(s, "spread-y-%d", m->number);
		if (m->bar_x.shown)
			rfl_scene_line(s, m->bar_x.from, m->py, m->bar_x.to, m->py, ink, 1.2 * u)
				->id = rfl_scene_printf(s, "spread-x-%d", m->number);
	}
	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		struct rfl_prim *p;

		if (isnan(m->px_best))
			continue;
		p = rfl_scene_marker(s, shape_of(m, m->edge_best), m->px_best, m->py, m->r * 0.94,
				     f->theme->paper,
				     rfl_figure__line_color(f, f->palette[m->color]), 1.7 * u);
		p->id = rfl_scene_printf(s, "best-%d", m->number);
		p->tip = rfl_scene_printf(s, "%s, at best: %s FLOP/byte", m->name,
					  rfl_words_number(s, m->x_best));
	}
	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];

		for (int k = RFL_FIG_CACHES - 1; k >= 0; k--) {
			struct rfl_prim *p;

			if (isnan(m->px_cache[k]))
				continue;
			p = rfl_scene_marker(s, m->shape, m->px_cache[k], m->py, m->r,
					     f->palette[k], ink, SZ(f, stroke_mark));
			p->id = rfl_scene_printf(s, "cache-%s-%d", f->colors[k], m->number);
			p->tip = rfl_scene_printf(s, "%s: %s FLOP per byte of %s", m->name,
						  rfl_words_number(s, m->x_cache[k]), f->colors[k]);
		}
	}
	/* draw small marks on large ones; otherwise the first point of the file is on top */
	for (size_t i = f->nmarks; i-- > 0;) {
		const struct rfl_mark *m =
			&f->marks[f->shares[0] > 0 ? (size_t)f->by_rank[f->nmarks - 1 - i] : i];
		struct rfl_prim *p = rfl_scene_marker(s, shape_of(m, m->edge), m->px, m->py, m->r,
						      f->palette[m->color],
						      m->above ? f->theme->alarm : f->theme->ink,
						      m->above ? 2.4 * u : SZ(f, stroke_mark));

		p->id = rfl_scene_printf(s, "mark-%d", m->number);
		p->tip = rfl_scene_printf(s, "%s: %s at %s FLOP/byte, %.1f %% of %s", m->name,
					  rfl_figure__rate(f, m->y), rfl_words_number(s, m->x),
					  m->percent, rfl_figure__rate(f, m->roof));
		if (m->above && !m->edge)
			rfl_draw__hatch(f, rfl_scene_printf(s, "hatch-%d", m->number), m->shape,
					(struct rfl_xy){ m->px, m->py }, m->r - 1.2 * u);
	}
}
