/*
 * geom.h - convex shapes and whether they touch: what label placement is made of.
 */
#ifndef RFL_PLOT_GEOM_H
#define RFL_PLOT_GEOM_H

#include <stdbool.h>

#include "plot/scene.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A convex shape of 1 to 4 corners: a line has two, a tilted text four. */
struct rfl_hull {
	struct rfl_box box; /**< upright box around it: first, since it answers most questions */
	int n;
	struct rfl_xy at[4];
};

struct rfl_hull rfl_hull_box(struct rfl_box box);
struct rfl_hull rfl_hull_line(double x0, double y0, double x1, double y1);
struct rfl_hull rfl_hull_corners(const struct rfl_xy corners[4]);

/** A line of some width: a rectangle around it. */
struct rfl_hull rfl_hull_band(double x0, double y0, double x1, double y1, double width);

/** Do upright boxes share a point, edges included? */
static inline bool rfl_box_meet(const struct rfl_box *a, const struct rfl_box *b)
{
	return a->x <= b->x + b->w && b->x <= a->x + a->w && a->y <= b->y + b->h &&
	       b->y <= a->y + a->h;
}

/** Do they share a point? Shapes that only touch do not count. */
bool rfl_hull_meet(const struct rfl_hull *a, const struct rfl_hull *b);

/** A box grown on all sides. */
struct rfl_box rfl_box_grow(struct rfl_box box, double by);

/** Is `inner` within `outer`, edges included? */
bool rfl_box_holds(const struct rfl_box *outer, const struct rfl_box *inner);

/**
 * The part of a line within a box.
 * @return false when none of it is; the ends are then unchanged
 */
bool rfl_clip_line(const struct rfl_box *box, double *x0, double *y0, double *x1, double *y1);

#ifdef __cplusplus
}
#endif
#endif
