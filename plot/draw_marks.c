/*
 * draw_marks.c - draws the points: locates them, chooses connectors (to the hollow mark), whiskers
 * (to the roof) and error bars, and draws them, with marks over lines and filled marks over hollow
 * ones. Points without FLOPs are listed.
 */
#include <math.h>

#include "plot/figure.h"

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
	const double s = f->scale, size = SZ(f, label_second);
	struct rfl_box box = { f->plot.x + 8 * s, f->plot.y + 26 * s, 0, 8 * s };
	struct {
		const char *text;
		double r, h; /* radius of its mark, 0: none; height of the row */
	} rows[1 + GUTTER + 1] = { { .text = "" } };
	struct rfl_hull hull;
	double rest = 0, y;
	size_t n = 1;

	f->gutter_hidden = false;
	if (f->nidle == 0)
		return;
	rows[0].text = SAY(f, "no FLOPs: %.3g %% of the time", 100 * f->shares[1] / f->shares[2]);
	for (size_t i = 0; i < f->nidle; i++) {
		const double share = f->idle[i]->time_share;

		if (i >= GUTTER) {
			rest += share;
			continue;
		}
		rows[n].r = rfl_draw__share_radius(f, share);
		rows[n++].text =
			SAY(f, "%s %.2g %%", rfl_figure__part_name(f, f->idle[i]), 100 * share);
	}
	if (rest > 0)
		rows[n++].text = SAY(f, "and %zu more, %.2g %%", f->nidle - GUTTER, 100 * rest);
	for (size_t i = 0; i < n; i++) {
		rows[i].h = fmax(13 * s, 2 * rows[i].r + 2 * s);
		box.w = fmax(box.w, rfl_width(rows[i].text, size));
		box.h += rows[i].h;
	}
	for (box.w += 34 * s;; box.y += 6 * s) {
		f->gutter_hidden = box.y + box.h > f->plot.y + f->plot.h - 4 * s;
		if (f->gutter_hidden)
			return;
		hull = rfl_hull_box(box);
		if (rfl_place_free(f->place, RFL_OBSTACLE_ALL, RFL_NO_OWNER, &hull))
			break;
	}
	rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, hull);
	y = box.y + 4 * s;
	for (size_t i = 0; i < n; y += rows[i++].h) {
		const double mid = y + rows[i].h / 2;

		if (rows[i].r > 0)
			rfl_scene_marker(f->scene, RFL_MARKER_CIRCLE, box.x + 14 * s, mid,
					 rows[i].r, f->theme->faint, f->theme->soft,
					 SZ(f, stroke_mark))
				->id = SAY(f, "idle-%zu", i);
		rfl_draw__text(f, SAY(f, "idle-name-%zu", i), rows[i].text,
			       box.x + (rows[i].r > 0 ? 31 : 0) * s, mid + RFL_TEXT_CAP / 2 * size,
			       size, f->theme->soft, RFL_ANCHOR_START);
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
	m->goal = (struct rfl_xy){ m->px, rfl_axis_at(&f->y, m->roof / f->unit) };
	if (rfl_figure__is_time(f) && m->x > m->y)
		m->goal = (struct rfl_xy){ rfl_axis_at(&f->x, m->time), m->py };
	else if (rfl_figure__is_time(f))
		m->goal.y = rfl_axis_at(&f->y, m->time);
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

/* Would a whisker cross another mark, or be too close to another whisker? */
static bool crowded(const struct rfl_figure *f, const struct rfl_mark *m)
{
	const double r = 1.4 * m->r;
	const bool flat = m->goal.y == m->py; /* of a time-based roofline */

	for (const struct rfl_mark *o = f->marks; o < f->marks + f->nmarks; o++) {
		const double off = fabs(flat ? o->py - m->py : o->px - m->px);
		const bool beside = flat ? o->px > m->px - r && o->px < m->goal.x + r
					 : o->py > m->goal.y - r && o->py < m->py + r;

		if (o == m)
			continue;
		if ((o->whisker && (o->goal.y == o->py) == flat && off < 12 * f->scale) ||
		    (beside && (off < r || fabs(o->px_best - m->px) < r)))
			return true;
	}
	return false;
}

void rfl_draw__survey(struct rfl_figure *f)
{
	const bool timed = rfl_figure__is_time(f);
	int whiskers = timed ? (f->nmarks > RFL_FIG_NUMBERED ? 0 : RFL_FIG_PAIRS)
		       : f->nmarks > RFL_FIG_FEW || f->in->kind >= RFL_PLOT_HIERARCHICAL ? 0
											 : WHISKERS;

	f->has_errors = f->has_whiskers = f->has_above = f->has_edges = f->bars_hidden = false;
	for (struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		const struct rfl_point *p = m->point;

		m->r = radius_of(f, m);
		locate(f, m);
		if (!timed) {
			m->bar_y = bar_of(f, m, &f->y, p->attained_gflops_lo / f->unit,
					  p->attained_gflops_hi / f->unit);
			m->bar_x = bar_of(f, m, &f->x, p->ai_lo, p->ai_hi);
		} else if (m->x > m->y) { /* of the measured time, at its isochrone */
			m->bar_x = bar_of(f, m, &f->x, p->step_s_lo * 1e3, p->step_s_hi * 1e3);
		} else {
			m->bar_y = bar_of(f, m, &f->y, p->step_s_lo * 1e3, p->step_s_hi * 1e3);
		}
		m->whisker = false;
		f->has_above |= m->above;
		f->has_edges |= m->edge || m->edge_best;
	}
	for (size_t rank = 0; rank < f->nmarks && whiskers > 0; rank++) {
		struct rfl_mark *m = &f->marks[f->by_rank[rank]];

		if (m->edge || m->above || m->factor < (timed ? 1.02 : WHISKER_MIN) ||
		    m->goal.y < f->plot.y || m->goal.x > f->plot.x + f->plot.w ||
		    m->goal.x - m->px + m->py - m->goal.y < (timed ? 12 : 26) * f->scale ||
		    crowded(f, m))
			continue;
		m->whisker = f->has_whiskers = true;
		whiskers--;
	}
}

/* The next mark of a series (`link`: next or also), unless one of the two is drawn at the edge. */
static const struct rfl_mark *next_of(const struct rfl_figure *f, const struct rfl_mark *m,
				      int link)
{
	const struct rfl_mark *to = link < 0 ? NULL : &f->marks[link];

	return to && !m->edge && !to->edge ? to : NULL;
}

/* Draw a line that belongs to a mark, as an obstacle for texts. */
static struct rfl_prim *put_line(struct rfl_figure *f, const struct rfl_mark *m, const char *id,
				 struct rfl_xy from, struct rfl_xy to, struct rfl_color color,
				 double width)
{
	struct rfl_prim *p = rfl_scene_line(f->scene, from.x, from.y, to.x, to.y, color, width);

	p->id = rfl_draw__id(f, id, m);
	rfl_place_add(f->place, RFL_OBSTACLE_LINE, (int)(m - f->marks),
		      rfl_hull_band(from.x, from.y, to.x, to.y, SZ(f, stroke_thin)));
	return p;
}

static struct rfl_prim *put_marker(struct rfl_figure *f, const struct rfl_mark *m, const char *id,
				   enum rfl_marker shape, double x, double y, double r,
				   struct rfl_color fill, struct rfl_color stroke, double width)
{
	struct rfl_prim *p = rfl_scene_marker(f->scene, shape, x, y, r, fill, stroke, width);
	const struct rfl_box disc = { x - m->r, y - m->r, 2 * m->r, 2 * m->r };

	p->id = id;
	rfl_place_add(f->place, RFL_OBSTACLE_MARK, (int)(m - f->marks),
		      rfl_hull_box(rfl_box_grow(disc, .27 * m->r)));
	return p;
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

/* Draw a line that joins marks; in a trajectory, or from an earlier point, it is an arrow to the
 * rim of the mark at its end. */
static void put_series(struct rfl_figure *f, const struct rfl_mark *m, const char *id,
		       struct rfl_xy from, struct rfl_xy to, bool arrow)
{
	const double dx = to.x - from.x, dy = to.y - from.y, len = hypot(dx, dy);
	const double r = 1.2 * m->r, head = 7 * f->scale;
	const struct rfl_color color =
		arrow ? rfl_figure__line_color(f, f->palette[m->color]) : f->theme->leader;
	const double ux = dx / len, uy = dy / len;
	const struct rfl_xy tip = { to.x - ux * r, to.y - uy * r };
	const struct rfl_xy corners[3] = {
		tip,
		{ tip.x - ux * head - uy * head * .4, tip.y - uy * head + ux * head * .4 },
		{ tip.x - ux * head + uy * head * .4, tip.y - uy * head - ux * head * .4 },
	};

	/* long lines fill the grid, and only few of many points have labels */
	if (f->nmarks <= RFL_FIG_NUMBERED || f->in->kind == RFL_PLOT_COMPARE)
		rfl_place_add(f->place, RFL_OBSTACLE_SERIES, (int)(m - f->marks),
			      rfl_hull_line(from.x, from.y, to.x, to.y));
	rfl_scene_line(f->scene, from.x, from.y, to.x, to.y, color, 1.1 * f->scale)->id =
		rfl_draw__id(f, id, m);
	if (arrow && len >= 2 * r + head) /* otherwise the marks nearly touch */
		rfl_scene_polygon(f->scene, corners, 3, color)->id = rfl_draw__id(f, "arrow", m);
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
	const bool arrows = f->in->kind == RFL_PLOT_TRAJECTORY;
	const double u = f->scale, thin = SZ(f, stroke_thin);
	const struct rfl_color ink = f->theme->ink, paper = f->theme->paper;
	const struct rfl_color leader = f->theme->leader;

	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		const struct rfl_xy here = { m->px, m->py }, was = { m->px_was, m->py_was };
		const struct rfl_mark *next = next_of(f, m, m->next),
				      *also = next_of(f, m, m->also);

		if (next)
			put_series(f, m, "series", here, (struct rfl_xy){ next->px, next->py },
				   arrows);
		if (also)
			put_series(f, m, "series-also", here, (struct rfl_xy){ also->px, also->py },
				   arrows);
		if (!isnan(was.x)) {
			put_series(f, m, "series", was, here, true);
			put_marker(f, m, rfl_draw__id(f, "was", m), m->shape, was.x, was.y,
				   0.7 * m->r, f->theme->faint, leader, 1.1 * u);
		}
		for (int k = 0; k < RFL_FIG_CACHES; k++)
			if (!isnan(m->px_cache[k]))
				put_line(f, m, "levels", here,
					 (struct rfl_xy){ m->px_cache[k], m->py }, leader, 1.1 * u);
	}
	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		const struct rfl_color color = rfl_figure__line_color(f, f->palette[m->color]);
		const struct rfl_xy here = { m->px, m->py };
		const bool flat = m->goal.y == m->py;
		const double dx = flat ? 0 : 4 * u, dy = flat ? 4 * u : 0;

		if (m->whisker) {
			put_line(f, m, "headroom", here, m->goal, color, thin)->dash =
				RFL_DASH_DASHED;
			rfl_scene_line(s, m->goal.x - dx, m->goal.y - dy, m->goal.x + dx,
				       m->goal.y + dy, color, 1.6 * u);
		}
		if (!isnan(m->px_best))
			put_line(f, m, "traffic", here, (struct rfl_xy){ m->px_best, m->py }, color,
				 thin);
		if (m->bar_y.shown)
			put_line(f, m, "spread-y", (struct rfl_xy){ m->px, m->bar_y.from },
				 (struct rfl_xy){ m->px, m->bar_y.to }, ink, 1.2 * u);
		if (m->bar_x.shown)
			put_line(f, m, "spread-x", (struct rfl_xy){ m->bar_x.from, m->py },
				 (struct rfl_xy){ m->bar_x.to, m->py }, ink, 1.2 * u);
	}
	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++)
		if (!isnan(m->px_best))
			put_marker(f, m, rfl_draw__id(f, "best", m), shape_of(m, m->edge_best),
				   m->px_best, m->py, m->r * 0.94, paper,
				   rfl_figure__line_color(f, f->palette[m->color]), 1.7 * u)
				->tip = SAY(f, "%s, at best: %s FLOP/byte", m->name,
					    rfl_words_number(s, m->x_best));
	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++)
		for (int k = RFL_FIG_CACHES - 1; k >= 0; k--)
			if (!isnan(m->px_cache[k]))
				put_marker(f, m, SAY(f, "cache-%s-%d", f->colors[k], m->number),
					   m->shape, m->px_cache[k], m->py, m->r, f->palette[k],
					   ink, SZ(f, stroke_mark))
					->tip =
					SAY(f, "%s: %s FLOP per byte of %s", m->name,
					    rfl_words_number(s, m->x_cache[k]), f->colors[k]);
	/* draw small marks on large ones; otherwise the first point of the file is on top */
	for (size_t i = f->nmarks; i-- > 0;) {
		const struct rfl_mark *m =
			&f->marks[f->shares[0] > 0 ? (size_t)f->by_rank[f->nmarks - 1 - i] : i];
		struct rfl_prim *p = put_marker(
			f, m, rfl_draw__id(f, "mark", m), shape_of(m, m->edge), m->px, m->py, m->r,
			f->palette[m->color], m->above ? f->theme->alarm : ink,
			m->above ? 2.4 * u : SZ(f, stroke_mark));

		p->tip = rfl_figure__is_time(f)
				 ? SAY(f, "%s: %s; bytes %s, FLOPs %s", m->name,
				       rfl_words_time(s, m->time), rfl_words_time(s, m->x),
				       rfl_words_time(s, m->y))
				 : SAY(f, "%s: %s at %s FLOP/byte, %.1f %% of %s", m->name,
				       rfl_figure__rate(f, m->y), rfl_words_number(s, m->x),
				       m->percent, rfl_figure__rate(f, m->roof));
		if (m->above && !m->edge)
			rfl_draw__hatch(f, rfl_draw__id(f, "hatch", m), m->shape,
					(struct rfl_xy){ m->px, m->py }, m->r - 1.2 * u);
	}
}
