/* scene.c - text metrics, the list of primitives, and their outlines. */
#include "plot/scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/text.h"
#include "plot/font_widths.inc"

const char *const rfl_face_files[RFL_FACE_COUNT] = {
	[RFL_FACE_REGULAR] = "LiberationSans-Regular.ttf",
	[RFL_FACE_BOLD] = "LiberationSans-Bold.ttf",
};

size_t rfl_text_decode(const char *text, size_t left, uint32_t *code)
{
	const size_t n = rfl_text_utf8(text, left);

	*code = (unsigned char)*text & (n > 1 ? 0x7fU >> n : 0xffU);
	for (size_t i = 1; i < n; i++)
		*code = *code << 6 | ((unsigned char)text[i] & 0x3fU);
	return n;
}

double rfl_text_width(const char *text, enum rfl_face face, double size)
{
	const uint16_t *widths = face == RFL_FACE_BOLD ? bold : regular;
	const int missing = face == RFL_FACE_BOLD ? bold_missing : regular_missing;
	long units = 0;

	for (size_t left = strlen(text), n; left > 0; left -= n, text += n) {
		const uint16_t *first = widths; /* widths of a range */
		long width = missing;           /* width of the box drawn for invalid UTF-8 */
		uint32_t code;

		n = rfl_text_decode(text, left, &code);
		for (size_t i = 0; n > 0 && i < RFL_ARRAY_LEN(ranges); i++) {
			if (code >= ranges[i].first && code <= ranges[i].last) {
				width = first[code - ranges[i].first];
				break;
			}
			first += ranges[i].last - ranges[i].first + 1;
		}
		n = n > 0 ? n : 1;
		units += width;
	}
	return (double)units * size / 2048;
}

size_t rfl_text_line(const char *text, enum rfl_face face, double size, double width)
{
	size_t blank = 0, len = 0;
	double used = 0;

	while (text[len]) {
		size_t n = rfl_text_utf8(text + len, strlen(text + len));
		char one[5] = "";

		n = n ? n : 1;
		memcpy(one, text + len, n);
		used += rfl_text_width(one, face, size);
		if (text[len] == ' ' && len > 0 && text[len - 1] != ' ')
			blank = len;
		if (used > width && len > 0)
			return blank ? blank : len;
		len += n;
	}
	return len;
}

struct rfl_scene *rfl_scene_new(double width, double height)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_scene *s = rfl_arena_array(arena, 1, sizeof(*s));

	*s = (struct rfl_scene){ .arena = arena,
				 .width = width,
				 .height = height,
				 .title = "",
				 .caption = "",
				 .paper = { 255, 255, 255, 255 } };
	return s;
}

void rfl_scene_free(struct rfl_scene *s)
{
	if (s)
		rfl_arena_free(s->arena);
}

static struct rfl_prim *add(struct rfl_scene *s, struct rfl_prim prim)
{
	rfl_arena_reserve(s->arena, &s->prims, &s->cap, s->n + 1);
	prim.id = prim.tip = "";
	s->prims[s->n] = prim;
	return &s->prims[s->n++];
}

struct rfl_prim *rfl_scene_line(struct rfl_scene *s, double x0, double y0, double x1, double y1,
				struct rfl_color color, double width)
{
	return add(s, (struct rfl_prim){ .kind = RFL_PRIM_LINE,
					 .stroke = color,
					 .width = width,
					 .at.line = { x0, y0, x1, y1 } });
}

struct rfl_prim *rfl_scene_polygon(struct rfl_scene *s, const struct rfl_xy *points, size_t n,
				   struct rfl_color fill)
{
	struct rfl_xy *copy = rfl_arena_array(s->arena, n, sizeof(*copy));

	memcpy(copy, points, n * sizeof(*copy));
	return add(s, (struct rfl_prim){ .kind = RFL_PRIM_POLYGON,
					 .fill = fill,
					 .at.polygon = { .points = copy, .n = n } });
}

struct rfl_prim *rfl_scene_rect(struct rfl_scene *s, struct rfl_box box, struct rfl_color fill)
{
	return add(s, (struct rfl_prim){ .kind = RFL_PRIM_RECT, .fill = fill, .at.rect = box });
}

struct rfl_prim *rfl_scene_marker(struct rfl_scene *s, enum rfl_marker shape, double x, double y,
				  double r, struct rfl_color fill, struct rfl_color stroke,
				  double width)
{
	return add(s, (struct rfl_prim){ .kind = RFL_PRIM_MARKER,
					 .fill = fill,
					 .stroke = stroke,
					 .width = width,
					 .at.marker = { x, y, r, shape } });
}

struct rfl_prim *rfl_scene_text(struct rfl_scene *s, const char *text, double x, double y,
				double size, struct rfl_color color)
{
	const char *clean = rfl_scene_printf(s, "%s", text);

	return add(s,
		   (struct rfl_prim){ .kind = RFL_PRIM_TEXT,
				      .fill = color,
				      .at.text = { .text = clean, .x = x, .y = y, .size = size } });
}

int rfl_by_double(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int rfl_by_int(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

size_t rfl_distinct(int64_t *values, size_t n)
{
	size_t kept = 0;

	qsort(values, n, sizeof(*values), rfl_by_int);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || values[kept - 1] != values[i])
			values[kept++] = values[i];
	return kept;
}

void rfl_scene_raise(struct rfl_scene *s, size_t from, size_t to)
{
	const size_t n = to - from, rest = s->n - to;
	struct rfl_prim *raised = rfl_arena_array(s->arena, n + 1, sizeof(*raised));

	memcpy(raised, s->prims + from, n * sizeof(*raised));
	memmove(s->prims + from, s->prims + to, rest * sizeof(*raised));
	memcpy(s->prims + from + rest, raised, n * sizeof(*raised));
}

const char *rfl_scene_vprintf(struct rfl_scene *s, const char *fmt, va_list ap)
{
	va_list again;
	int len;
	char *text;

	va_copy(again, ap);
	len = rfl_num_vprint(NULL, 0, fmt, ap);
	text = rfl_arena_array(s->arena, (size_t)(len > 0 ? len : 0) + 1, 1);
	if (len > 0)
		rfl_num_vprint(text, (size_t)len + 1, fmt, again);
	rfl_text_one_line(text); /* PDF and SVG do not allow control characters */
	va_end(again);
	return text;
}

const char *rfl_scene_printf(struct rfl_scene *s, const char *fmt, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	text = rfl_scene_vprintf(s, fmt, ap);
	va_end(ap);
	return text;
}

void rfl_prim_text_corners(const struct rfl_prim *p, struct rfl_xy corners[4])
{
	const struct rfl_prim_text *t = &p->at.text;
	double w = rfl_text_width(t->text, t->face, t->size);
	double x0 = -w * t->anchor / 2;
	const double u[4] = { x0, x0 + w, x0 + w, x0 };
	const double v[4] = { RFL_TEXT_DESCENT * t->size, RFL_TEXT_DESCENT * t->size,
			      -RFL_TEXT_ASCENT * t->size, -RFL_TEXT_ASCENT * t->size };
	double c = cos(t->angle), n = sin(t->angle);

	for (int i = 0; i < 4; i++) {
		corners[i].x = t->x + u[i] * c + v[i] * n;
		corners[i].y = t->y - u[i] * n + v[i] * c;
	}
}

size_t rfl_marker_outline(enum rfl_marker shape, double r, struct rfl_xy out[RFL_MARKER_MAX_POINTS])
{
	/* Corners (x, y) in units of r, scaled for about the same area as the circle. */
	static const struct {
		size_t n;
		double at[2 * RFL_MARKER_MAX_POINTS];
	} shapes[] = {
		[RFL_MARKER_SQUARE] = { 4, { -.89, -.89, .89, -.89, .89, .89, -.89, .89 } },
		[RFL_MARKER_TRIANGLE] = { 3, { 0, -1.25, 1.2, .83, -1.2, .83 } },
		[RFL_MARKER_DIAMOND] = { 4, { 0, -1.25, 1.25, 0, 0, 1.25, -1.25, 0 } },
		[RFL_MARKER_TRIANGLE_DOWN] = { 3, { 0, 1.25, -1.2, -.83, 1.2, -.83 } },
		[RFL_MARKER_PENTAGON] = { 5,
					  { 0, -1.14, 1.084, -.352, .67, .922, -.67, .922, -1.084,
					    -.352 } },
		[RFL_MARKER_PLUS] = { 12, { -.42, -1.15, .42,   -1.15, .42,   -.42, 1.15, -.42,
					    1.15, .42,   .42,   .42,   .42,   1.15, -.42, 1.15,
					    -.42, .42,   -1.15, .42,   -1.15, -.42, -.42, -.42 } },
		[RFL_MARKER_LEFT] = { 3, { -1.25, 0, .83, -1.2, .83, 1.2 } },
		[RFL_MARKER_RIGHT] = { 3, { 1.25, 0, -.83, -1.2, -.83, 1.2 } },
	};

	if (shape == RFL_MARKER_CIRCLE)
		return 0;
	for (size_t i = 0; i < shapes[shape].n; i++) {
		out[i].x = shapes[shape].at[2 * i] * r;
		out[i].y = shapes[shape].at[2 * i + 1] * r;
	}
	return shapes[shape].n;
}
