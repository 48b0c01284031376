/*
 * draw_marks.c - the points: where they lie, which helpers they get (connector to the mark at best,
 * whisker to the roof, error bars), and their drawing. Lines lie under marks, hollow marks under
 * filled ones.
 */
#include <math.h>

#include "plot/figure.h"

#define WHISKERS     8    /* at most */
#define WHISKERS_FEW 14   /* none where there are more points than this */
#define WHISKER_MIN  1.15 /* a factor below this is not worth a line */

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

/* Where a mark lies; beyond an edge it is drawn just inside. */
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

bool rfl_draw__has_bar(const struct rfl_figure *f, double lo, double hi,
		       const struct rfl_axis *axis)
{
	if (!(lo > 0) || !(hi > lo))
		return false;
	return fabs(rfl_axis_at(axis, hi) - rfl_axis_at(axis, lo)) > 2.3 * SZ(f, marker);
}

static double roof_at(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return rfl_axis_at(&f->y, m->roof / f->unit);
}

/* Does a vertical line pass through another mark, or run beside another whisker? */
static bool crowded(const struct rfl_figure *f, size_t i, double top)
{
	const struct rfl_mark *m = &f->marks[i];
	double r = 1.4 * SZ(f, marker);

	for (size_t k = 0; k < f->nmarks; k++) {
		const struct rfl_mark *o = &f->marks[k];

		if (k == i)
			continue;
		if (o->whisker && fabs(o->px - m->px) < 12 * f->scale)
			return true;
		if (fabs(o->px - m->px) < r && o->py > top - r && o->py < m->py + r)
			return true;
		if (!isnan(o->px_best) && fabs(o->px_best - m->px) < r && o->py > top - r &&
		    o->py < m->py + r)
			return true;
	}
	return false;
}

static void choose_whiskers(struct rfl_figure *f)
{
	int left = f->nmarks > WHISKERS_FEW ? 0 : WHISKERS;

	for (size_t rank = 0; rank < f->nmarks && left > 0; rank++) {
		size_t i = (size_t)f->by_rank[rank];
		struct rfl_mark *m = &f->marks[i];
		double top = roof_at(f, m);

		if (m->edge || m->above || m->roof / m->y < WHISKER_MIN || top < f->plot.y ||
		    m->py - top < 26 * f->scale || crowded(f, i, top))
			continue;
		m->whisker = true;
		left--;
	}
}

void rfl_draw__survey(struct rfl_figure *f)
{
	f->has_errors = f->has_whiskers = f->has_above = f->has_edges = f->bars_hidden = false;
	for (size_t i = 0; i < f->nmarks; i++) {
		locate(f, &f->marks[i]);
		f->marks[i].whisker = false;
	}
	choose_whiskers(f);
	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		bool y = rfl_draw__has_bar(f, m->y_lo, m->y_hi, &f->y);
		bool x = rfl_draw__has_bar(f, m->x_lo, m->x_hi, &f->x);

		f->has_errors |= x || y;
		f->bars_hidden |= (!y && m->y_hi > m->y_lo) || (!x && m->x_hi > m->x_lo);
		f->has_whiskers |= m->whisker;
		f->has_above |= m->above;
		f->has_edges |= m->edge || m->edge_best;
	}
}

static struct rfl_color color_of(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return f->theme->category[f->color_index[m->color]];
}

/* The ends of an error bar on the page, cut at the frame. */
static void bar_ends(const struct rfl_axis *axis, double lo, double hi, double *from, double *to)
{
	double a = fmin(axis->from, axis->to), b = fmax(axis->from, axis->to);

	*from = fmin(fmax(rfl_axis_at(axis, lo), a), b);
	*to = fmin(fmax(rfl_axis_at(axis, hi), a), b);
}

static bool has_y_bar(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return !m->edge && rfl_draw__has_bar(f, m->y_lo, m->y_hi, &f->y);
}

static bool has_x_bar(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return !m->edge && rfl_draw__has_bar(f, m->x_lo, m->x_hi, &f->x);
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
	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		double a, b;

		add_disc(f, (int)i, m->px, m->py);
		if (!isnan(m->px_best)) {
			add_disc(f, (int)i, m->px_best, m->py);
			add_line(f, (int)i, m->px, m->py, m->px_best, m->py);
		}
		if (m->whisker)
			add_line(f, (int)i, m->px, m->py, m->px, roof_at(f, m));
		if (has_y_bar(f, m)) {
			bar_ends(&f->y, m->y_lo, m->y_hi, &a, &b);
			add_line(f, (int)i, m->px, a, m->px, b);
		}
		if (has_x_bar(f, m)) {
			bar_ends(&f->x, m->x_lo, m->x_hi, &a, &b);
			add_line(f, (int)i, a, m->py, b, m->py);
		}
	}
}

static const char *tip_of(const struct rfl_figure *f, const struct rfl_mark *m)
{
	struct rfl_scene *s = f->scene;

	return rfl_scene_printf(s, "%s: %s GFLOP/s at %s FLOP/byte, %.1f %% of %s GFLOP/s", m->name,
				rfl_words_number(s, m->y), rfl_words_number(s, m->x), m->percent,
				rfl_words_number(s, m->roof));
}

static void draw_lines(struct rfl_figure *f, const struct rfl_mark *m)
{
	struct rfl_color color = color_of(f, m);
	double w = SZ(f, stroke_thin), s = f->scale, a, b;
	struct rfl_prim *p;

	if (m->whisker) {
		double top = roof_at(f, m);

		p = rfl_scene_line(f->scene, m->px, m->py, m->px, top, color, w);
		p->dash = RFL_DASH_DASHED;
		p->id = rfl_scene_printf(f->scene, "headroom-%d", m->number);
		rfl_scene_line(f->scene, m->px - 4 * s, top, m->px + 4 * s, top, color, 1.6 * s);
	}
	if (!isnan(m->px_best))
		rfl_scene_line(f->scene, m->px, m->py, m->px_best, m->py, color, w)->id =
			rfl_scene_printf(f->scene, "traffic-%d", m->number);
	if (has_y_bar(f, m)) {
		bar_ends(&f->y, m->y_lo, m->y_hi, &a, &b);
		rfl_scene_line(f->scene, m->px, a, m->px, b, f->theme->ink, 1.2 * s)->id =
			rfl_scene_printf(f->scene, "spread-y-%d", m->number);
	}
	if (has_x_bar(f, m)) {
		bar_ends(&f->x, m->x_lo, m->x_hi, &a, &b);
		rfl_scene_line(f->scene, a, m->py, b, m->py, f->theme->ink, 1.2 * s)->id =
			rfl_scene_printf(f->scene, "spread-x-%d", m->number);
	}
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

static void draw_hollow(struct rfl_figure *f, const struct rfl_mark *m)
{
	struct rfl_prim *p;

	if (isnan(m->px_best))
		return;
	p = rfl_scene_marker(f->scene, shape_of(m, m->edge_best), m->px_best, m->py,
			     SZ(f, marker) * 0.94, f->theme->paper, color_of(f, m), 1.7 * f->scale);
	p->id = rfl_scene_printf(f->scene, "best-%d", m->number);
	p->tip = rfl_scene_printf(f->scene, "%s, at best: %s FLOP/byte", m->name,
				  rfl_words_number(f->scene, m->x_best));
}

static void draw_filled(struct rfl_figure *f, const struct rfl_mark *m)
{
	struct rfl_color outline = m->above ? f->theme->alarm : f->theme->ink;
	struct rfl_prim *p = rfl_scene_marker(f->scene, shape_of(m, m->edge), m->px, m->py,
					      SZ(f, marker), color_of(f, m), outline,
					      m->above ? 2.4 * f->scale : SZ(f, stroke_mark));

	p->id = rfl_scene_printf(f->scene, "mark-%d", m->number);
	p->tip = tip_of(f, m);
}

void rfl_draw__marks(struct rfl_figure *f)
{
	for (size_t i = 0; i < f->nmarks; i++)
		draw_lines(f, &f->marks[i]);
	for (size_t i = 0; i < f->nmarks; i++)
		draw_hollow(f, &f->marks[i]);
	for (size_t i = f->nmarks; i-- > 0;) /* the first of the file lies on top */
		draw_filled(f, &f->marks[i]);
}
