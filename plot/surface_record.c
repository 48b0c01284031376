/*
 * surface_record.c - the scene as text, one primitive a line: what tests compare.
 */
#include <math.h>

#include "plot/surface.h"

static void number(struct rfl_buf *out, double value)
{
	rfl_buf_putc(out, ' ');
	rfl_surface__number(out, value, 2);
}

static void numbers(struct rfl_buf *out, double a, double b, double c, double d)
{
	number(out, a);
	number(out, b);
	number(out, c);
	number(out, d);
}

static void color(struct rfl_buf *out, const char *what, struct rfl_color c)
{
	if (c.a == 255)
		rfl_buf_printf(out, " %s #%02x%02x%02x", what, c.r, c.g, c.b);
	else if (c.a != 0)
		rfl_buf_printf(out, " %s #%02x%02x%02x%02x", what, c.r, c.g, c.b, c.a);
}

static enum rfl_rc record_begin(struct rfl_surface *s, const struct rfl_surface_spec *spec,
				const struct rfl_scene *scene, struct rfl_err *err)
{
	(void)spec;
	(void)err;
	rfl_buf_puts(s->out, "scene");
	number(s->out, scene->width);
	number(s->out, scene->height);
	rfl_buf_printf(s->out, " title \"%s\"\n", scene->title);
	return RFL_OK;
}

static void record_draw(struct rfl_surface *s, const struct rfl_prim *p)
{
	static const char *const kinds[] = { "line", "polyline", "rect", "marker", "text" };
	static const char *const shapes[] = { "circle",  "square",        "triangle",
					      "diamond", "triangle-down", "pentagon",
					      "plus",    "left",          "right" };
	static const char *const anchors[] = { "", " middle", " end" };
	static const char *const dashes[] = { "", " dashed", " dotted" };
	const bool polygon = p->kind == RFL_PRIM_POLYLINE && p->at.polyline.closed;
	const struct rfl_prim_text *t = &p->at.text;
	const struct rfl_box *b = &p->at.rect;
	struct rfl_buf *out = s->out;

	rfl_buf_puts(out, polygon ? "polygon" : kinds[p->kind]);
	if (*p->id)
		rfl_buf_printf(out, " id=%s", p->id);
	switch (p->kind) {
	case RFL_PRIM_LINE:
		numbers(out, p->at.line.x0, p->at.line.y0, p->at.line.x1, p->at.line.y1);
		break;
	case RFL_PRIM_POLYLINE:
		for (size_t i = 0; i < p->at.polyline.n; i++) {
			number(out, p->at.polyline.points[i].x);
			number(out, p->at.polyline.points[i].y);
		}
		break;
	case RFL_PRIM_RECT:
		numbers(out, b->x, b->y, b->w, b->h);
		break;
	case RFL_PRIM_MARKER:
		rfl_buf_printf(out, " %s", shapes[p->at.marker.shape]);
		number(out, p->at.marker.x);
		number(out, p->at.marker.y);
		number(out, p->at.marker.r);
		break;
	case RFL_PRIM_TEXT:
		number(out, t->x);
		number(out, t->y);
		rfl_buf_puts(out, " size");
		number(out, t->size);
		rfl_buf_printf(out, "%s%s", t->face == RFL_FACE_BOLD ? " bold" : "",
			       anchors[t->anchor]);
		if (t->angle != 0) {
			rfl_buf_puts(out, " angle");
			number(out, t->angle * 180 / acos(-1));
		}
		color(out, "halo", t->halo);
		rfl_buf_printf(out, " \"%s\"", t->text);
		break;
	}
	color(out, "fill", p->fill);
	color(out, "stroke", p->stroke);
	if (p->stroke.a != 0) {
		rfl_buf_puts(out, " width");
		number(out, p->width);
		rfl_buf_puts(out, dashes[p->dash]);
	}
	if (*p->tip)
		rfl_buf_printf(out, " tip \"%s\"", p->tip);
	rfl_buf_putc(out, '\n');
}

const struct rfl_surface_ops rfl_surface_record = {
	.name = "record",
	.summary = "every primitive as a line of text, to compare figures",
	.suffix = "txt",
	.markers = true,
	.begin = record_begin,
	.draw = record_draw,
};
