/*
 * surface_record.c - the scene as text, one primitive a line: what tests compare.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "plot/surface_impl.h"

static const char *const shape_names[] = { "circle",  "square",        "triangle",
					   "diamond", "triangle-down", "pentagon",
					   "plus",    "left",          "right" };

static enum rfl_rc record_probe(const struct rfl_surface_spec *spec, struct rfl_err *err)
{
	(void)spec;
	(void)err;
	return RFL_OK;
}

static void number(struct rfl_surface *s, double value)
{
	rfl_buf_putc(s->out, ' ');
	rfl_surface__number(s->out, value, 2);
}

static void color(struct rfl_surface *s, const char *what, struct rfl_color c)
{
	if (c.a == 255)
		rfl_buf_printf(s->out, " %s #%02x%02x%02x", what, c.r, c.g, c.b);
	else if (c.a != 0)
		rfl_buf_printf(s->out, " %s #%02x%02x%02x%02x", what, c.r, c.g, c.b, c.a);
}

static void begin(struct rfl_surface *s, const char *kind, const struct rfl_prim *p)
{
	assert(s->ops == &rfl_surface_record);
	rfl_buf_puts(s->out, kind);
	if (*p->id)
		rfl_buf_printf(s->out, " id=%s", p->id);
}

static void end(struct rfl_surface *s, const struct rfl_prim *p)
{
	static const char *const dashes[] = { "", " dashed", " dotted" };

	color(s, "fill", p->fill);
	color(s, "stroke", p->stroke);
	if (p->stroke.a != 0) {
		rfl_buf_puts(s->out, " width");
		number(s, p->width);
		rfl_buf_puts(s->out, dashes[p->dash]);
	}
	if (*p->tip)
		rfl_buf_printf(s->out, " tip \"%s\"", p->tip);
	rfl_buf_putc(s->out, '\n');
}

static enum rfl_rc record_open(const struct rfl_surface_spec *spec, const struct rfl_scene *scene,
			       struct rfl_buf *out, struct rfl_surface **ret, struct rfl_err *err)
{
	struct rfl_surface *s = calloc(1, sizeof(*s));

	(void)spec;
	if (!s)
		return rfl_fail(err, RFL_ENOMEM, 0, "no memory for a record");
	s->ops = &rfl_surface_record;
	s->out = out;
	rfl_buf_puts(out, "scene");
	number(s, scene->width);
	number(s, scene->height);
	rfl_buf_printf(out, " title \"%s\"\n", scene->title);
	*ret = s;
	return RFL_OK;
}

static void record_line(struct rfl_surface *s, const struct rfl_prim *p)
{
	begin(s, "line", p);
	number(s, p->at.line.x0);
	number(s, p->at.line.y0);
	number(s, p->at.line.x1);
	number(s, p->at.line.y1);
	end(s, p);
}

static void record_polyline(struct rfl_surface *s, const struct rfl_prim *p)
{
	begin(s, p->at.polyline.closed ? "polygon" : "polyline", p);
	for (size_t i = 0; i < p->at.polyline.n; i++) {
		number(s, p->at.polyline.points[i].x);
		number(s, p->at.polyline.points[i].y);
	}
	end(s, p);
}

static void record_rect(struct rfl_surface *s, const struct rfl_prim *p)
{
	begin(s, "rect", p);
	number(s, p->at.rect.x);
	number(s, p->at.rect.y);
	number(s, p->at.rect.w);
	number(s, p->at.rect.h);
	end(s, p);
}

static void record_marker(struct rfl_surface *s, const struct rfl_prim *p)
{
	begin(s, "marker", p);
	rfl_buf_printf(s->out, " %s", shape_names[p->at.marker.shape]);
	number(s, p->at.marker.x);
	number(s, p->at.marker.y);
	number(s, p->at.marker.r);
	end(s, p);
}

static void record_text(struct rfl_surface *s, const struct rfl_prim *p)
{
	static const char *const anchors[] = { "", " middle", " end" };
	const struct rfl_prim_text *t = &p->at.text;

	begin(s, "text", p);
	number(s, t->x);
	number(s, t->y);
	rfl_buf_puts(s->out, " size");
	number(s, t->size);
	rfl_buf_printf(s->out, "%s%s", t->face == RFL_FACE_BOLD ? " bold" : "", anchors[t->anchor]);
	if (t->angle != 0) {
		rfl_buf_puts(s->out, " angle");
		number(s, t->angle * 180 / acos(-1));
	}
	color(s, "halo", t->halo);
	rfl_buf_printf(s->out, " \"%s\"", t->text);
	end(s, p);
}

static void record_clip(struct rfl_surface *s, const struct rfl_prim *p)
{
	if (!p->at.clip.on) {
		rfl_buf_puts(s->out, "unclip\n");
		return;
	}
	begin(s, "clip", p);
	number(s, p->at.clip.box.x);
	number(s, p->at.clip.box.y);
	number(s, p->at.clip.box.w);
	number(s, p->at.clip.box.h);
	end(s, p);
}

static enum rfl_rc record_finish(struct rfl_surface *s, struct rfl_err *err)
{
	return rfl_buf_check(s->out, "record", err);
}

static void record_close(struct rfl_surface *s)
{
	free(s);
}

const struct rfl_surface_ops rfl_surface_record = {
	.name = "record",
	.summary = "every primitive as a line of text, to compare figures",
	.suffix = "txt",
	.caps = RFL_SURFACE_SHAPES | RFL_SURFACE_TIPS,
	.probe = record_probe,
	.open = record_open,
	.line = record_line,
	.polyline = record_polyline,
	.rect = record_rect,
	.marker = record_marker,
	.text = record_text,
	.clip = record_clip,
	.finish = record_finish,
	.close = record_close,
};
