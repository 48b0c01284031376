/*
 * surface.c - the table of surfaces, the replay of a scene, and stand-ins for what a surface
 * cannot do by itself.
 */
#include "plot/surface.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "plot/surface_impl.h"

static const struct rfl_surface_ops *const surfaces[] = {
	&rfl_surface_png,
	&rfl_surface_pdf,
	&rfl_surface_svg,
	&rfl_surface_record,
};

const char *const rfl_surface_formats[] = { "png", "pdf", "svg", "record", NULL };

const struct rfl_surface_ops *rfl_surface_at(size_t i)
{
	return i < RFL_ARRAY_LEN(surfaces) ? surfaces[i] : NULL;
}

const struct rfl_surface_ops *rfl_surface_find(const char *name, struct rfl_err *err)
{
	const struct rfl_surface_ops *ops;

	for (size_t i = 0; (ops = rfl_surface_at(i)); i++) {
		if (strcmp(name, ops->name) != 0)
			continue;
		if (!ops->missing)
			return ops;
		rfl_fail(err, RFL_EUNAVAILABLE, 0, "format '%s': %s; --format svg works without it",
			 name, ops->missing);
		return NULL;
	}
	rfl_fail(err, RFL_ENOTFOUND, 0, "no figure format '%s'; 'roofline list surfaces' names all",
		 name);
	return NULL;
}

/* A marker for surfaces that know circles only: its outline, as a closed polyline. */
static void draw_outline(const struct rfl_surface_ops *ops, struct rfl_surface *s,
			 const struct rfl_prim *p)
{
	struct rfl_xy corners[RFL_MARKER_MAX_POINTS];
	struct rfl_prim outline = *p;
	size_t n = rfl_marker_outline(p->at.marker.shape, p->at.marker.r, corners);

	for (size_t i = 0; i < n; i++) {
		corners[i].x += p->at.marker.x;
		corners[i].y += p->at.marker.y;
	}
	outline.kind = RFL_PRIM_POLYLINE;
	outline.at.polyline.points = corners;
	outline.at.polyline.n = n;
	outline.at.polyline.closed = true;
	ops->polyline(s, &outline);
}

static void draw_one(const struct rfl_surface_ops *ops, struct rfl_surface *s,
		     const struct rfl_prim *p, bool no_text)
{
	switch (p->kind) {
	case RFL_PRIM_LINE:
		ops->line(s, p);
		break;
	case RFL_PRIM_POLYLINE:
		ops->polyline(s, p);
		break;
	case RFL_PRIM_RECT:
		ops->rect(s, p);
		break;
	case RFL_PRIM_MARKER:
		if (p->at.marker.shape == RFL_MARKER_CIRCLE || (ops->caps & RFL_SURFACE_SHAPES))
			ops->marker(s, p);
		else
			draw_outline(ops, s, p);
		break;
	case RFL_PRIM_TEXT:
		if (!no_text)
			ops->text(s, p);
		break;
	case RFL_PRIM_CLIP:
		ops->clip(s, p);
		break;
	}
}

enum rfl_rc rfl_surface_draw(const struct rfl_surface_ops *ops, const struct rfl_surface_spec *spec,
			     const struct rfl_scene *scene, struct rfl_buf *out,
			     struct rfl_err *err)
{
	struct rfl_surface *s = NULL;
	enum rfl_rc rc;

	if (ops->missing)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "format '%s': %s", ops->name,
				ops->missing);
	rc = rfl_scene_check(scene, err);
	if (rc != RFL_OK)
		return rc;
	rc = ops->open(spec, scene, out, &s, err);
	if (rc != RFL_OK)
		return rc;
	for (size_t i = 0; i < scene->n; i++)
		draw_one(ops, s, &scene->prims[i], spec->no_text);
	rc = ops->finish(s, err);
	ops->close(s);
	return rc;
}

void rfl_surface__number(struct rfl_buf *out, double value, int digits)
{
	static const long long scales[] = { 1, 10, 100, 1000, 10000 };
	long long scale = scales[digits];
	long long v = llround(value * (double)scale);
	unsigned long long u = v < 0 ? 0ULL - (unsigned long long)v : (unsigned long long)v;
	unsigned long long part = u % (unsigned long long)scale;

	if (v < 0)
		rfl_buf_putc(out, '-');
	rfl_buf_printf(out, "%llu", u / (unsigned long long)scale);
	while (digits > 0 && part > 0 && part % 10 == 0) {
		part /= 10;
		digits--;
	}
	if (part > 0)
		rfl_buf_printf(out, ".%0*llu", digits, part);
}

bool rfl_surface__dash(enum rfl_dash dash, double width, double lengths[2])
{
	if (dash == RFL_DASH_SOLID)
		return false;
	lengths[0] = dash == RFL_DASH_DASHED ? 4.5 * width + 1 : width;
	lengths[1] = dash == RFL_DASH_DASHED ? 2.5 * width + 1.5 : 2.2 * width + 1;
	return true;
}
