/*
 * place.c - obstacles in a plain array: some hundreds, each with a box that rules most of them out.
 */
#include "plot/place.h"

#include <string.h>

struct obstacle {
	enum rfl_obstacle kind;
	int owner;
	struct rfl_hull shape;
};

struct rfl_place {
	struct rfl_scene *scene; /* owns the memory */
	struct rfl_box within;
	struct obstacle *obstacles;
	size_t n, cap;
};

struct rfl_place *rfl_place_new(struct rfl_scene *scene, struct rfl_box within)
{
	struct rfl_place *p = rfl_scene_array(scene, 1, sizeof(*p));

	if (p) {
		p->scene = scene;
		p->within = within;
	}
	return p;
}

void rfl_place_add(struct rfl_place *p, enum rfl_obstacle kind, int owner, struct rfl_hull shape)
{
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 256;
		struct obstacle *more = rfl_scene_array(p->scene, cap, sizeof(*more));

		if (!more)
			return; /* the scene has failed */
		if (p->n)
			memcpy(more, p->obstacles, p->n * sizeof(*more));
		p->obstacles = more;
		p->cap = cap;
	}
	p->obstacles[p->n++] = (struct obstacle){ kind, owner, shape };
}

size_t rfl_place_count(const struct rfl_place *p)
{
	return p->n;
}

void rfl_place_truncate(struct rfl_place *p, size_t n)
{
	if (n < p->n)
		p->n = n;
}

bool rfl_place_free(const struct rfl_place *p, unsigned kinds, int owner,
		    const struct rfl_hull *shape)
{
	return rfl_box_holds(&p->within, &shape->box) && !rfl_place_hit(p, kinds, owner, shape);
}

bool rfl_place_hit(const struct rfl_place *p, unsigned kinds, int owner,
		   const struct rfl_hull *shape)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct obstacle *o = &p->obstacles[i];

		if (!(o->kind & kinds) || (owner != RFL_NOBODY && o->owner == owner))
			continue;
		if (rfl_box_meet(&o->shape.box, &shape->box) && rfl_hull_meet(&o->shape, shape))
			return true;
	}
	return false;
}
