/*
 * surface_svg.c - SVG written directly, without a library: text that can be searched and edited,
 * stable ids, tooltips as <title>.
 */
#include <math.h>
#include <string.h>

#include "plot/surface.h"
#include "plot/surface_data.h"

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

/* Append two numbers with a separator between them. */
static void pair(struct rfl_buf *out, double a, char separator, double b)
{
	rfl_surface__number(out, a, 2);
	rfl_buf_putc(out, separator);
	rfl_surface__number(out, b, 2);
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

static enum rfl_rc svg_begin(struct rfl_surface *s, struct rfl_err *err)
{
	const struct rfl_scene *scene = s->scene;
	struct rfl_buf *out = s->out;

	(void)err;
	rfl_buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			  "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"");
	rfl_surface__number(out, scene->width, 2);
	rfl_buf_puts(out, "pt\" height=\"");
	rfl_surface__number(out, scene->height, 2);
	rfl_buf_puts(out, "pt\" viewBox=\"0 0 ");
	pair(out, scene->width, ' ', scene->height);
	rfl_buf_puts(out, "\" font-family=\"'Liberation Sans', Arial, Helvetica, sans-serif\""
			  " style=\"font-kerning:none\" role=\"img\">\n<title>");
	escape(out, scene->title);
	if (*scene->caption) {
		rfl_buf_puts(out, "</title>\n<desc>");
		escape(out, scene->caption);
	}
	rfl_buf_printf(out, "</%s>\n", *scene->caption ? "desc" : "title");
	if (scene->data) {
		rfl_buf_puts(out, "<metadata id=\"" RFL_DATA_SVG_ID "\"><![CDATA[");
		for (const char *text = scene->data, *end; *text; text = end) {
			/* "]]>" ends a section: begin another one before the '>' */
			end = strstr(text, "]]>");
			end = end ? end + 2 : text + strlen(text);
			rfl_buf_append(out, text, (size_t)(end - text));
			rfl_buf_puts(out, *end ? "]]><![CDATA[" : "");
		}
		rfl_buf_puts(out, "]]></metadata>\n");
	}
	rfl_buf_puts(out, "<rect id=\"paper\" width=\"100%\" height=\"100%\"");
	color(out, "fill", scene->paper);
	rfl_buf_puts(out, "/>\n");
	return RFL_OK;
}

/* Append the attributes of a text, and the text. */
static void text(struct rfl_buf *out, const struct rfl_prim *p)
{
	static const char *const anchors[] = { NULL, "middle", "end" };
	const struct rfl_prim_text *t = &p->at.text;

	number(out, "x", t->x);
	number(out, "y", t->y);
	number(out, "font-size", t->size);
	if (t->face == RFL_FACE_BOLD)
		rfl_buf_puts(out, " font-weight=\"bold\"");
	if (anchors[t->anchor])
		rfl_buf_printf(out, " text-anchor=\"%s\"", anchors[t->anchor]);
	if (t->angle != 0) {
		rfl_buf_puts(out, " transform=\"rotate(");
		rfl_surface__number(out, -t->angle * 180 / acos(-1), 3);
		rfl_buf_putc(out, ' ');
		pair(out, t->x, ' ', t->y);
		rfl_buf_puts(out, ")\"");
	}
	color(out, "fill", p->fill);
	if (t->halo.a != 0) {
		color(out, "stroke", t->halo);
		number(out, "stroke-width", t->halo_width);
		rfl_buf_puts(out, " stroke-linejoin=\"round\" paint-order=\"stroke\"");
	}
	rfl_buf_putc(out, '>');
	escape(out, t->text);
	rfl_buf_puts(out, "</text>\n");
}

static void svg_draw(struct rfl_surface *s, const struct rfl_prim *p)
{
	static const char *const elements[] = { "line", "polygon", "rect", "circle", "text" };
	static const char *const names[][4] = {
		[RFL_PRIM_LINE] = { "x1", "y1", "x2", "y2" },
		[RFL_PRIM_RECT] = { "x", "y", "width", "height" },
		[RFL_PRIM_MARKER] = { "cx", "cy", "r" },
	};
	const char *element = elements[p->kind];
	struct rfl_buf *out = s->out;
	double dash[4];
	int dashes;

	rfl_buf_printf(out, "<%s", element);
	if (*p->id) {
		rfl_buf_puts(out, " id=\"");
		escape(out, p->id);
		rfl_buf_putc(out, '"');
	}
	if (p->kind == RFL_PRIM_TEXT) {
		text(out, p);
		return;
	}
	for (size_t i = 0; i < rfl_prim_count(p->kind); i++)
		number(out, names[p->kind][i], p->at.numbers[i]);
	if (p->kind == RFL_PRIM_POLYGON) {
		rfl_buf_puts(out, " points=\"");
		for (size_t i = 0; i < p->at.polygon.n; i++) {
			if (i > 0)
				rfl_buf_putc(out, ' ');
			pair(out, p->at.polygon.points[i].x, ',', p->at.polygon.points[i].y);
		}
		rfl_buf_puts(out, "\" stroke-linejoin=\"round\"");
	}
	if (p->kind != RFL_PRIM_LINE)
		color(out, "fill", p->fill);
	if (p->stroke.a != 0) {
		color(out, "stroke", p->stroke);
		number(out, "stroke-width", p->width);
	}
	dashes = p->stroke.a != 0 ? rfl_surface__dash(p->dash, p->width, dash) : 0;
	for (int i = 0; i < dashes; i += 2) {
		rfl_buf_puts(out, i ? " " : " stroke-dasharray=\"");
		pair(out, dash[i], ' ', dash[i + 1]);
	}
	rfl_buf_puts(out, dashes ? "\"" : "");
	if (*p->tip) {
		rfl_buf_puts(out, "><title>");
		escape(out, p->tip);
		rfl_buf_printf(out, "</title></%s>\n", element);
	} else {
		rfl_buf_puts(out, "/>\n");
	}
}

static enum rfl_rc svg_finish(struct rfl_surface *s, struct rfl_err *err)
{
	(void)err;
	rfl_buf_puts(s->out, "</svg>\n");
	return RFL_OK;
}

const struct rfl_surface_ops rfl_surface_svg = {
	.name = "svg",
	.summary = "scalable, with searchable text and values as tooltips",
	.suffix = "svg",
	.begin = svg_begin,
	.draw = svg_draw,
	.finish = svg_finish,
};
