/*
 * draw_marks.c - draws the points: locates them, chooses connectors (to the hollow mark), whiskers
 * (to the roof) and error bars, and draws them, with marks over lines and filled marks over hollow
 * ones. Points without FLOPs are listed.
 */
#include <math.h>
#include <string.h>

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
	/* arrows between the marks must be visible */
	const double shrink = pow(.8, f->tight) * (f->in->kind == RFL_PLOT_TRAJECTORY ? .75 : 1);

	if (f->shares[0] > 0)
		return rfl_draw__share_radius(f, fmax(m->point->time_share, 0));
	return shrink * SZ(f, marker) *
	       (n <= RFL_FIG_PAIRS      ? 1
		: n <= 60               ? .8
		: n <= RFL_FIG_NUMBERED ? .6
		: n <= RFL_FIG_DOTS     ? .4
					: .2);
}

/* Move a box to the first free position along the left edge of the plot, then along the right.
 * @return false if there is none */
static bool find_room(const struct rfl_figure *f, struct rfl_box *box)
{
	const double s = f->scale, top = f->plot.y + 26 * s, bottom = f->plot.y + f->plot.h - 4 * s;
	const double xs[] = { f->plot.x + 8 * s, f->plot.x + f->plot.w - box->w - 8 * s };

	for (size_t i = 0; i < RFL_ARRAY_LEN(xs); i++)
		for (box->x = xs[i], box->y = top; box->y + box->h <= bottom; box->y += 6 * s) {
			const struct rfl_hull hull = rfl_hull_box(*box);

			if (rfl_place_free(f->place, RFL_OBSTACLE_ALL, RFL_NO_OWNER, &hull))
				return true;
		}
	return false;
}

/* List the first `most` points without FLOPs at an edge of the plot, with marks of the same areas
 * as in it.
 * @param brief  only their shares of the time
 * @return false if there is no room */
static bool put_gutter(struct rfl_figure *f, size_t most, bool brief)
{
	const double s = f->scale, size = SZ(f, label_second);
	struct rfl_box box = { .h = 8 * s };
	struct {
		const char *text;
		double r, h; /* radius of its mark, 0: none; height of the row */
	} rows[1 + GUTTER + 1] = { { .text = "" } };
	const bool several = f->shares[2] > 1.01; /* each part has a share of its own step */
	double rest = 0, y;
	size_t n = 1;

	rows[0].text = SAY(f, "no FLOPs: %s of the time%s",
			   rfl_figure__share(f, f->shares[1] / f->shares[2]),
			   several ? " of all steps" : "");
	for (size_t i = 0; i < f->nidle; i++) {
		const struct rfl_mark *m = &f->idle[i];
		const double share = m->point->time_share;

		if (i >= most) {
			rest += share;
			continue;
		}
		rows[n].r = rfl_draw__share_radius(f, share);
		rows[n].text = SAY(f, "%s %s", m->name, rfl_figure__share(f, share));
		if (m->percent > 0 && !brief)
			rows[n].text = SAY(f, "%s, %s GB/s (%s of roof)", rows[n].text,
					   rfl_words_number(f->scene, m->point->attained_gbps),
					   rfl_figure__percent(f, m->percent));
		n++;
	}
	if (rest > 0)
		rows[n++].text = SAY(f, several ? "and %zu more" : "and %zu more, %s",
				     f->nidle - most, rfl_figure__share(f, rest));
	for (size_t i = 0; i < n; i++) {
		rows[i].h = fmax(13 * s, 2 * rows[i].r + 2 * s);
		box.w = fmax(box.w, 34 * s + rfl_width(rows[i].text, size));
		box.h += rows[i].h;
	}
	if (!find_room(f, &box))
		return false;
	rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, rfl_hull_box(box));
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
	return true;
}

void rfl_draw__gutter(struct rfl_figure *f)
{
	f->gutter_hidden = f->nidle > 0;
	for (size_t most = GUTTER; f->gutter_hidden && most > 0; most /= 2)
		f->gutter_hidden = !put_gutter(f, most, false) && !put_gutter(f, most, true);
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
	const bool large =
		lo >= 0 && hi > lo && fabs(to - from) > 2.3 * m->r && f->nmarks <= RFL_FIG_DOTS;

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
		struct rfl_mark *m = f->by_rank[rank];

		if (m->edge || m->above || m->bare || m->factor < (timed ? 1.02 : WHISKER_MIN) ||
		    m->goal.y < f->plot.y || m->goal.x > f->plot.x + f->plot.w ||
		    m->goal.x - m->px + m->py - m->goal.y < (timed ? 12 : 26) * f->scale ||
		    crowded(f, m))
			continue;
		m->whisker = f->has_whiskers = true;
		whiskers--;
	}
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
	rfl_scene_line(f->scene, from.x, from.y, to.x, to.y, color,
		       (strcmp(id, "prefill") == 0 ? 0.6 : 1.1) * f->scale)
		->id = rfl_draw__id(f, id, m);
	if (arrow && len >= 2 * r + head) /* otherwise the marks nearly touch */
		rfl_scene_polygon(f->scene, corners, 3, color)->id = rfl_draw__id(f, "arrow", m);
}

void rfl_draw__hatch(struct rfl_figure *f, const char *id, enum rfl_marker shape, struct rfl_xy at,
		     double r)
{
	struct rfl_xy q[RFL_MARKER_MAX_POINTS];
	const size_t n = rfl_marker_outline(shape, r, q);
	double inside = r; /* radius of the circle inside the marker */

	for (size_t i = 0; i < n; i++) {
		const struct rfl_xy a = q[i], b = q[(i + 1) % n];

		inside = fmin(inside, fabs(a.x * b.y - a.y * b.x) / hypot(b.x - a.x, b.y - a.y));
	}
	/* the lines y = x + c cross the circle on both sides of their centre (-c/2, c/2) */
	for (double c = -2 * r; c < 2 * r; c += 0.62 * r) {
		const double half = sqrt(fmax(inside * inside - c * c / 2, 0) / 2), mid = -c / 2;

		if (half > 0)
			rfl_scene_line(f->scene, at.x + mid - half, at.y - mid - half,
				       at.x + mid + half, at.y - mid + half, f->theme->paper,
				       0.17 * r)
				->id = id;
	}
}

void rfl_draw__marks(struct rfl_figure *f)
{
	struct rfl_scene *s = f->scene;
	const bool arrows = f->in->kind == RFL_PLOT_TRAJECTORY, dots = f->nmarks > RFL_FIG_DOTS;
	const double u = f->scale, thin = SZ(f, stroke_thin);
	const struct rfl_color ink = f->theme->ink, paper = f->theme->paper;
	const struct rfl_color leader = f->theme->leader, none = RFL_COLOR_NONE;

	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		const struct rfl_xy here = { m->px, m->py }, was = { m->px_was, m->py_was };
		static const char *const ids[] = { "series", "series-also", "prefill" };
		const struct rfl_mark *const links[] = { m->next, m->also, m->decode };

		for (int k = 0; k < 3; k++) /* unless one of the two is drawn at the edge */
			if (links[k] && !m->edge && !links[k]->edge)
				put_series(f, m, ids[k], here,
					   (struct rfl_xy){ links[k]->px, links[k]->py }, arrows);
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
			put_line(f, m, "goal", (struct rfl_xy){ m->goal.x - dx, m->goal.y - dy },
				 (struct rfl_xy){ m->goal.x + dx, m->goal.y + dy }, color, 1.6 * u);
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
			f->shares[0] > 0 ? f->by_rank[f->nmarks - 1 - i] : &f->marks[i];
		const struct rfl_color rim = m->above ? f->theme->alarm : dots ? none : ink;
		struct rfl_prim *p =
			put_marker(f, m, dots ? "" : rfl_draw__id(f, "mark", m),
				   shape_of(m, m->edge), m->px, m->py, m->r, f->palette[m->color],
				   rim, m->above ? (dots ? 1 : 2.4) * u : SZ(f, stroke_mark));

		if (dots)
			continue;
		p->tip = rfl_figure__is_time(f)
				 ? SAY(f, "%s: %s; bytes %s, FLOPs %s", m->name,
				       rfl_words_time(s, m->time), rfl_words_time(s, m->x),
				       rfl_words_time(s, m->y))
				 : SAY(f, "%s: %s at %s FLOP/byte, %s of %s", m->name,
				       rfl_figure__rate(f, m->y), rfl_words_number(s, m->x),
				       rfl_figure__share(f, m->percent / 100),
				       rfl_figure__rate(f, m->roof));
		if (m->above && !m->edge)
			rfl_draw__hatch(f, rfl_draw__id(f, "hatch", m), m->shape,
					(struct rfl_xy){ m->px, m->py }, m->r - 1.2 * u);
	}
}
