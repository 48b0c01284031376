/*
 * surface_svg.c - SVG written by hand: real text that can be searched and edited, stable ids,
 * tips as <title>, no library.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "plot/surface_impl.h"

struct svg {
	struct rfl_surface base;
	int clips;    /* made so far: their ids */
	bool clipped; /* a group with a clip is open */
};

static struct svg *svg_of(struct rfl_surface *s)
{
	assert(s->ops == &rfl_surface_svg);
	return (struct svg *)s;
}

static enum rfl_rc svg_probe(const struct rfl_surface_spec *spec, struct rfl_err *err)
{
	(void)spec;
	(void)err;
	return RFL_OK;
}

static void escape(struct rfl_buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			rfl_buf_puts(out, "&amp;");
		else if (*text == '<')
			rfl_buf_puts(out, "&lt;");
		else if (*text == '>')
			rfl_buf_puts(out, "&gt;");
		else if (*text == '"')
			rfl_buf_puts(out, "&quot;");
		else
			rfl_buf_putc(out, *text);
	}
}

static void number(struct rfl_buf *out, const char *name, double value)
{
	rfl_buf_printf(out, " %s=\"", name);
	rfl_surface__number(out, value, 2);
	rfl_buf_putc(out, '"');
}

static void color(struct rfl_buf *out, const char *name, struct rfl_color c)
{
	if (c.a == 0) {
		rfl_buf_printf(out, " %s=\"none\"", name);
		return;
	}
	rfl_buf_printf(out, " %s=\"#%02x%02x%02x\"", name, c.r, c.g, c.b);
	if (c.a != 255) {
		rfl_buf_printf(out, " %s-opacity=\"", name);
		rfl_surface__number(out, c.a / 255.0, 3);
		rfl_buf_putc(out, '"');
	}
}

static void begin(struct rfl_surface *s, const char *element, const struct rfl_prim *p)
{
	(void)svg_of(s);
	rfl_buf_printf(s->out, "<%s", element);
	if (*p->id) {
		rfl_buf_puts(s->out, " id=\"");
		escape(s->out, p->id);
		rfl_buf_putc(s->out, '"');
	}
}

static void stroke(struct rfl_surface *s, const struct rfl_prim *p)
{
	double lengths[2];

	if (p->stroke.a == 0)
		return;
	color(s->out, "stroke", p->stroke);
	number(s->out, "stroke-width", p->width);
	if (rfl_surface__dash(p->dash, p->width, lengths)) {
		rfl_buf_puts(s->out, " stroke-dasharray=\"");
		rfl_surface__number(s->out, lengths[0], 2);
		rfl_buf_putc(s->out, ' ');
		rfl_surface__number(s->out, lengths[1], 2);
		rfl_buf_putc(s->out, '"');
	}
}

static void end(struct rfl_surface *s, const char *element, const struct rfl_prim *p)
{
	if (!*p->tip) {
		rfl_buf_puts(s->out, "/>\n");
		return;
	}
	rfl_buf_puts(s->out, "><title>");
	escape(s->out, p->tip);
	rfl_buf_printf(s->out, "</title></%s>\n", element);
}

static enum rfl_rc svg_open(const struct rfl_surface_spec *spec, const struct rfl_scene *scene,
			    struct rfl_buf *out, struct rfl_surface **ret, struct rfl_err *err)
{
	struct svg *svg = calloc(1, sizeof(*svg));

	(void)spec;
	if (!svg)
		return rfl_fail(err, RFL_ENOMEM, 0, "no memory for an SVG");
	svg->base.ops = &rfl_surface_svg;
	svg->base.out = out;
	rfl_buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			  "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\"");
	rfl_buf_puts(out, " width=\"");
	rfl_surface__number(out, scene->width, 2);
	rfl_buf_puts(out, "pt\" height=\"");
	rfl_surface__number(out, scene->height, 2);
	rfl_buf_puts(out, "pt\" viewBox=\"0 0 ");
	rfl_surface__number(out, scene->width, 2);
	rfl_buf_putc(out, ' ');
	rfl_surface__number(out, scene->height, 2);
	rfl_buf_puts(out, "\" font-family=\"'Liberation Sans', Arial, Helvetica, sans-serif\""
			  " style=\"font-kerning:none\" role=\"img\">\n<title>");
	escape(out, scene->title);
	rfl_buf_puts(out, "</title>\n<rect id=\"paper\" width=\"100%\" height=\"100%\"");
	color(out, "fill", scene->paper);
	rfl_buf_puts(out, "/>\n");
	*ret = &svg->base;
	return RFL_OK;
}

static void svg_line(struct rfl_surface *s, const struct rfl_prim *p)
{
	begin(s, "line", p);
	number(s->out, "x1", p->at.line.x0);
	number(s->out, "y1", p->at.line.y0);
	number(s->out, "x2", p->at.line.x1);
	number(s->out, "y2", p->at.line.y1);
	stroke(s, p);
	end(s, "line", p);
}

static void svg_polyline(struct rfl_surface *s, const struct rfl_prim *p)
{
	const char *element = p->at.polyline.closed ? "polygon" : "polyline";

	begin(s, element, p);
	rfl_buf_puts(s->out, " points=\"");
	for (size_t i = 0; i < p->at.polyline.n; i++) {
		if (i > 0)
			rfl_buf_putc(s->out, ' ');
		rfl_surface__number(s->out, p->at.polyline.points[i].x, 2);
		rfl_buf_putc(s->out, ',');
		rfl_surface__number(s->out, p->at.polyline.points[i].y, 2);
	}
	rfl_buf_puts(s->out, "\" stroke-linejoin=\"round\"");
	color(s->out, "fill", p->fill);
	stroke(s, p);
	end(s, element, p);
}

static void svg_rect(struct rfl_surface *s, const struct rfl_prim *p)
{
	begin(s, "rect", p);
	number(s->out, "x", p->at.rect.x);
	number(s->out, "y", p->at.rect.y);
	number(s->out, "width", p->at.rect.w);
	number(s->out, "height", p->at.rect.h);
	color(s->out, "fill", p->fill);
	stroke(s, p);
	end(s, "rect", p);
}

static void svg_marker(struct rfl_surface *s, const struct rfl_prim *p)
{
	begin(s, "circle", p);
	number(s->out, "cx", p->at.marker.x);
	number(s->out, "cy", p->at.marker.y);
	number(s->out, "r", p->at.marker.r);
	color(s->out, "fill", p->fill);
	stroke(s, p);
	end(s, "circle", p);
}

static void svg_text(struct rfl_surface *s, const struct rfl_prim *p)
{
	static const char *const anchors[] = { NULL, "middle", "end" };
	const struct rfl_prim_text *t = &p->at.text;

	begin(s, "text", p);
	number(s->out, "x", t->x);
	number(s->out, "y", t->y);
	number(s->out, "font-size", t->size);
	if (t->face == RFL_FACE_BOLD)
		rfl_buf_puts(s->out, " font-weight=\"bold\"");
	if (anchors[t->anchor])
		rfl_buf_printf(s->out, " text-anchor=\"%s\"", anchors[t->anchor]);
	if (t->angle != 0) {
		rfl_buf_puts(s->out, " transform=\"rotate(");
		rfl_surface__number(s->out, -t->angle * 180 / acos(-1), 3);
		rfl_buf_putc(s->out, ' ');
		rfl_surface__number(s->out, t->x, 2);
		rfl_buf_putc(s->out, ' ');
		rfl_surface__number(s->out, t->y, 2);
		rfl_buf_puts(s->out, ")\"");
	}
	color(s->out, "fill", p->fill);
	if (t->halo.a != 0) {
		color(s->out, "stroke", t->halo);
		number(s->out, "stroke-width", t->halo_width);
		rfl_buf_puts(s->out, " stroke-linejoin=\"round\" paint-order=\"stroke\"");
	}
	rfl_buf_putc(s->out, '>');
	escape(s->out, t->text);
	rfl_buf_puts(s->out, "</text>\n");
}

static void svg_unclip(struct svg *svg)
{
	if (svg->clipped)
		rfl_buf_puts(svg->base.out, "</g>\n");
	svg->clipped = false;
}

static void svg_clip(struct rfl_surface *s, const struct rfl_prim *p)
{
	struct svg *svg = svg_of(s);

	svg_unclip(svg);
	if (!p->at.clip.on)
		return;
	rfl_buf_printf(s->out, "<clipPath id=\"clip-%d\"><rect", ++svg->clips);
	number(s->out, "x", p->at.clip.box.x);
	number(s->out, "y", p->at.clip.box.y);
	number(s->out, "width", p->at.clip.box.w);
	number(s->out, "height", p->at.clip.box.h);
	rfl_buf_printf(s->out, "/></clipPath>\n<g clip-path=\"url(#clip-%d)\">\n", svg->clips);
	svg->clipped = true;
}

static enum rfl_rc svg_finish(struct rfl_surface *s, struct rfl_err *err)
{
	svg_unclip(svg_of(s));
	rfl_buf_puts(s->out, "</svg>\n");
	return rfl_buf_check(s->out, "SVG", err);
}

static void svg_close(struct rfl_surface *s)
{
	free(svg_of(s));
}

const struct rfl_surface_ops rfl_surface_svg = {
	.name = "svg",
	.summary = "scalable, text stays text, shows values under the pointer",
	.suffix = "svg",
	.caps = RFL_SURFACE_VECTOR | RFL_SURFACE_SELECTABLE | RFL_SURFACE_TIPS,
	.probe = svg_probe,
	.open = svg_open,
	.line = svg_line,
	.polyline = svg_polyline,
	.rect = svg_rect,
	.marker = svg_marker,
	.text = svg_text,
	.clip = svg_clip,
	.finish = svg_finish,
	.close = svg_close,
};
