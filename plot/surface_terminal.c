/*
 * surface_terminal.c - a picture for terminals: lines in braille characters of 2 x 4 dots, marks
 * and texts as characters in the cells at their positions. Light fills, grid lines and small print
 * are omitted.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "plot/place.h"
#include "plot/surface.h"

#define CONTRAST   0.2 /* least difference in brightness from the paper */
#define FINE_PRINT 5.5 /* smaller texts, in points, are omitted, such as footnotes */
#define LEAST_CUT  8   /* least number of cells of a truncated text */

struct cell {
	char text[8]; /* character with accents; "" if the cell has dots */
	bool taken;   /* also for the right half of a wide character, with text "" */
	bool bold;
	uint8_t dots;  /* bits of U+2800 */
	uint8_t color; /* one of 256; 0: the default of the terminal */
};

struct screen {
	int columns, rows;     /* of the scene; row -1, above it, is for the titles of axes */
	double cell_w, cell_h; /* in points */
	struct cell *cells;    /* followed by one that is not printed */
	const struct rfl_prim **texts; /* drawn after everything else */
	size_t ntexts;
};

static struct cell *at(const struct screen *s, int column, int row)
{
	const bool inside = column >= 0 && column < s->columns && row >= -1 && row < s->rows;

	return &s->cells[inside ? (row + 1) * s->columns + column : (s->rows + 1) * s->columns];
}

static enum rfl_rc terminal_begin(struct rfl_surface *s, struct rfl_err *err)
{
	const struct rfl_surface_spec *spec = s->spec;
	struct screen *c = rfl_alloc_array(1, sizeof(*c));

	(void)err;
	s->state = c;
	c->columns = spec->columns > 0 ? spec->columns : RFL_TERMINAL_COLUMNS;
	c->rows = (spec->rows > 0 ? spec->rows : RFL_TERMINAL_ROWS) - 1;
	c->rows = c->rows > 0 ? c->rows : 1;
	c->cell_w = s->scene->width / c->columns;
	c->cell_h = s->scene->height / c->rows;
	c->cells =
		rfl_alloc_array((size_t)c->columns * (size_t)(c->rows + 1) + 1, sizeof(*c->cells));
	c->texts = rfl_alloc_array(s->scene->n + 1, sizeof(*c->texts));
	return RFL_OK;
}

static double brightness(struct rfl_color c)
{
	return (0.30 * c.r + 0.59 * c.g + 0.11 * c.b) / 255;
}

/* Whether a colour is visible and differs from the paper. */
static bool stands_out(const struct rfl_scene *scene, struct rfl_color c)
{
	return c.a >= 128 && fabs(brightness(c) - brightness(scene->paper)) >= CONTRAST;
}

/* The nearest of the 6 x 6 x 6 terminal colours, with a brightness that is legible on black and on
 * white; 0 for greys, which have the default colour of the terminal. */
static uint8_t color_of(struct rfl_color c)
{
	const uint8_t parts[] = { c.r, c.g, c.b };
	int index = 0, high = 0, low = 255;

	for (int i = 0; i < 3; i++) {
		high = parts[i] > high ? parts[i] : high;
		low = parts[i] < low ? parts[i] : low;
	}
	if (high - low < 40)
		return 0;
	for (int i = 0; i < 3; i++) { /* levels 0, 95, 135, 175, 215, 255 */
		const int part = parts[i] * 220 / high;

		index = index * 6 + (part < 48 ? 0 : part < 115 ? 1 : (part - 35) / 40);
	}
	return (uint8_t)(16 + index);
}

/* Set a dot; there are 2 x 4 in a cell. */
static void set_dot(struct screen *s, int x, int y, uint8_t color)
{
	static const uint8_t bits[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
	struct cell *cell = at(s, x >= 0 ? x / 2 : -1, y >= 0 ? y / 4 : -1);

	cell->dots |= bits[y & 3][x & 1];
	cell->color = color;
}

static void draw_line(struct screen *s, struct rfl_xy a, struct rfl_xy b, enum rfl_dash dash,
		      uint8_t color)
{
	const struct rfl_box all = { 0, 0, 2 * s->columns, 4 * s->rows };
	double x = a.x / s->cell_w * 2, to_x = b.x / s->cell_w * 2;
	double y = a.y / s->cell_h * 4, to_y = b.y / s->cell_h * 4;
	int n;

	if (!rfl_clip_line(&all, &x, &y, &to_x, &to_y))
		return;
	n = (int)ceil(fmax(fabs(to_x - x), fabs(to_y - y)));
	for (int i = 0; i <= n; i++) {
		const double t = n > 0 ? (double)i / n : 0;
		const int column = (int)floor(x + t * (to_x - x));
		const int row = (int)floor(y + t * (to_y - y));
		const int phase = (fabs(to_x - x) > fabs(to_y - y) ? column : row) & 3;

		if (dash == RFL_DASH_SOLID || phase == 0 ||
		    (dash == RFL_DASH_DASHED && phase == 1) ||
		    (dash == RFL_DASH_MIXED && phase != 3))
			set_dot(s, column, row, color);
	}
}

/* Fill a rectangle: all dots with a centre inside it. */
static void draw_rect(struct screen *s, const struct rfl_box *b, uint8_t color)
{
	const double w = 2 / s->cell_w, h = 4 / s->cell_h;
	const int x0 = (int)fmax(ceil(b->x * w - 0.5), 0), y0 = (int)fmax(ceil(b->y * h - 0.5), 0);
	const double x1 = fmin((b->x + b->w) * w - 0.5, 2 * s->columns);
	const double y1 = fmin((b->y + b->h) * h - 0.5, 4 * s->rows);

	for (int y = y0; y < y1; y++)
		for (int x = x0; x < x1; x++)
			set_dot(s, x, y, color);
}

/* ---- characters ---- */

/* Number of cells of a character. */
static int width_of(uint32_t code)
{
	static const struct {
		uint32_t first, last;
		int width;
	} ranges[] = {
		{ 0x0300, 0x036f, 0 }, { 0x1100, 0x115f, 2 },   { 0x200b, 0x200f, 0 },
		{ 0x2e80, 0xa4cf, 2 }, { 0xac00, 0xd7a3, 2 },   { 0xf900, 0xfaff, 2 },
		{ 0xfe00, 0xfe0f, 0 }, { 0xfe30, 0xfe6f, 2 },   { 0xff00, 0xff60, 2 },
		{ 0xffe0, 0xffe6, 2 }, { 0x1f300, 0x1faff, 2 }, { 0x20000, 0x3fffd, 2 },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(ranges); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return ranges[i].width;
	return 1;
}

/* Read the character at the beginning of a text. @return its length; 0 at the end */
static size_t next_char(const char *text, int *width)
{
	uint32_t code = 0;
	const size_t n = *text ? rfl_text_decode(text, strlen(text), &code) : 0;

	*width = width_of(code);
	return n;
}

static int text_cells(const char *text)
{
	int cells = 0, width;

	for (size_t n; (n = next_char(text, &width)) > 0; text += n)
		cells += width;
	return cells;
}

static void put_char(struct screen *s, int column, int row, const char *text, size_t n, int width,
		     const struct rfl_prim *p)
{
	struct cell *cell = at(s, column, row);

	if (width == 0) { /* an accent on the previous character */
		const size_t used = strlen(cell->text);

		if (used > 0 && used + n < sizeof(cell->text))
			memcpy(cell->text + used, text, n);
		return;
	}
	*cell = (struct cell){ .taken = true,
			       .color = color_of(p->fill),
			       .bold = p->kind == RFL_PRIM_TEXT &&
				       p->at.text.face == RFL_FACE_BOLD };
	memcpy(cell->text, text, n);
	if (width == 2)
		*at(s, column + 1, row) = (struct cell){ .taken = true };
}

/* Whether cells and their neighbours have no characters and, if requested, no dots. */
static bool is_free(const struct screen *s, int column, int row, int cells, bool no_dots)
{
	if (column < 0 || column + cells > s->columns || row < -1 || row >= s->rows)
		return false;
	for (int i = column - 1; i <= column + cells; i++)
		if (i >= 0 && i < s->columns &&
		    (at(s, i, row)->taken ||
		     (no_dots && i >= column && i < column + cells && at(s, i, row)->dots)))
			return false;
	return true;
}

/* Write a text at its position, or at the nearest free one in its row; a label of a line or region
 * may also move up or down, but one of a point would then name another point. Omit the text if
 * nothing is free. A text wider than the screen is truncated. */
static void put_text(struct screen *s, const struct rfl_prim *p)
{
	static const struct {
		int column, row;
	} moves[] = {
		{ 0, 0 }, { 1, 0 },   { -1, 0 }, { 2, 0 },  { -2, 0 },
		{ 3, 0 }, { -3, 0 },  { 0, -1 }, { 0, 1 },  { 3, -1 },
		{ 3, 1 }, { -3, -1 }, { -3, 1 }, { 0, -2 }, { 0, 2 },
	};
	const size_t nmoves = strncmp(p->id, "label-", 6) == 0 ? RFL_ARRAY_LEN(moves) : 7;
	/* the text of a legend entry must not cover the symbol of the next */
	const bool legend = strcmp(p->id, "legend") == 0;
	const struct rfl_prim_text *t = &p->at.text;
	const char *text = t->text;
	int cells = text_cells(text), shown, home, column, row, width;
	struct rfl_xy box[4];
	const bool upright = fabs(sin(t->angle)) > 0.99;
	bool found = false;
	double x, y;

	if (cells == 0 || t->size < FINE_PRINT)
		return;
	rfl_prim_text_corners(p, box);
	x = (box[0].x + box[2].x) / 2;
	y = (box[0].y + box[2].y) / 2;
	shown = cells < s->columns ? cells : s->columns;
	if (t->angle == 0) {
		x = t->x + (0.5 - 0.5 * t->anchor) * cells * s->cell_w;
		y = t->y - RFL_TEXT_CAP / 2 * t->size; /* the height of a mark next to it */
	}
	home = (int)floor(x / s->cell_w - (upright ? 0 : shown / 2.0) + 0.5);
	column = home + shown > s->columns ? s->columns - shown : home < 0 ? 0 : home;
	row = (int)fmin(fmax(floor(y / s->cell_h), 0), s->rows - 1);
	while (upright && row > -1 && !is_free(s, column, row, shown, true))
		row--; /* the title of an axis: on the next empty row */
	for (int pass = 0; pass < (legend ? 1 : 2) && !found;
	     pass++) /* the first pass does not cover lines */
		for (size_t i = 0; i < nmoves && !found; i++) {
			found = is_free(s, column + moves[i].column, row + moves[i].row, shown,
					pass == 0);
			if (found) {
				column += moves[i].column;
				row += moves[i].row;
			}
		}
	if (!found && t->angle == 0 && t->anchor == RFL_ANCHOR_START) { /* truncated to the room */
		column = home;
		while (shown > 0 && !is_free(s, column, row, shown, legend))
			shown--;
		found = shown >= LEAST_CUT;
	}
	for (size_t n; found && (n = next_char(text, &width)) > 0; text += n) {
		/* the last cell of a truncated text has an ellipsis */
		const bool cut_here = cells > shown && width >= shown;

		if (cut_here)
			put_char(s, column, row, "…", strlen("…"), 1, p);
		else
			put_char(s, column, row, text, n, width, p);
		column += width;
		shown -= width;
		cells -= width;
		found = !cut_here;
	}
}

static void put_marker(struct screen *s, const struct rfl_scene *scene, const struct rfl_prim *p)
{
	static const char *const shapes[][2] = {
		[RFL_MARKER_CIRCLE] = { "○", "●" },        [RFL_MARKER_SQUARE] = { "□", "■" },
		[RFL_MARKER_TRIANGLE] = { "△", "▲" },      [RFL_MARKER_DIAMOND] = { "◇", "◆" },
		[RFL_MARKER_TRIANGLE_DOWN] = { "▽", "▼" }, [RFL_MARKER_PENTAGON] = { "⬠", "⬟" },
		[RFL_MARKER_PLUS] = { "✛", "✚" },          [RFL_MARKER_LEFT] = { "◁", "◀" },
		[RFL_MARKER_RIGHT] = { "▷", "▶" },
	};
	const size_t shape = (size_t)p->at.marker.shape;
	const bool filled = p->fill.a != 0 && memcmp(&p->fill, &scene->paper, sizeof(p->fill)) != 0;
	const char *text =
		shape < RFL_ARRAY_LEN(shapes) && shapes[shape][0] ? shapes[shape][filled] : "•";
	struct rfl_prim colored = *p;

	colored.fill = filled ? p->fill : p->stroke;
	put_char(s, (int)floor(p->at.marker.x / s->cell_w), (int)floor(p->at.marker.y / s->cell_h),
		 text, strlen(text), 1, &colored);
}

/* Whether a rectangle is a symbol of a legend, not a bar. */
static bool is_sign(const struct screen *s, const struct rfl_box *b)
{
	return b->w > s->cell_w && b->w < 3 * s->cell_w && b->h > s->cell_h / 2 &&
	       b->h < 2 * s->cell_h;
}

static void terminal_draw(struct rfl_surface *surface, const struct rfl_prim *p)
{
	const struct rfl_scene *scene = surface->scene;
	struct screen *s = surface->state;
	const struct rfl_xy *points = p->at.polygon.points;
	const size_t n = p->kind == RFL_PRIM_POLYGON ? p->at.polygon.n : 0;
	const uint8_t color = color_of(p->stroke);

	switch (p->kind) {
	case RFL_PRIM_TEXT:
		s->texts[s->ntexts++] = p;
		return;
	case RFL_PRIM_MARKER:
		put_marker(s, scene, p);
		return;
	case RFL_PRIM_RECT:
		if (is_sign(s, &p->at.rect)) {
			const char *text = stands_out(scene, p->fill) ? "■" : "░";

			put_char(s, (int)((p->at.rect.x + p->at.rect.w / 2) / s->cell_w),
				 (int)((p->at.rect.y + p->at.rect.h / 2) / s->cell_h), text,
				 strlen(text), 1, p);
		} else if (stands_out(scene, p->fill)) {
			draw_rect(s, &p->at.rect, color_of(p->fill));
		}
		return; /* frames are drawn as lines */
	case RFL_PRIM_LINE:
		if (stands_out(scene, p->stroke))
			draw_line(s, (struct rfl_xy){ p->at.line.x0, p->at.line.y0 },
				  (struct rfl_xy){ p->at.line.x1, p->at.line.y1 }, p->dash, color);
		return;
	case RFL_PRIM_POLYGON:
		for (size_t i = 0; stands_out(scene, p->stroke) && n > 1 && i < n; i++)
			draw_line(s, points[i], points[(i + 1) % n], p->dash, color);
		return;
	}
}

/* Append a row without the blanks at its end. */
static void print_row(const struct screen *s, int row, bool ansi, struct rfl_buf *out)
{
	int end = s->columns;
	uint8_t color = 0;
	bool bold = false;

	while (end > 0 && !at(s, end - 1, row)->taken && !at(s, end - 1, row)->dots)
		end--;
	for (int i = 0; i < end; i++) {
		const struct cell *c = at(s, i, row);

		if (ansi && (c->color != color || c->bold != bold)) {
			rfl_buf_puts(out, c->bold ? "\033[0;1m" : "\033[0m");
			if (c->color)
				rfl_buf_printf(out, "\033[38;5;%um", c->color);
			color = c->color;
			bold = c->bold;
		}
		if (c->taken)
			rfl_buf_puts(out, c->text);
		else if (c->dots) /* U+2800 + dots in UTF-8 */
			rfl_buf_printf(out, "\xe2%c%c", 0xa0 + (c->dots >> 6),
				       0x80 + (c->dots & 0x3f));
		else
			rfl_buf_putc(out, ' ');
	}
	rfl_buf_puts(out, color || bold ? "\033[0m\n" : "\n");
}

/* Larger texts are drawn first; texts of equal size in the order of the scene. */
static int by_size(const void *a, const void *b)
{
	const struct rfl_prim *p = *(const struct rfl_prim *const *)a;
	const struct rfl_prim *q = *(const struct rfl_prim *const *)b;

	if (p->at.text.size != q->at.text.size)
		return p->at.text.size < q->at.text.size ? 1 : -1;
	return p < q ? -1 : p > q;
}

static enum rfl_rc terminal_finish(struct rfl_surface *surface, struct rfl_err *err)
{
	struct screen *s = surface->state;
	int first = -1, last = s->rows - 1;

	(void)err;
	qsort(s->texts, s->ntexts, sizeof(*s->texts), by_size);
	for (size_t i = 0; i < s->ntexts; i++)
		put_text(s, s->texts[i]);
	while (last >= 0 && is_free(s, 0, last, s->columns, true))
		last--;
	while (first < last && is_free(s, 0, first, s->columns, true))
		first++;
	for (int row = first; row <= last; row++)
		print_row(s, row, surface->spec->ansi, surface->out);
	return RFL_OK;
}

static void terminal_close(struct rfl_surface *surface)
{
	struct screen *s = surface->state;

	if (!s)
		return;
	free(s->cells);
	free(s->texts);
	free(s);
}

const struct rfl_surface_ops rfl_surface_terminal = {
	.name = "terminal",
	.summary = "characters on standard output, lines in braille",
	.suffix = "txt",
	.markers = true,
	.printed = true,
	.begin = terminal_begin,
	.draw = terminal_draw,
	.finish = terminal_finish,
	.close = terminal_close,
};
