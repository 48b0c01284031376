/*
 * place.h - where there is room for a text: convex shapes, a growing list of obstacles, and whether
 * a shape is clear of them. The strategy (which candidates, in which order) is the caller's.
 */
#ifndef RFL_PLOT_PLACE_H
#define RFL_PLOT_PLACE_H

#include "plot/scene.h"

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

/** Do they share a point? Shapes that only touch do not count. */
bool rfl_hull_meet(const struct rfl_hull *a, const struct rfl_hull *b);

/** A box grown on all sides. */
struct rfl_box rfl_box_grow(struct rfl_box box, double by);

/** Is `inner` within `outer`, edges included? */
bool rfl_box_holds(const struct rfl_box *outer, const struct rfl_box *inner);

/** The part of a line within a box. @return false when there is none; the ends are unchanged */
bool rfl_clip_line(const struct rfl_box *box, double *x0, double *y0, double *x1, double *y1);

/** What an obstacle is; a question names the kinds that matter to it. */
enum rfl_obstacle {
	RFL_OBSTACLE_MARK = 1,
	RFL_OBSTACLE_ROOF = 2, /**< the roof */
	RFL_OBSTACLE_LINE = 4, /**< connectors, whiskers, error bars, leaders, drop line */
	RFL_OBSTACLE_TEXT = 8,
	RFL_OBSTACLE_QUIET = 16, /**< ceilings beside the roof */
	RFL_OBSTACLE_ALL = 31,
};

#define RFL_NO_OWNER (-1)

struct rfl_place;

/** @param within  placed shapes stay inside this box. NULL when memory is short. */
struct rfl_place *rfl_place_new(struct rfl_scene *scene, struct rfl_box within) RFL_WARN_UNUSED;

/** @param owner  index of the mark that it belongs to, or RFL_NO_OWNER */
void rfl_place_add(struct rfl_place *p, enum rfl_obstacle kind, int owner, struct rfl_hull shape);

/** How many obstacles there are, and back to so many: an attempt that is undone. */
size_t rfl_place_count(const struct rfl_place *p) RFL_WARN_UNUSED;
void rfl_place_truncate(struct rfl_place *p, size_t n);

/** A question about an obstacle. */
typedef bool (*rfl_place_test)(int owner, const struct rfl_hull *shape, const void *ctx);

/** Is there an obstacle of these kinds whose box meets this one, and for which the test holds? */
bool rfl_place_any(const struct rfl_place *p, unsigned kinds, const struct rfl_box *box,
		   rfl_place_test test, const void *ctx) RFL_WARN_UNUSED;

/** Does a shape meet an obstacle of these kinds, those of `owner` aside? */
bool rfl_place_hit(const struct rfl_place *p, unsigned kinds, int owner,
		   const struct rfl_hull *shape) RFL_WARN_UNUSED;

/** Is a shape inside, and clear of all obstacles of these kinds but those of `owner`? */
bool rfl_place_free(const struct rfl_place *p, unsigned kinds, int owner,
		    const struct rfl_hull *shape) RFL_WARN_UNUSED;

#endif
