/*
 * geom.c - separating axes, and the clipping of Liang and Barsky.
 */
#include "plot/geom.h"

#include <math.h>

/* fmin() and fmax() are calls, for the sake of NaN, which no corner is. */
static inline double least(double a, double b)
{
	return a < b ? a : b;
}

static inline double most(double a, double b)
{
	return a > b ? a : b;
}

static struct rfl_hull finish(struct rfl_hull h)
{
	double x0 = h.at[0].x, x1 = x0, y0 = h.at[0].y, y1 = y0;

	for (int i = 1; i < h.n; i++) {
		x0 = least(x0, h.at[i].x);
		x1 = most(x1, h.at[i].x);
		y0 = least(y0, h.at[i].y);
		y1 = most(y1, h.at[i].y);
	}
	h.box = (struct rfl_box){ x0, y0, x1 - x0, y1 - y0 };
	return h;
}

struct rfl_hull rfl_hull_box(struct rfl_box b)
{
	return finish((struct rfl_hull){
		.n = 4,
		.at = { { b.x, b.y },
			{ b.x + b.w, b.y },
			{ b.x + b.w, b.y + b.h },
			{ b.x, b.y + b.h } },
	});
}

struct rfl_hull rfl_hull_line(double x0, double y0, double x1, double y1)
{
	return finish((struct rfl_hull){ .n = 2, .at = { { x0, y0 }, { x1, y1 } } });
}

struct rfl_hull rfl_hull_corners(const struct rfl_xy corners[4])
{
	return finish((struct rfl_hull){
		.n = 4,
		.at = { corners[0], corners[1], corners[2], corners[3] },
	});
}

struct rfl_hull rfl_hull_band(double x0, double y0, double x1, double y1, double width)
{
	double len = hypot(x1 - x0, y1 - y0);
	double nx = len > 0 ? -(y1 - y0) / len * width / 2 : width / 2;
	double ny = len > 0 ? (x1 - x0) / len * width / 2 : 0;

	return finish((struct rfl_hull){
		.n = 4,
		.at = { { x0 + nx, y0 + ny },
			{ x1 + nx, y1 + ny },
			{ x1 - nx, y1 - ny },
			{ x0 - nx, y0 - ny } },
	});
}

/* Does the axis (ax, ay) separate them? */
static bool apart(const struct rfl_hull *a, const struct rfl_hull *b, double ax, double ay)
{
	double a0 = INFINITY, a1 = -INFINITY, b0 = INFINITY, b1 = -INFINITY;

	for (int i = 0; i < a->n; i++) {
		double v = a->at[i].x * ax + a->at[i].y * ay;

		a0 = least(a0, v);
		a1 = most(a1, v);
	}
	for (int i = 0; i < b->n; i++) {
		double v = b->at[i].x * ax + b->at[i].y * ay;

		b0 = least(b0, v);
		b1 = most(b1, v);
	}
	return a1 <= b0 || b1 <= a0;
}

static bool apart_by_edges(const struct rfl_hull *a, const struct rfl_hull *b)
{
	for (int i = 0; i < a->n; i++) {
		const struct rfl_xy *p = &a->at[i], *q = &a->at[(i + 1) % a->n];

		if (apart(a, b, p->y - q->y, q->x - p->x))
			return true;
	}
	return false;
}

bool rfl_hull_meet(const struct rfl_hull *a, const struct rfl_hull *b)
{
	return rfl_box_meet(&a->box, &b->box) && !apart_by_edges(a, b) && !apart_by_edges(b, a);
}

struct rfl_box rfl_box_grow(struct rfl_box b, double by)
{
	return (struct rfl_box){ b.x - by, b.y - by, b.w + 2 * by, b.h + 2 * by };
}

bool rfl_box_holds(const struct rfl_box *outer, const struct rfl_box *inner)
{
	const double slack = 1e-6;

	return inner->x >= outer->x - slack && inner->y >= outer->y - slack &&
	       inner->x + inner->w <= outer->x + outer->w + slack &&
	       inner->y + inner->h <= outer->y + outer->h + slack;
}

bool rfl_clip_line(const struct rfl_box *box, double *x0, double *y0, double *x1, double *y1)
{
	double dx = *x1 - *x0, dy = *y1 - *y0;
	const double p[4] = { -dx, dx, -dy, dy };
	const double q[4] = { *x0 - box->x, box->x + box->w - *x0, *y0 - box->y,
			      box->y + box->h - *y0 };
	double t0 = 0, t1 = 1;

	for (int i = 0; i < 4; i++) {
		if (p[i] == 0) {
			if (q[i] < 0)
				return false;
		} else if (p[i] < 0) {
			t0 = fmax(t0, q[i] / p[i]);
		} else {
			t1 = fmin(t1, q[i] / p[i]);
		}
	}
	if (t0 >= t1)
		return false;
	*x1 = *x0 + t1 * dx;
	*y1 = *y0 + t1 * dy;
	*x0 += t0 * dx;
	*y0 += t0 * dy;
	return true;
}
