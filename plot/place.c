/*
 * place.c - obstacles, found by a grid: each is entered in all cells that its box covers. The
 * newest entry of a cell comes first, so that a try is taken back by dropping the first ones.
 */
#include "plot/place.h"

#include <string.h>

#define CELLS 64 /* of a side of the grid */

struct obstacle {
	enum rfl_obstacle kind;
	int owner;
	struct rfl_hull shape;
};

struct entry {
	uint32_t obstacle;
	uint32_t next; /* the entry before it in the same cell, plus 1; 0: none */
};

struct rfl_place {
	struct rfl_scene *scene; /* owns the memory */
	struct rfl_box within;
	struct obstacle *obstacles;
	struct entry *entries;
	size_t n, cap, nentries, entries_cap;
	uint32_t first[CELLS][CELLS]; /* entry of a cell, plus 1 */
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

/* The cells that a box covers, ends included. What lies outside belongs to the cells at the edge.
 */
struct cells {
	size_t x0, x1, y0, y1;
};

static size_t cell_at(double v, double from, double size)
{
	double cell = (v - from) * CELLS / size;

	if (!(cell > 0))
		return 0;
	return cell < CELLS ? (size_t)cell : CELLS - 1;
}

static struct cells cells_of(const struct rfl_place *p, const struct rfl_box *b)
{
	const struct rfl_box *w = &p->within;

	return (struct cells){ cell_at(b->x, w->x, w->w), cell_at(b->x + b->w, w->x, w->w),
			       cell_at(b->y, w->y, w->h), cell_at(b->y + b->h, w->y, w->h) };
}

/* Room for n more; false when the scene has failed. */
static bool reserve(struct rfl_place *p, void **items, size_t used, size_t n, size_t *cap,
		    size_t size)
{
	size_t wanted = *cap ? *cap : 256;
	void *more;

	while (wanted < used + n)
		wanted *= 2;
	if (wanted == *cap)
		return true;
	more = rfl_scene_array(p->scene, wanted, size);
	if (!more)
		return false;
	if (used)
		memcpy(more, *items, used * size);
	*items = more;
	*cap = wanted;
	return true;
}

void rfl_place_add(struct rfl_place *p, enum rfl_obstacle kind, int owner, struct rfl_hull shape)
{
	const struct cells c = cells_of(p, &shape.box);
	size_t n = (c.x1 - c.x0 + 1) * (c.y1 - c.y0 + 1);
	void *obstacles = p->obstacles, *entries = p->entries;

	if (!reserve(p, &obstacles, p->n, 1, &p->cap, sizeof(*p->obstacles)))
		return;
	p->obstacles = obstacles;
	if (!reserve(p, &entries, p->nentries, n, &p->entries_cap, sizeof(*p->entries)))
		return;
	p->entries = entries;
	for (size_t y = c.y0; y <= c.y1; y++)
		for (size_t x = c.x0; x <= c.x1; x++) {
			p->entries[p->nentries++] =
				(struct entry){ (uint32_t)p->n, p->first[y][x] };
			p->first[y][x] = (uint32_t)p->nentries;
		}
	p->obstacles[p->n++] = (struct obstacle){ kind, owner, shape };
}

size_t rfl_place_count(const struct rfl_place *p)
{
	return p->n;
}

void rfl_place_truncate(struct rfl_place *p, size_t n)
{
	while (p->n > n) {
		const struct cells c = cells_of(p, &p->obstacles[--p->n].shape.box);

		for (size_t y = c.y0; y <= c.y1; y++)
			for (size_t x = c.x0; x <= c.x1; x++) {
				p->first[y][x] = p->entries[p->first[y][x] - 1].next;
				p->nentries--;
			}
	}
}

bool rfl_place_any(const struct rfl_place *p, unsigned kinds, const struct rfl_box *box,
		   rfl_place_test test, const void *ctx)
{
	const struct cells c = cells_of(p, box);

	for (size_t y = c.y0; y <= c.y1; y++)
		for (size_t x = c.x0; x <= c.x1; x++)
			for (size_t i = p->first[y][x]; i; i = p->entries[i - 1].next) {
				const struct obstacle *o =
					&p->obstacles[p->entries[i - 1].obstacle];

				if ((o->kind & kinds) && rfl_box_meet(&o->shape.box, box) &&
				    test(o->owner, &o->shape, ctx))
					return true;
			}
	return false;
}

struct question {
	int owner;
	const struct rfl_hull *shape;
};

static bool meets(int owner, const struct rfl_hull *shape, const void *ctx)
{
	const struct question *q = ctx;

	return (q->owner == RFL_NOBODY || q->owner != owner) && rfl_hull_meet(shape, q->shape);
}

bool rfl_place_hit(const struct rfl_place *p, unsigned kinds, int owner,
		   const struct rfl_hull *shape)
{
	const struct question q = { owner, shape };

	return rfl_place_any(p, kinds, &shape->box, meets, &q);
}

bool rfl_place_free(const struct rfl_place *p, unsigned kinds, int owner,
		    const struct rfl_hull *shape)
{
	return rfl_box_holds(&p->within, &shape->box) && !rfl_place_hit(p, kinds, owner, shape);
}
