/*
 * place.c - shapes compared by separating axes, lines clipped by the method of Liang and Barsky,
 * and obstacles found with a grid: each is entered in all cells that its box covers. The newest
 * entry of a cell comes first, so that removing the first entries undoes an attempt.
 */
#include "plot/place.h"
#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* Faster than fmin() and fmax(), which are calls because of NaN; corners are never NaN. */
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
	return (struct rfl_hull){
		.n = 4,
		.at = { { b.x, b.y },
			{ b.x + b.w, b.y },
			{ b.x + b.w, b.y + b.h },
			{ b.x, b.y + b.h } },
		.box = b,
	};
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

/* Are the shapes separated along the normal of an edge of the first? All are lines or have parallel
 * sides, so half of the edges suffice. */
static bool apart(const struct rfl_hull *a, const struct rfl_hull *b)
{
	const struct rfl_hull *const hulls[2] = { a, b };

	for (int e = 0; e < a->n / 2; e++) {
		const struct rfl_xy *p = &a->at[e], *q = &a->at[e + 1];
		const double ax = p->y - q->y, ay = q->x - p->x;
		double lo[2] = { INFINITY, INFINITY }, hi[2] = { -INFINITY, -INFINITY };

		for (int k = 0; k < 2; k++)
			for (int i = 0; i < hulls[k]->n; i++) {
				double v = hulls[k]->at[i].x * ax + hulls[k]->at[i].y * ay;

				lo[k] = least(lo[k], v);
				hi[k] = most(hi[k], v);
			}
		if (hi[0] <= lo[1] || hi[1] <= lo[0])
			return true;
	}
	return false;
}

/* Do axis-parallel boxes share a point, edges included? */
static bool boxes_meet(const struct rfl_box *a, const struct rfl_box *b)
{
	return a->x <= b->x + b->w && b->x <= a->x + a->w && a->y <= b->y + b->h &&
	       b->y <= a->y + a->h;
}

bool rfl_hull_meet(const struct rfl_hull *a, const struct rfl_hull *b)
{
	return boxes_meet(&a->box, &b->box) && !apart(a, b) && !apart(b, a);
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

#define CELLS 64 /* cells per side of the grid */

struct obstacle {
	enum rfl_obstacle kind;
	int owner;
	struct rfl_hull shape;
};

struct entry {
	uint32_t obstacle;
	uint32_t next; /* index of the next older entry of the cell, plus 1; 0: none */
};

struct rfl_place {
	struct rfl_scene *scene; /* owns the memory */
	struct rfl_box within;
	struct obstacle *obstacles;
	struct entry *entries;
	size_t n, cap, nentries, entries_cap;
	uint32_t first[CELLS][CELLS]; /* index of the newest entry of a cell, plus 1; 0: none */
};

struct rfl_place *rfl_place_new(struct rfl_scene *scene, struct rfl_box within)
{
	struct rfl_place *p = rfl_arena_array(scene->arena, 1, sizeof(*p));

	p->scene = scene;
	p->within = within;
	return p;
}

/* The cells that a box covers, ends included. Anything outside the grid is in its edge cells. */
struct cells {
	size_t x0, x1, y0, y1;
};

static size_t cell_at(double v, double from, double size)
{
	double cell = (v - from) * CELLS / size;

	return !(cell > 0) ? 0 : cell < CELLS ? (size_t)cell : CELLS - 1;
}

static struct cells cells_of(const struct rfl_place *p, const struct rfl_box *b)
{
	const struct rfl_box *w = &p->within;

	return (struct cells){ cell_at(b->x, w->x, w->w), cell_at(b->x + b->w, w->x, w->w),
			       cell_at(b->y, w->y, w->h), cell_at(b->y + b->h, w->y, w->h) };
}

void rfl_place_add(struct rfl_place *p, enum rfl_obstacle kind, int owner, struct rfl_hull shape)
{
	const struct cells c = cells_of(p, &shape.box);
	const size_t n = (c.x1 - c.x0 + 1) * (c.y1 - c.y0 + 1);

	rfl_arena_reserve(p->scene->arena, &p->obstacles, &p->cap, p->n + 1);
	rfl_arena_reserve(p->scene->arena, &p->entries, &p->entries_cap, p->nentries + n);
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

				if ((o->kind & kinds) && boxes_meet(&o->shape.box, box) &&
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

	return (q->owner == RFL_NO_OWNER || q->owner != owner) && rfl_hull_meet(shape, q->shape);
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
