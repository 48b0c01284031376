/*
 * draw_marks.c - the points: where they lie, which helpers they get (connector to the mark at best,
 * whisker to the roof, error bars), and their drawing. Lines lie under marks, hollow marks under
 * filled ones.
 */
#include <math.h>

#include "plot/figure.h"

#define WHISKERS    8    /* at most */
#define WHISKER_MIN 1.15 /* a factor below this is not worth a line */

/* A place beyond an edge is moved just inside. */
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

static void locate(struct rfl_figure *f, struct rfl_mark *m)
{
	const struct rfl_box *b = &f->plot;
	double r = SZ(f, marker) * 1.6;

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
}

/* An error bar, cut at the frame; not shown at an edge, or where its mark would cover it. */
static struct rfl_fig_bar bar_of(struct rfl_figure *f, const struct rfl_mark *m,
				 const struct rfl_axis *axis, double lo, double hi)
{
	double a = fmin(axis->from, axis->to), b = fmax(axis->from, axis->to);
	double from = rfl_axis_at(axis, lo), to = rfl_axis_at(axis, hi);
	bool large = lo > 0 && hi > lo && fabs(to - from) > 2.3 * SZ(f, marker);

	f->has_errors |= large;
	f->bars_hidden |= !large && hi > lo;
	return (struct rfl_fig_bar){ large && !m->edge, fmin(fmax(from, a), b),
				     fmin(fmax(to, a), b) };
}

static double roof_at(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return rfl_axis_at(&f->y, m->roof / f->unit);
}

/* Does a vertical line pass through another mark, or run beside another whisker? */
static bool crowded(const struct rfl_figure *f, const struct rfl_mark *m, double top)
{
	double r = 1.4 * SZ(f, marker);

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
	int whiskers = f->nmarks > RFL_FIG_FEW ? 0 : WHISKERS;

	f->has_errors = f->has_whiskers = f->has_above = f->has_edges = f->bars_hidden = false;
	for (size_t i = 0; i < f->nmarks; i++) {
		struct rfl_mark *m = &f->marks[i];
		const struct rfl_point *p = m->point;

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

static void add_disc(struct rfl_figure *f, int owner, double x, double y)
{
	double r = 1.2 * SZ(f, marker);

	rfl_place_add(f->place, RFL_OBSTACLE_MARK, owner,
		      rfl_hull_box((struct rfl_box){ x - r, y - r, 2 * r, 2 * r }));
}

void rfl_draw__mark_obstacles(struct rfl_figure *f)
{
	for (int i = 0; i < (int)f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];

		add_disc(f, i, m->px, m->py);
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

static void draw_lines(struct rfl_figure *f, const struct rfl_mark *m, struct rfl_color color)
{
	double w = SZ(f, stroke_thin), s = f->scale;
	struct rfl_scene *sc = f->scene;

	if (m->whisker) {
		double top = roof_at(f, m);
		struct rfl_prim *p = rfl_scene_line(sc, m->px, m->py, m->px, top, color, w);

		p->dash = RFL_DASH_DASHED;
		p->id = rfl_scene_printf(sc, "headroom-%d", m->number);
		rfl_scene_line(sc, m->px - 4 * s, top, m->px + 4 * s, top, color, 1.6 * s);
	}
	if (!isnan(m->px_best))
		rfl_scene_line(sc, m->px, m->py, m->px_best, m->py, color, w)->id =
			rfl_scene_printf(sc, "traffic-%d", m->number);
	if (m->bar_y.shown)
		rfl_scene_line(sc, m->px, m->bar_y.from, m->px, m->bar_y.to, f->theme->ink, 1.2 * s)
			->id = rfl_scene_printf(sc, "spread-y-%d", m->number);
	if (m->bar_x.shown)
		rfl_scene_line(sc, m->bar_x.from, m->py, m->bar_x.to, m->py, f->theme->ink, 1.2 * s)
			->id = rfl_scene_printf(sc, "spread-x-%d", m->number);
}

/* A mark beyond an edge is an arrow head that points there. */
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

void rfl_draw__marks(struct rfl_figure *f)
{
	struct rfl_scene *s = f->scene;
	const double r = SZ(f, marker);

	for (size_t i = 0; i < f->nmarks; i++)
		draw_lines(f, &f->marks[i], f->theme->category[f->color_index[f->marks[i].color]]);
	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		struct rfl_prim *p;

		if (isnan(m->px_best))
			continue;
		p = rfl_scene_marker(s, shape_of(m, m->edge_best), m->px_best, m->py, r * 0.94,
				     f->theme->paper, f->theme->category[f->color_index[m->color]],
				     1.7 * f->scale);
		p->id = rfl_scene_printf(s, "best-%d", m->number);
		p->tip = rfl_scene_printf(s, "%s, at best: %s FLOP/byte", m->name,
					  rfl_words_number(s, m->x_best));
	}
	for (size_t i = f->nmarks; i-- > 0;) { /* the first of the file lies on top */
		const struct rfl_mark *m = &f->marks[i];
		struct rfl_prim *p =
			rfl_scene_marker(s, shape_of(m, m->edge), m->px, m->py, r,
					 f->theme->category[f->color_index[m->color]],
					 m->above ? f->theme->alarm : f->theme->ink,
					 m->above ? 2.4 * f->scale : SZ(f, stroke_mark));

		p->id = rfl_scene_printf(s, "mark-%d", m->number);
		p->tip = rfl_scene_printf(
			s, "%s: %s GFLOP/s at %s FLOP/byte, %.1f %% of %s GFLOP/s", m->name,
			rfl_words_number(s, m->y), rfl_words_number(s, m->x), m->percent,
			rfl_words_number(s, m->roof));
	}
}
