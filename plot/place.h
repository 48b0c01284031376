/*
 * place.h - where there is room for a text: a growing list of obstacles and the question whether a
 * shape is clear of them. The strategy (which candidates, in which order) is the caller's.
 */
#ifndef RFL_PLOT_PLACE_H
#define RFL_PLOT_PLACE_H

#include "plot/geom.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What an obstacle is; a question names the kinds that matter to it. */
enum rfl_obstacle {
	RFL_OBSTACLE_MARK = 1,
	RFL_OBSTACLE_ROOF = 2, /**< the roof */
	RFL_OBSTACLE_LINE = 4, /**< connectors, whiskers, error bars, leaders, drop line */
	RFL_OBSTACLE_TEXT = 8,
	RFL_OBSTACLE_QUIET = 16, /**< ceilings beside the roof */
	RFL_OBSTACLE_ALL = 31,
};

#define RFL_NOBODY (-1)

struct rfl_place;

/** @param within  placed shapes stay inside this box. NULL when memory is short. */
struct rfl_place *rfl_place_new(struct rfl_scene *scene, struct rfl_box within) RFL_WARN_UNUSED;

/** @param owner  whose obstacle it is, RFL_NOBODY for none */
void rfl_place_add(struct rfl_place *p, enum rfl_obstacle kind, int owner, struct rfl_hull shape);

/** How many obstacles there are, and back to so many: a try that is taken back. */
size_t rfl_place_count(const struct rfl_place *p) RFL_WARN_UNUSED;
void rfl_place_truncate(struct rfl_place *p, size_t n);

/** A question about an obstacle. */
typedef bool (*rfl_place_test)(int owner, const struct rfl_hull *shape, const void *ctx);

/** Is there an obstacle of these kinds, with a box that meets this one, for which the test holds?
 */
bool rfl_place_any(const struct rfl_place *p, unsigned kinds, const struct rfl_box *box,
		   rfl_place_test test, const void *ctx) RFL_WARN_UNUSED;

/** Does a shape meet an obstacle of these kinds, those of `owner` aside? */
bool rfl_place_hit(const struct rfl_place *p, unsigned kinds, int owner,
		   const struct rfl_hull *shape) RFL_WARN_UNUSED;

/** Is a shape inside, and clear of all obstacles of these kinds but those of `owner`? */
bool rfl_place_free(const struct rfl_place *p, unsigned kinds, int owner,
		    const struct rfl_hull *shape) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
