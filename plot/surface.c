/*
 * surface.c - the table of surfaces, drawing a scene on a surface, and the text record surface.
 */
#include "plot/surface.h"

#include <math.h>
#include <string.h>

#ifndef RFL_HAVE_CAIRO
#define NO_CAIRO "built without cairo (install libcairo2-dev, configure with -DRFL_CAIRO=ON)"

const struct rfl_surface_ops rfl_surface_png = {
	.name = "png",
	.summary = "raster image of any resolution",
	.missing = NO_CAIRO,
	.suffix = "png",
};

const struct rfl_surface_ops rfl_surface_pdf = {
	.name = "pdf",
	.summary = "scalable, with embedded fonts, for papers",
	.missing = NO_CAIRO,
	.suffix = "pdf",
};
#endif

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

int rfl_surface__dash(enum rfl_dash dash, double width, double lengths[4])
{
	/* in widths, and in points */
	static const double by_width[][4] = { [RFL_DASH_DASHED] = { 4.5, 2.5 },
					      [RFL_DASH_DOTTED] = { 1, 2.2 },
					      [RFL_DASH_MIXED] = { 7, 2.2, 1, 2.2 },
					      [RFL_DASH_SHORT] = { 2, 3.5 } };
	static const double more[][4] = { [RFL_DASH_DASHED] = { 1, 1.5 },
					  [RFL_DASH_DOTTED] = { 0, 1 },
					  [RFL_DASH_MIXED] = { 1, 1, 0, 1 },
					  [RFL_DASH_SHORT] = { 0.5, 1 } };

	for (int i = 0; i < 4; i++)
		lengths[i] = by_width[dash][i] * width + more[dash][i];
	return dash == RFL_DASH_SOLID ? 0 : dash == RFL_DASH_MIXED ? 4 : 2;
}

static void put(struct rfl_buf *out, double value)
{
	rfl_buf_putc(out, ' ');
	rfl_surface__number(out, value, 2);
}

static void put_color(struct rfl_buf *out, const char *what, struct rfl_color c)
{
	if (c.a == 255)
		rfl_buf_printf(out, " %s #%02x%02x%02x", what, c.r, c.g, c.b);
	else if (c.a != 0)
		rfl_buf_printf(out, " %s #%02x%02x%02x%02x", what, c.r, c.g, c.b, c.a);
}

static enum rfl_rc record_begin(struct rfl_surface *s, struct rfl_err *err)
{
	(void)err;
	rfl_buf_puts(s->out, "scene");
	put(s->out, s->scene->width);
	put(s->out, s->scene->height);
	rfl_buf_printf(s->out, " title \"%s\"\n", s->scene->title);
	return RFL_OK;
}

static void record_draw(struct rfl_surface *s, const struct rfl_prim *p)
{
	static const char *const kinds[] = { "line", "polygon", "rect", "marker", "text" };
	static const char *const shapes[] = { "circle",  "square",        "triangle",
					      "diamond", "triangle-down", "pentagon",
					      "plus",    "left",          "right" };
	static const char *const anchors[] = { "", " middle", " end" };
	static const char *const dashes[] = { "", " dashed", " dotted", " mixed", " short" };
	const struct rfl_prim_text *t = &p->at.text;
	struct rfl_buf *out = s->out;

	rfl_buf_puts(out, kinds[p->kind]);
	if (*p->id)
		rfl_buf_printf(out, " id=%s", p->id);
	if (p->kind == RFL_PRIM_MARKER)
		rfl_buf_printf(out, " %s", shapes[p->at.marker.shape]);
	for (size_t i = 0; i < rfl_prim_count(p->kind); i++)
		put(out, p->at.numbers[i]);
	for (size_t i = 0; p->kind == RFL_PRIM_POLYGON && i < p->at.polygon.n; i++) {
		put(out, p->at.polygon.points[i].x);
		put(out, p->at.polygon.points[i].y);
	}
	if (p->kind == RFL_PRIM_TEXT) {
		put(out, t->x);
		put(out, t->y);
		rfl_buf_puts(out, " size");
		put(out, t->size);
		rfl_buf_printf(out, "%s%s", t->face == RFL_FACE_BOLD ? " bold" : "",
			       anchors[t->anchor]);
		if (t->angle != 0) {
			rfl_buf_puts(out, " angle");
			put(out, t->angle * 180 / acos(-1));
		}
		put_color(out, "halo", t->halo);
		rfl_buf_printf(out, " \"%s\"", t->text);
	}
	put_color(out, "fill", p->fill);
	put_color(out, "stroke", p->stroke);
	if (p->stroke.a != 0) {
		rfl_buf_puts(out, " width");
		put(out, p->width);
		rfl_buf_puts(out, dashes[p->dash]);
	}
	if (*p->tip)
		rfl_buf_printf(out, " tip \"%s\"", p->tip);
	rfl_buf_putc(out, '\n');
}

static const struct rfl_surface_ops record = {
	.name = "record",
	.summary = "one line of text per primitive, for comparing figures",
	.suffix = "txt",
	.markers = true,
	.begin = record_begin,
	.draw = record_draw,
};

static const struct rfl_surface_ops *const surfaces[] = {
	&rfl_surface_png, &rfl_surface_pdf, &rfl_surface_svg, &rfl_surface_terminal, &record,
};

const char *const rfl_surface_formats[] = { "png", "pdf", "svg", "terminal", "record", NULL };

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
		rfl_fail(err, RFL_EUNAVAILABLE, 0, "format '%s': %s; or use --format svg", name,
			 ops->missing);
		return NULL;
	}
	rfl_fail(err, RFL_ENOTFOUND, 0,
		 "no figure format '%s'; list all with 'roofline list surfaces'", name);
	return NULL;
}

/* Whether all numbers of a primitive are finite and of a size that surfaces can handle. */
static bool is_drawable(const struct rfl_prim *p)
{
	const double most = 1e7;
	const struct rfl_prim_text *t = &p->at.text;
	bool ok = p->width >= 0 && p->width < most;

	for (size_t i = 0; i < rfl_prim_count(p->kind); i++)
		ok = ok && fabs(p->at.numbers[i]) < most;
	for (size_t i = 0; p->kind == RFL_PRIM_POLYGON && i < p->at.polygon.n; i++)
		ok = ok && fabs(p->at.polygon.points[i].x) < most &&
		     fabs(p->at.polygon.points[i].y) < most;
	switch (p->kind) {
	case RFL_PRIM_LINE:
		return ok;
	case RFL_PRIM_POLYGON:
		return ok && p->at.polygon.n > 0;
	case RFL_PRIM_RECT:
		return ok && p->at.rect.w >= 0 && p->at.rect.h >= 0;
	case RFL_PRIM_MARKER:
		return ok && p->at.marker.r >= 0;
	case RFL_PRIM_TEXT:
		return ok && fabs(t->x) < most && fabs(t->y) < most && t->size > 0 &&
		       t->size < 1000 && fabs(t->angle) < most && fabs(t->halo_width) < most;
	}
	return false;
}

enum rfl_rc rfl_surface_draw(const struct rfl_surface_ops *ops, const struct rfl_surface_spec *spec,
			     const struct rfl_scene *scene, struct rfl_buf *out,
			     struct rfl_err *err)
{
	struct rfl_surface s = { .ops = ops, .spec = spec, .scene = scene, .out = out };
	enum rfl_rc rc;

	if (ops->missing)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "format '%s': %s", ops->name,
				ops->missing);
	rc = ops->begin(&s, err);
	for (size_t i = 0; rc == RFL_OK && i < scene->n; i++) {
		const struct rfl_prim *p = &scene->prims[i];
		struct rfl_xy corners[RFL_MARKER_MAX_POINTS];
		struct rfl_prim outline;

		if (!is_drawable(p) || (p->kind == RFL_PRIM_TEXT && spec->no_text))
			continue;
		if (p->kind == RFL_PRIM_MARKER && p->at.marker.shape != RFL_MARKER_CIRCLE &&
		    !ops->markers) {
			size_t n = rfl_marker_outline(p->at.marker.shape, p->at.marker.r, corners);

			for (size_t k = 0; k < n; k++) {
				corners[k].x += p->at.marker.x;
				corners[k].y += p->at.marker.y;
			}
			outline = *p;
			outline.kind = RFL_PRIM_POLYGON;
			outline.at.polygon.points = corners;
			outline.at.polygon.n = n;
			p = &outline;
		}
		ops->draw(&s, p);
	}
	if (rc == RFL_OK && ops->finish)
		rc = ops->finish(&s, err);
	if (ops->close)
		ops->close(&s);
	return rc == RFL_OK ? rfl_buf_check(out, ops->name, err) : rc;
}
