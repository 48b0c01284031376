/*
 * place.h - finds free space for text: convex shapes, a growing list of obstacles, and tests
 * whether a shape is clear of them. The caller chooses the candidates and their order.
 */
#ifndef RFL_PLOT_PLACE_H
#define RFL_PLOT_PLACE_H

#include "plot/scene.h"

/** A convex shape with 1 to 4 corners; a line has two, a rotated text four. */
struct rfl_hull {
	struct rfl_box box; /**< bounding box, which decides most tests */
	int n;
	struct rfl_xy at[4];
};

struct rfl_hull rfl_hull_box(struct rfl_box box);
struct rfl_hull rfl_hull_line(double x0, double y0, double x1, double y1);
struct rfl_hull rfl_hull_corners(const struct rfl_xy corners[4]);

/** A line with a width, as a rectangle. */
struct rfl_hull rfl_hull_band(double x0, double y0, double x1, double y1, double width);

/** Do the shapes overlap? Shapes that only touch do not. */
bool rfl_hull_meet(const struct rfl_hull *a, const struct rfl_hull *b);

/** Enlarge a box on all sides. */
struct rfl_box rfl_box_grow(struct rfl_box box, double by);

/** Is `inner` within `outer`, edges included? */
bool rfl_box_holds(const struct rfl_box *outer, const struct rfl_box *inner);

/** Clip a line to a box. @return false if no part is inside; the ends are unchanged then */
bool rfl_clip_line(const struct rfl_box *box, double *x0, double *y0, double *x1, double *y1);

/** Kinds of obstacles; tests select the kinds to check. */
enum rfl_obstacle {
	RFL_OBSTACLE_MARK = 1,
	RFL_OBSTACLE_ROOF = 2,
	RFL_OBSTACLE_LINE = 4, /**< connectors, whiskers, error bars, lines of ridge points */
	RFL_OBSTACLE_TEXT = 8,
	RFL_OBSTACLE_QUIET = 16,  /**< ceilings other than the roof */
	RFL_OBSTACLE_SERIES = 32, /**< lines that join batches */
	RFL_OBSTACLE_LEADER = 64,
	RFL_OBSTACLE_ALL = 127,
};

#define RFL_NO_OWNER (-1)

struct rfl_place;

/** @param within  box that shapes must stay inside */
struct rfl_place *rfl_place_new(struct rfl_scene *scene, struct rfl_box within) RFL_WARN_UNUSED;

/** @param owner  index of the mark that the obstacle belongs to, or RFL_NO_OWNER */
void rfl_place_add(struct rfl_place *p, enum rfl_obstacle kind, int owner, struct rfl_hull shape);

/** The number of obstacles, and removal of all after the first n, to undo an attempt. */
size_t rfl_place_count(const struct rfl_place *p) RFL_WARN_UNUSED;
void rfl_place_truncate(struct rfl_place *p, size_t n);

/** A test of one obstacle. */
typedef bool (*rfl_place_test)(int owner, const struct rfl_hull *shape, const void *ctx);

/** Does any obstacle of these kinds overlap `box` with its bounding box and pass the test? */
bool rfl_place_any(const struct rfl_place *p, unsigned kinds, const struct rfl_box *box,
		   rfl_place_test test, const void *ctx) RFL_WARN_UNUSED;

/** Does a shape overlap an obstacle of these kinds, except obstacles of `owner`? */
bool rfl_place_hit(const struct rfl_place *p, unsigned kinds, int owner,
		   const struct rfl_hull *shape) RFL_WARN_UNUSED;

/** Is a shape inside the box and clear of obstacles of these kinds, except obstacles of `owner`? */
bool rfl_place_free(const struct rfl_place *p, unsigned kinds, int owner,
		    const struct rfl_hull *shape) RFL_WARN_UNUSED;

#endif
