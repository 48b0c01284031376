/*
 * scene.c - the list of primitives, and what they cover.
 */
#include "plot/scene.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

struct rfl_scene *rfl_scene_new(double width, double height)
{
	struct rfl_arena *arena = rfl_arena_new((size_t)64 << 20);
	struct rfl_scene *s = arena ? rfl_arena_array(arena, 1, sizeof(*s)) : NULL;

	if (!s) {
		rfl_arena_free(arena);
		return NULL;
	}
	s->arena = arena;
	s->width = width;
	s->height = height;
	s->title = "";
	s->paper = (struct rfl_color){ 255, 255, 255, 255 };
	/* A scratch primitive to begin with, so that add() always has one to return. */
	s->cap = 512;
	s->prims = rfl_scene_array(s, s->cap, sizeof(*s->prims));
	if (!s->prims) {
		rfl_scene_free(s);
		return NULL;
	}
	return s;
}

void rfl_scene_free(struct rfl_scene *s)
{
	if (s)
		rfl_arena_free(s->arena);
}

enum rfl_rc rfl_scene_check(const struct rfl_scene *s, struct rfl_err *err)
{
	if (s->failed)
		return rfl_fail(err, RFL_ENOMEM, 0, "the figure needs more memory than there is");
	return RFL_OK;
}

void *rfl_scene_array(struct rfl_scene *s, size_t n, size_t size)
{
	void *p = rfl_arena_array(s->arena, n, size);

	if (!p)
		s->failed = true;
	return p;
}

static struct rfl_prim *add(struct rfl_scene *s, enum rfl_prim_kind kind)
{
	struct rfl_prim *p;

	if (s->n == s->cap) {
		struct rfl_prim *more = rfl_scene_array(s, s->cap * 2, sizeof(*more));

		if (more) {
			memcpy(more, s->prims, s->n * sizeof(*more));
			s->prims = more;
			s->cap *= 2;
		}
	}
	if (s->n < s->cap)
		p = &s->prims[s->n++];
	else
		p = &s->prims[s->cap - 1]; /* failed: overwrite, nobody will draw it */
	*p = (struct rfl_prim){ .kind = kind, .id = "", .tip = "" };
	return p;
}

struct rfl_prim *rfl_scene_line(struct rfl_scene *s, double x0, double y0, double x1, double y1,
				struct rfl_color color, double width)
{
	struct rfl_prim *p = add(s, RFL_PRIM_LINE);

	p->at.line.x0 = x0;
	p->at.line.y0 = y0;
	p->at.line.x1 = x1;
	p->at.line.y1 = y1;
	p->stroke = color;
	p->width = width;
	return p;
}

struct rfl_prim *rfl_scene_polyline(struct rfl_scene *s, const struct rfl_xy *points, size_t n,
				    struct rfl_color color, double width)
{
	struct rfl_xy *copy = rfl_scene_array(s, n, sizeof(*copy));
	struct rfl_prim *p = add(s, RFL_PRIM_POLYLINE);

	if (copy) {
		memcpy(copy, points, n * sizeof(*copy));
		p->at.polyline.points = copy;
		p->at.polyline.n = n;
	}
	p->stroke = color;
	p->width = width;
	return p;
}

struct rfl_prim *rfl_scene_rect(struct rfl_scene *s, struct rfl_box box, struct rfl_color fill)
{
	struct rfl_prim *p = add(s, RFL_PRIM_RECT);

	p->at.rect = box;
	p->fill = fill;
	return p;
}

struct rfl_prim *rfl_scene_marker(struct rfl_scene *s, enum rfl_marker shape, double x, double y,
				  double r, struct rfl_color fill, struct rfl_color stroke,
				  double width)
{
	struct rfl_prim *p = add(s, RFL_PRIM_MARKER);

	p->at.marker.shape = shape;
	p->at.marker.x = x;
	p->at.marker.y = y;
	p->at.marker.r = r;
	p->fill = fill;
	p->stroke = stroke;
	p->width = width;
	return p;
}

struct rfl_prim *rfl_scene_text(struct rfl_scene *s, const char *text, double x, double y,
				double size, struct rfl_color color)
{
	const char *clean = rfl_scene_printf(s, "%s", text);
	struct rfl_prim *p = add(s, RFL_PRIM_TEXT);

	p->at.text.text = clean;
	p->at.text.x = x;
	p->at.text.y = y;
	p->at.text.size = size;
	p->fill = color;
	return p;
}

void rfl_scene_clip(struct rfl_scene *s, struct rfl_box box)
{
	struct rfl_prim *p = add(s, RFL_PRIM_CLIP);

	p->at.clip.box = box;
	p->at.clip.on = true;
}

void rfl_scene_unclip(struct rfl_scene *s)
{
	add(s, RFL_PRIM_CLIP);
}

const char *rfl_scene_printf(struct rfl_scene *s, const char *fmt, ...)
{
	va_list ap;
	int len;
	char *text;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	text = len < 0 ? NULL : rfl_scene_array(s, (size_t)len + 1, 1);
	if (!text) {
		s->failed = true;
		return "";
	}
	va_start(ap, fmt);
	vsnprintf(text, (size_t)len + 1, fmt, ap);
	va_end(ap);
	rfl_text_one_line(text); /* PDF and SVG refuse control characters */
	return text;
}

void rfl_prim_text_corners(const struct rfl_prim *p, struct rfl_xy corners[4])
{
	const struct rfl_prim_text *t = &p->at.text;
	double w = rfl_text_width(t->text, t->face, t->size);
	double x0 = t->anchor == RFL_ANCHOR_END ? -w : t->anchor == RFL_ANCHOR_MIDDLE ? -w / 2 : 0;
	const double u[4] = { x0, x0 + w, x0 + w, x0 };
	const double v[4] = { RFL_TEXT_DESCENT * t->size, RFL_TEXT_DESCENT * t->size,
			      -RFL_TEXT_ASCENT * t->size, -RFL_TEXT_ASCENT * t->size };
	double c = cos(t->angle), n = sin(t->angle);

	for (int i = 0; i < 4; i++) {
		corners[i].x = t->x + u[i] * c + v[i] * n;
		corners[i].y = t->y - u[i] * n + v[i] * c;
	}
}

static struct rfl_box around(const struct rfl_xy *points, size_t n)
{
	double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;

	if (n == 0)
		return (struct rfl_box){ 0, 0, 0, 0 };
	for (size_t i = 0; i < n; i++) {
		x0 = fmin(x0, points[i].x);
		x1 = fmax(x1, points[i].x);
		y0 = fmin(y0, points[i].y);
		y1 = fmax(y1, points[i].y);
	}
	return (struct rfl_box){ x0, y0, x1 - x0, y1 - y0 };
}

struct rfl_box rfl_prim_bounds(const struct rfl_prim *p)
{
	struct rfl_xy q[RFL_MARKER_MAX_POINTS];
	size_t n;

	switch (p->kind) {
	case RFL_PRIM_LINE:
		q[0] = (struct rfl_xy){ p->at.line.x0, p->at.line.y0 };
		q[1] = (struct rfl_xy){ p->at.line.x1, p->at.line.y1 };
		return around(q, 2);
	case RFL_PRIM_POLYLINE:
		return around(p->at.polyline.points, p->at.polyline.n);
	case RFL_PRIM_RECT:
		return p->at.rect;
	case RFL_PRIM_MARKER:
		n = rfl_marker_outline(p->at.marker.shape, p->at.marker.r, q);
		if (n == 0) {
			q[0] = (struct rfl_xy){ -p->at.marker.r, -p->at.marker.r };
			q[1] = (struct rfl_xy){ p->at.marker.r, p->at.marker.r };
			n = 2;
		}
		for (size_t i = 0; i < n; i++) {
			q[i].x += p->at.marker.x;
			q[i].y += p->at.marker.y;
		}
		return around(q, n);
	case RFL_PRIM_TEXT:
		rfl_prim_text_corners(p, q);
		return around(q, 4);
	case RFL_PRIM_CLIP:
		break;
	}
	return (struct rfl_box){ 0, 0, 0, 0 };
}

size_t rfl_marker_outline(enum rfl_marker shape, double r, struct rfl_xy out[RFL_MARKER_MAX_POINTS])
{
	/* Corners in units of r, scaled so that the areas are near that of the circle. */
	static const struct {
		size_t n;
		struct rfl_xy at[RFL_MARKER_MAX_POINTS];
	} shapes[] = {
		[RFL_MARKER_SQUARE] = { 4,
					{ { -.89, -.89 },
					  { .89, -.89 },
					  { .89, .89 },
					  { -.89, .89 } } },
		[RFL_MARKER_TRIANGLE] = { 3, { { 0, -1.25 }, { 1.2, .83 }, { -1.2, .83 } } },
		[RFL_MARKER_DIAMOND] = { 4,
					 { { 0, -1.25 }, { 1.25, 0 }, { 0, 1.25 }, { -1.25, 0 } } },
		[RFL_MARKER_TRIANGLE_DOWN] = { 3, { { 0, 1.25 }, { -1.2, -.83 }, { 1.2, -.83 } } },
		[RFL_MARKER_PENTAGON] = { 5,
					  { { 0, -1.14 },
					    { 1.084, -.352 },
					    { .67, .922 },
					    { -.67, .922 },
					    { -1.084, -.352 } } },
		[RFL_MARKER_PLUS] = { 12,
				      { { -.42, -1.15 },
					{ .42, -1.15 },
					{ .42, -.42 },
					{ 1.15, -.42 },
					{ 1.15, .42 },
					{ .42, .42 },
					{ .42, 1.15 },
					{ -.42, 1.15 },
					{ -.42, .42 },
					{ -1.15, .42 },
					{ -1.15, -.42 },
					{ -.42, -.42 } } },
		[RFL_MARKER_LEFT] = { 3, { { -1.25, 0 }, { .83, -1.2 }, { .83, 1.2 } } },
		[RFL_MARKER_RIGHT] = { 3, { { 1.25, 0 }, { -.83, -1.2 }, { -.83, 1.2 } } },
	};

	if (shape == RFL_MARKER_CIRCLE)
		return 0;
	for (size_t i = 0; i < shapes[shape].n; i++) {
		out[i].x = shapes[shape].at[i].x * r;
		out[i].y = shapes[shape].at[i].y * r;
	}
	return shapes[shape].n;
}
