/*
 * page_pdf.c - writes a page as a PDF with numbered sheets, an outline and a linked table of
 * contents. Pango shapes and breaks the text; the program's fonts come first, and the system's
 * supply other scripts. Two passes: the first one finds the sheet of each section.
 */
#include "report/page.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include <cairo-pdf.h>
#include <pango/pangocairo.h>
#include <pango/pangofc-fontmap.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

#define MARGIN      45.0 /* points, as all sizes */
#define FIGURE_MOST 0.8  /* height of a figure, relative to the text's */
#define FIGURE_LESS 0.65 /* it may be so much smaller, to fit on the sheet */
#define WORD_KEPT   40   /* letters of a word that is not broken at hyphens and slashes */
#define CAPTION     30.0 /* height below a figure */
#define INK         0x1f2328
#define GREY        0x57606a

struct style {
	double size, above, below; /* space around the block */
	double indent;
	size_t word; /* words of more letters may be broken; 0: WORD_KEPT */
	bool bold, mono;
	unsigned color,
		mark; /* RGB; 0: INK, no mark. The mark of mono is a background, else a bar */
};
static const struct style title_style = { .size = 20, .bold = true, .below = 14 };
static const struct style caption_style = { .size = 9, .bold = true, .above = 6, .below = 3 };
static const struct style note_style = { .size = 7.5, .below = 2, .color = GREY };
static const struct style link_style = { .size = 10, .below = 2, .color = 0x0550ae };
/* of blocks that only have text */
static const struct style text_styles[] = {
	[RFL_BLOCK_SECTION] = { .size = 14.5, .bold = true, .above = 14, .below = 5 },
	[RFL_BLOCK_PART] = { .size = 11.5, .bold = true, .above = 10, .below = 3 },
	[RFL_BLOCK_PARAGRAPH] = { .size = 10, .below = 6 },
	[RFL_BLOCK_ITEM] = { .size = 10, .below = 3, .indent = 12 },
	[RFL_BLOCK_CODE] = { .size = 8, .below = 6, .indent = 4, .mono = true, .mark = 0xf3f4f6 },
	[RFL_BLOCK_AUTHOR] = { .size = 10, .below = 6, .indent = 12, .mark = 0xb54708 },
};

struct pdf {
	const struct rfl_page *page;
	cairo_surface_t *surface;
	cairo_t *cr;
	PangoContext *context;
	PangoLayout *layout;              /* of the text that is written next */
	double width, bottom, y;          /* of the text area, and the position in it */
	int sheet, nsheets;               /* nsheets: 0 in the first pass */
	int *sheets;                      /* of the blocks */
	struct grid **grids;              /* of the blocks with tables; made when first needed */
	const struct rfl_block **waiting; /* figures that did not fit, for the next sheet */
	size_t nwaiting;
	struct rfl_arena *arena;
	struct rfl_err *err;
	enum rfl_rc rc;
};

/* ---- text ---- */

static void set_color(struct pdf *d, unsigned rgb)
{
	rgb = rgb ? rgb : INK;
	cairo_set_source_rgb(d->cr, (rgb >> 16) / 255.0, (rgb >> 8 & 255) / 255.0,
			     (rgb & 255) / 255.0);
}

/* Keep words such as GFLOP/s and --points in one piece. */
static PangoAttrList *keep_words(const char *text, size_t most)
{
	PangoAttrList *list = pango_attr_list_new();

	for (const char *s = text, *begin; *s; s += *s != '\0') {
		for (begin = s; *s > ' ' && *s < 0x7f;)
			s++;
		if (s - begin > 1 && (size_t)(s - begin) <= most) {
			PangoAttribute *whole = pango_attr_allow_breaks_new(FALSE);

			whole->start_index = (guint)(begin - text);
			whole->end_index = (guint)(s - text);
			pango_attr_list_insert(list, whole);
		}
	}
	return list;
}

/* Set the text of a layout. @param width  0: do not break lines. @param height  of a text that
 * ends in an ellipsis if it is longer; 0: any; -1: one line */
static void set_text(PangoLayout *layout, const struct style *style, double size, const char *text,
		     double width, double height)
{
	PangoFontDescription *font = pango_font_description_new();
	PangoAttrList *words = keep_words(text, style->word ? style->word : WORD_KEPT);

	pango_font_description_set_family_static(font, style->mono ? "Liberation Mono, monospace"
								   : "Liberation Sans, sans-serif");
	pango_font_description_set_absolute_size(font, size * PANGO_SCALE);
	pango_font_description_set_weight(font,
					  style->bold ? PANGO_WEIGHT_BOLD : PANGO_WEIGHT_NORMAL);
	pango_layout_set_font_description(layout, font);
	pango_font_description_free(font);
	pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
	pango_layout_set_width(layout, width > 0 ? (int)(width * PANGO_SCALE) : -1);
	pango_layout_set_height(layout, height > 0 ? (int)(height * PANGO_SCALE) : -1);
	pango_layout_set_ellipsize(layout,
				   height != 0 ? PANGO_ELLIPSIZE_END : PANGO_ELLIPSIZE_NONE);
	pango_layout_set_indent(layout, style->mono ? -12 * PANGO_SCALE : 0);
	pango_layout_set_text(layout, text, -1);
	pango_layout_set_attributes(layout, words);
	pango_attr_list_unref(words);
}

static double size_of(PangoLayout *layout, bool height)
{
	int w, h;

	pango_layout_get_size(layout, &w, &h);
	return (double)(height ? h : w) / PANGO_SCALE;
}

/* Write one line anywhere. @param x  below 0: at the right edge */
static void put_line(struct pdf *d, const struct style *s, const char *text, double x, double y)
{
	PangoLayout *line = pango_layout_new(d->context);

	pango_layout_set_single_paragraph_mode(line, TRUE);
	set_text(line, s, s->size, text, x < 0 ? 0 : 0.85 * d->width, -1);
	set_color(d, s->color);
	cairo_move_to(d->cr, x < 0 ? d->width - size_of(line, false) : x, y);
	pango_cairo_show_layout(d->cr, line);
	g_object_unref(line);
}

static void put_drawings(struct pdf *d);

/* Write the foot of the sheet, and begin the next one with the figures that wait for it. */
static void next_sheet(struct pdf *d)
{
	char number[32];

	(void)snprintf(number, sizeof(number), "%d / %d", d->sheet, d->nsheets);
	put_line(d, &note_style, number, -1, d->bottom + 14);
	put_line(d, &note_style, d->page->title, 0, d->bottom + 14);
	cairo_show_page(d->cr);
	d->sheet++;
	d->y = 0;
	put_drawings(d);
}

/* Begin the next sheet unless this one has room for a height. Figures at its top may leave none. */
static void need(struct pdf *d, double height)
{
	while (d->y > 0 && d->y + height > d->bottom)
		next_sheet(d);
}

static void lay_paragraph(struct pdf *d, const struct style *s, const char *text)
{
	set_text(d->layout, s, s->size, text, d->width - s->indent, 0);
	pango_layout_set_spacing(d->layout, (int)(0.15 * s->size * PANGO_SCALE));
}

/* Write a text without line breaks. */
static void put_paragraph(struct pdf *d, const struct style *s, const char *text)
{
	PangoLayoutIter *it;

	lay_paragraph(d, s, text);
	it = pango_layout_get_iter(d->layout);
	do {
		int top, bottom, base = pango_layout_iter_get_baseline(it);
		PangoRectangle line;

		pango_layout_iter_get_line_extents(it, NULL, &line);
		pango_layout_iter_get_line_yrange(it, &top, &bottom);
		const double height = (double)(bottom - top) / PANGO_SCALE;

		need(d, height);
		if (s->mark) {
			set_color(d, s->mark);
			cairo_rectangle(d->cr, 0, d->y - 0.2, s->mono ? d->width : 3, height + 0.4);
			cairo_fill(d->cr);
		}
		set_color(d, s->color);
		cairo_move_to(d->cr, s->indent + (double)line.x / PANGO_SCALE,
			      d->y + (double)(base - top) / PANGO_SCALE);
		pango_cairo_show_layout_line(d->cr, pango_layout_iter_get_line_readonly(it));
		d->y += height;
	} while (pango_layout_iter_next_line(it));
	pango_layout_iter_free(it);
	pango_layout_set_spacing(d->layout, 0);
}

/* Write a text from the position on, line by line, over as many sheets as necessary. Pango takes
 * quadratic time for many words in one layout, so each line of a text has its own. */
static void put_text(struct pdf *d, const struct style *s, const char *text)
{
	char *lines = rfl_arena_strdup(d->arena, text), *next = lines;

	d->y += d->y > 0 ? s->above : 0;
	while (next) {
		char *line = next;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		put_paragraph(d, s, line);
	}
	d->y += s->below;
}

/*
 * ---- tables ----
 *
 * Columns are as wide as their contents, or share the width of the sheet; text gets smaller,
 * columns that are the same in all rows become a note, and a table that is still too wide is
 * written as several.
 */

#define TABLE_SIZE    8.5 /* points */
#define TABLE_LEAST   6.0
#define CELL_GAP      0.8 /* em */
#define WORD_MOST     11  /* longer words of a cell may be broken; letters, em */
#define ROWS_COMPARED 200 /* to find the columns that identify the rows */

static const struct style cell_style = { .word = WORD_MOST };
static const struct style head_style = { .word = WORD_MOST, .bold = true };

struct grid {
	struct rfl_table_texts t;
	struct column {
		double whole, least[2]; /* em: of the whole text; with few lines, of its words */
		double width;           /* points */
		PangoLayout *layout;    /* of the cell that is written next */
	} * columns;
	int tight;        /* index of `least` */
	size_t n;         /* columns that are shown */
	size_t *shown;    /* their indices */
	const char *note; /* on columns that are the same in all rows; "": none */
	double size;      /* of the text; 0: too wide for one table */
};

static bool is_number(const struct grid *g, size_t column)
{
	return g->t.columns[column].kind != RFL_COLUMN_TEXT;
}

static void measure(struct pdf *d, struct grid *g)
{
	const double em = 10;

	for (size_t i = 0; i < g->t.ncolumns * g->t.nrows; i++) {
		struct column *c = &g->columns[i % g->t.ncolumns];
		const bool title = i < g->t.ncolumns;
		double width;

		set_text(d->layout, title ? &head_style : &cell_style, em, g->t.cells[i], 0, 0);
		width = size_of(d->layout, false) / em;
		c->whole = fmax(c->whole, width);
		if (width > c->least[1] && (title || !is_number(g, i % g->t.ncolumns))) {
			pango_layout_set_wrap(d->layout, PANGO_WRAP_WORD);
			pango_layout_set_width(d->layout, 1);
			width = fmin(size_of(d->layout, false) / em, WORD_MOST);
		}
		c->least[1] = fmax(c->least[1], width);
		c->least[0] = fmax(c->least[1], fmin(c->whole / 2, 1.5 * WORD_MOST));
	}
}

/* Set the widths of some columns: all get the same share of what they want above the least.
 * @return whether they fit the sheet in this size */
static bool fit(const struct pdf *d, const struct grid *g, const size_t *columns, size_t n,
		double size)
{
	double room = d->width / size - CELL_GAP * (double)(n - 1), wanted = 0; /* em */

	for (size_t i = 0; i < n; i++) {
		const struct column *c = &g->columns[columns[i]];

		room -= c->least[g->tight];
		wanted += c->whole - c->least[g->tight];
	}
	for (size_t i = 0; i < n; i++) {
		struct column *c = &g->columns[columns[i]];
		const double least = c->least[g->tight];

		c->width = size *
			   (wanted > room ? least + (c->whole - least) * room / wanted : c->whole);
	}
	return room >= 0;
}

/* The largest size in which columns fit, if possible with few lines in each cell; or 0. */
static double size_for(const struct pdf *d, struct grid *g, const size_t *columns, size_t n)
{
	for (g->tight = 0; g->tight < 2; g->tight++)
		for (double size = TABLE_SIZE; size >= TABLE_LEAST; size -= 0.5)
			if (fit(d, g, columns, n, size))
				return size;
	g->tight = 1;
	return 0;
}

/* Replace the columns that have the same text in all rows by a note on them; at least one stays. */
static void drop_same(const struct pdf *d, struct grid *g)
{
	const struct rfl_table_texts *t = &g->t;
	size_t n = 0;

	for (size_t c = 0; c < t->ncolumns; c++) {
		const char *const *first = &t->cells[t->ncolumns + c];
		size_t row = 1;

		while (row < t->nrows && strcmp(first[(row - 1) * t->ncolumns], *first) == 0)
			row++;
		if (row < t->nrows || t->nrows < 3)
			g->shown[n++] = c;
		else
			g->note = rfl_arena_printf(
				d->arena, "%s%s %s %s", g->note,
				*g->note ? "," : "The same in all rows:", t->cells[c], *first);
	}
	if (n == 0)
		g->shown[n++] = 0;
	g->n = n;
}

/* The number of the first columns that distinguish the rows. */
static size_t columns_of_name(const struct rfl_table_texts *t, const size_t *columns,
			      size_t ncolumns)
{
	const size_t rows = t->nrows < ROWS_COMPARED ? t->nrows : ROWS_COMPARED;
	size_t n = 1;

	for (size_t i = 1; i < rows; i++)
		for (size_t k = 1; k < i; k++) {
			size_t c = 0;

			while (c < ncolumns && strcmp(t->cells[i * t->ncolumns + columns[c]],
						      t->cells[k * t->ncolumns + columns[c]]) == 0)
				c++;
			n = c < ncolumns && c + 1 > n ? c + 1 : n;
		}
	return n;
}

/* Set the layouts of a row. @return its height */
static double lay_row(const struct pdf *d, const struct grid *g, const size_t *columns, size_t n,
		      size_t row, double size)
{
	double height = 0;

	for (size_t i = 0; i < n; i++) {
		const struct column *c = &g->columns[columns[i]];

		set_text(c->layout, row == 0 ? &head_style : &cell_style, size,
			 g->t.cells[row * g->t.ncolumns + columns[i]], c->width + 0.1,
			 d->bottom / 3);
		pango_layout_set_alignment(c->layout, is_number(g, columns[i]) ? PANGO_ALIGN_RIGHT
									       : PANGO_ALIGN_LEFT);
		height = fmax(height, size_of(c->layout, true));
	}
	return height + 4;
}

/* Draw the row of the layouts. Titles are at its bottom, above a stronger line. */
static void draw_row(struct pdf *d, const struct grid *g, const size_t *columns, size_t n,
		     bool titles, double height, double size)
{
	double x = 0;

	set_color(d, INK);
	for (size_t i = 0; i < n; i++) {
		const struct column *c = &g->columns[columns[i]];

		cairo_move_to(d->cr, x,
			      d->y + (titles ? height - 2 - size_of(c->layout, true) : 2));
		pango_cairo_show_layout(d->cr, c->layout);
		x += c->width + CELL_GAP * size;
	}
	d->y += height;
	set_color(d, titles ? GREY : 0xd8dee4);
	cairo_rectangle(d->cr, 0, d->y - 0.25, x - CELL_GAP * size, titles ? 0.75 : 0.4);
	cairo_fill(d->cr);
}

/* Draw a table of some columns, with the titles again on each sheet. */
static void put_grid(struct pdf *d, const struct grid *g, const size_t *columns, size_t n,
		     double size)
{
	(void)fit(d, g, columns, n, size);
	for (size_t row = 0; row < g->t.nrows; row++) {
		const double height = lay_row(d, g, columns, n, row, size);
		/* a note does not begin a sheet */
		const double below = row + 1 == g->t.nrows && g->t.nnotes ? 2 * note_style.size : 0;

		if (row > 0 && d->y + height + below > d->bottom) {
			next_sheet(d);
			draw_row(d, g, columns, n, true, lay_row(d, g, columns, n, 0, size), size);
			(void)lay_row(d, g, columns, n, row, size);
		}
		draw_row(d, g, columns, n, row == 0, height, size);
	}
	d->y += 4;
}

/* Write a table that is too wide as several, each with the columns that name the rows. */
static void put_parts(struct pdf *d, const struct grid *g, const size_t *columns, size_t ncolumns)
{
	size_t *part = rfl_arena_array(d->arena, ncolumns, sizeof(*part));
	size_t names = columns_of_name(&g->t, columns, ncolumns), next, n;

	memcpy(part, columns, ncolumns * sizeof(*part));
	while (names > 1 && (names == ncolumns ||
			     !fit(d, g, part, names, 2 * TABLE_LEAST))) /* half of the width */
		names--;
	for (next = names; next < ncolumns;) {
		if (next > names) {
			need(d, 80);
			put_text(d, &note_style, "The table continues with these columns:");
		}
		for (n = names; next < ncolumns; next++) {
			part[n++] = columns[next];
			if (n > names + 1 && !fit(d, g, part, n, TABLE_LEAST)) {
				n--;
				break;
			}
		}
		put_grid(d, g, part, n, TABLE_LEAST);
	}
}

/* The table of a block, measured. */
static struct grid *grid_of(struct pdf *d, const struct rfl_block *b)
{
	struct grid **at = &d->grids[b - d->page->blocks], *g = *at;

	if (g)
		return g;
	g = *at = rfl_arena_array(d->arena, 1, sizeof(*g));
	g->t = rfl_table_texts(b->table, d->arena);
	g->columns = rfl_arena_array(d->arena, g->t.ncolumns, sizeof(*g->columns));
	g->shown = rfl_arena_array(d->arena, g->t.ncolumns, sizeof(*g->shown));
	g->note = "";
	for (g->n = 0; g->n < g->t.ncolumns; g->n++) {
		g->shown[g->n] = g->n;
		g->columns[g->n].layout = pango_layout_new(d->context);
	}
	measure(d, g);
	g->size = size_for(d, g, g->shown, g->n);
	if (!(g->size > 0)) {
		drop_same(d, g);
		g->size = size_for(d, g, g->shown, g->n);
	}
	return g;
}

/* The height of the beginning of a table: its caption, its titles and two rows. */
static double begin_of_table(struct pdf *d, const struct rfl_block *b)
{
	struct grid *g = grid_of(d, b);
	const double size = g->size > 0 ? g->size : TABLE_LEAST;
	const size_t rows = g->t.nrows < 3 ? g->t.nrows : 3;
	double height = 2 * caption_style.size + caption_style.above;

	if (g->size > 0)
		(void)fit(d, g, g->shown, g->n, size);
	for (size_t row = 0; row < rows; row++)
		height += g->size > 0 ? lay_row(d, g, g->shown, g->n, row, size) : 3 * size;
	return height + (*g->note ? 2 * note_style.size : 0);
}

static void put_table(struct pdf *d, const struct rfl_block *b)
{
	struct grid *g = grid_of(d, b);

	put_text(d, &caption_style, b->text);
	if (*g->note)
		put_text(d, &note_style, g->note);
	if (g->size > 0)
		put_grid(d, g, g->shown, g->n, g->size);
	else
		put_parts(d, g, g->shown, g->n);
	for (size_t i = 0; i < g->t.nnotes; i++)
		put_text(d, &note_style, g->t.notes[i]);
	d->y += 4;
}

/* ---- figures, headings and the contents ---- */

static cairo_status_t read_picture(void *closure, unsigned char *data, unsigned len)
{
	struct rfl_span *rest = closure;

	if (rest->len < len)
		return CAIRO_STATUS_READ_ERROR;
	memcpy(data, rest->at, len);
	rest->at += len;
	rest->len -= len;
	return CAIRO_STATUS_SUCCESS;
}

/* The height of a figure or picture on the sheet. The size of a picture, in the resolution of a
 * chart, is in the header of its PNG file.
 * @param above  height of what comes before it, from the position on
 * @param scale  set to the points per unit of the scene, or per pixel */
static double drawing_height(const struct pdf *d, const struct rfl_block *b, double above,
			     double *scale)
{
	const unsigned char *at = (const unsigned char *)b->body + 16;
	double pixels[2] = { 0, 0 }, width, height, zoom, room;

	for (size_t i = 0; !b->scene && b->body_len >= 24 && i < 8; i++)
		pixels[i / 4] = 256 * pixels[i / 4] + at[i];
	*scale = b->scene ? 1 : 72 / b->dpi;
	width = *scale * (b->scene ? b->scene->width : pixels[0]);
	height = *scale * (b->scene ? b->scene->height : pixels[1]);
	zoom = fmin(1, fmin(d->width / width, FIGURE_MOST * d->bottom / height));
	room = (d->bottom - d->y - above - CAPTION) / height;
	zoom = room < zoom && room >= FIGURE_LESS * zoom ? room : zoom;
	*scale *= zoom;
	return zoom * height;
}

static void draw_picture(struct pdf *d, const struct rfl_block *b)
{
	struct rfl_span rest = { .at = b->body, .len = b->body_len };
	cairo_surface_t *s = cairo_image_surface_create_from_png_stream(read_picture, &rest);

	if (cairo_surface_status(s) != CAIRO_STATUS_SUCCESS)
		d->rc = rfl_fail(d->err, RFL_EFAILED, 0, "report: cairo: %s",
				 cairo_status_to_string(cairo_surface_status(s)));
	cairo_set_source_surface(d->cr, s, 0, 0);
	cairo_paint(d->cr);
	cairo_surface_destroy(s);
}

static void put_drawing(struct pdf *d, const struct rfl_block *b)
{
	const struct rfl_surface_spec spec = { .font_dir = d->page->font_dir, .cairo = d->cr };
	double scale;
	const double height = drawing_height(d, b, 0, &scale);
	RFL_AUTO(buf) nothing = { .len = 0 }; /* the sheet has the drawing */

	cairo_save(d->cr);
	cairo_translate(d->cr, 0, d->y);
	cairo_scale(d->cr, scale, scale);
	if (!b->scene)
		draw_picture(d, b);
	else if (d->nsheets > 0) /* not in the first pass, which only finds the sheets */
		d->rc = rfl_surface_draw(&rfl_surface_pdf, &spec, b->scene, &nothing, d->err);
	cairo_restore(d->cr);
	d->y += height;
	put_text(d, &caption_style, b->text);
}

/* Draw the figures that wait, as far as they fit. */
static void put_drawings(struct pdf *d)
{
	PangoLayout *text = d->layout; /* may be between two lines */
	size_t n = 0;
	double scale;

	if (d->nwaiting == 0)
		return;
	d->layout = pango_layout_new(d->context);
	while (n < d->nwaiting &&
	       (d->y == 0 ||
		d->y + drawing_height(d, d->waiting[n], 0, &scale) + CAPTION <= d->bottom))
		put_drawing(d, d->waiting[n++]);
	g_object_unref(d->layout);
	d->layout = text;
	d->nwaiting -= n;
	memmove(d->waiting, d->waiting + n, d->nwaiting * sizeof(struct rfl_block *));
}

/* A heading, as the target of links, and its entry in the outline, below its section. */
static void put_heading(struct pdf *d, const struct rfl_block *b, int *section)
{
	const size_t i = (size_t)(b - d->page->blocks);
	const int parent = b->kind == RFL_BLOCK_SECTION ? CAIRO_PDF_OUTLINE_ROOT : *section;
	char target[40], to[48];
	int entry;

	(void)snprintf(target, sizeof(target), "name='block-%zu'", i);
	(void)snprintf(to, sizeof(to), "dest='block-%zu'", i);
	d->sheets[i] = d->sheet;
	cairo_tag_begin(d->cr, CAIRO_TAG_DEST, target);
	put_text(d, &text_styles[b->kind], b->text);
	cairo_tag_end(d->cr, CAIRO_TAG_DEST);
	entry = cairo_pdf_surface_add_outline(d->surface, parent, b->text, to, 0);
	*section = b->kind == RFL_BLOCK_SECTION ? entry : *section;
}

static void put_contents(struct pdf *d)
{
	char to[48], number[16];

	for (size_t i = 0; i < d->page->n; i++) {
		if (d->page->blocks[i].kind != RFL_BLOCK_SECTION)
			continue;
		(void)snprintf(to, sizeof(to), "dest='block-%zu'", i);
		(void)snprintf(number, sizeof(number), "%d", d->sheets[i]);
		need(d, 20);
		cairo_tag_begin(d->cr, CAIRO_TAG_LINK, to);
		put_line(d, &link_style, number, -1, d->y);
		put_text(d, &link_style, d->page->blocks[i].text);
		cairo_tag_end(d->cr, CAIRO_TAG_LINK);
	}
	d->y += 10;
}

/* The height of the first lines of a text, at most two. */
static double begin_of_text(struct pdf *d, const struct style *s, const char *text)
{
	lay_paragraph(d, s, rfl_arena_printf(d->arena, "%.*s", (int)strcspn(text, "\n"), text));
	return s->above +
	       size_of(d->layout, true) * fmin(1, 2.0 / pango_layout_get_line_count(d->layout)) +
	       s->size;
}

/* The height without which a block begins on the next sheet. A heading stays with its text, and a
 * line with the table that follows. Figures can wait. @param above  height of what comes before,
 * from the position on */
static double height_wanted(struct pdf *d, const struct rfl_block *b, double above)
{
	const struct rfl_block *end = d->page->blocks + d->page->n;
	double height, scale;

	switch (b->kind) {
	case RFL_BLOCK_SECTION:
	case RFL_BLOCK_PART:
		height = begin_of_text(d, &text_styles[b->kind], b->text);
		return height + (b + 1 < end ? height_wanted(d, b + 1, above + height) : 0);
	case RFL_BLOCK_FIGURE:
	case RFL_BLOCK_PICTURE:
		return drawing_height(d, b, above, &scale) + CAPTION;
	case RFL_BLOCK_TABLE:
		return begin_of_table(d, b);
	case RFL_BLOCK_LIVE:
		return 0;
	default:
		height = begin_of_text(d, &text_styles[b->kind], b->text);
		return height + (b + 1 < end && b[1].kind == RFL_BLOCK_TABLE &&
						 b->kind == RFL_BLOCK_PARAGRAPH
					 ? height_wanted(d, b + 1, above + height)
					 : 0);
	}
}

static void put_blocks(struct pdf *d)
{
	int section = CAIRO_PDF_OUTLINE_ROOT;

	d->sheet = 1;
	d->y = 0;
	put_text(d, &title_style, d->page->title);
	put_contents(d);
	for (size_t i = 0; i < d->page->n && d->rc == RFL_OK; i++) {
		const struct rfl_block *b = &d->page->blocks[i];
		const char *text = b->text;

		if (b->kind != RFL_BLOCK_FIGURE && b->kind != RFL_BLOCK_PICTURE)
			need(d, height_wanted(d, b, 0));
		switch (b->kind) {
		case RFL_BLOCK_SECTION:
		case RFL_BLOCK_PART:
			put_heading(d, b, &section);
			break;
		case RFL_BLOCK_ITEM:
			put_line(d, &text_styles[b->kind], "\xe2\x80\xa2", 2, d->y);
			put_text(d, &text_styles[b->kind], text);
			break;
		case RFL_BLOCK_AUTHOR:
			text = rfl_arena_printf(d->arena, "Author: %s", text);
			put_text(d, &text_styles[b->kind], text);
			break;
		case RFL_BLOCK_PARAGRAPH:
		case RFL_BLOCK_CODE:
			put_text(d, &text_styles[b->kind], text);
			break;
		case RFL_BLOCK_TABLE:
			put_table(d, b);
			break;
		case RFL_BLOCK_FIGURE:
		case RFL_BLOCK_PICTURE:
			d->waiting[d->nwaiting++] = b;
			put_drawings(d);
			break;
		case RFL_BLOCK_LIVE:
			break;
		}
	}
	while (d->nwaiting)
		next_sheet(d);
	next_sheet(d); /* ends the last one */
	d->nsheets = d->sheet - 1;
}

/* ---- the file ---- */

static cairo_status_t append(void *closure, const unsigned char *data, unsigned len)
{
	if (closure)
		rfl_buf_append(closure, data, len);
	return CAIRO_STATUS_SUCCESS;
}

/* The fonts of the program and of the system, without hinting, so that lines do not depend on the
 * resolution of a screen. */
static PangoContext *fonts_open(const char *dir)
{
	cairo_font_options_t *options = cairo_font_options_create();
	PangoFontMap *map;
	PangoContext *context;

	if (!rfl_file_exists("/etc/fonts/fonts.conf")) { /* fontconfig would print errors */
		static const FcChar8 minimal[] = "<fontconfig><cachedir prefix=\"xdg\">fontconfig"
						 "</cachedir></fontconfig>";
		FcConfig *config = FcConfigCreate();

		(void)FcConfigParseAndLoadFromMemory(config, minimal, FcFalse);
		(void)FcConfigSetCurrent(config);
		FcConfigDestroy(config); /* fontconfig has a reference */
	}
	if (dir)
		(void)FcConfigAppFontAddDir(NULL, (const FcChar8 *)dir);
	/* only now: a new map starts a thread that loads the configuration if there is none */
	map = pango_cairo_font_map_new_for_font_type(CAIRO_FONT_TYPE_FT);
	context = pango_font_map_create_context(map);
	cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
	cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
	cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
	pango_cairo_context_set_font_options(context, options);
	pango_cairo_context_set_resolution(context, 72);
	pango_context_set_round_glyph_positions(context, FALSE);
	pango_context_set_language(context, pango_language_from_string("en"));
	g_object_unref(map); /* the context has a reference */
	cairo_font_options_destroy(options);
	return context;
}

static void *do_nothing(void *arg)
{
	return arg;
}

/* Pango starts a thread, and aborts if it cannot. */
static enum rfl_rc check_threads(struct rfl_err *err)
{
	pthread_t thread;
	const int code = pthread_create(&thread, NULL, do_nothing, NULL);

	if (code)
		return rfl_fail(err, RFL_EFAILED, code,
				"a PDF report needs a thread: %s; raise the limit on processes "
				"(ulimit -u), or write HTML (--output report.html)",
				strerror(code));
	pthread_join(thread, NULL);
	return RFL_OK;
}

/* Write all sheets once. @param out  NULL: only find the sheets of the sections */
static void put_file(struct pdf *d, struct rfl_buf *out)
{
	const double wide = d->page->letter ? 612 : 595.276, high = d->page->letter ? 792 : 841.89;
	cairo_status_t status;

	d->width = wide - 2 * MARGIN;
	d->bottom = high - 2 * MARGIN;
	d->surface = cairo_pdf_surface_create_for_stream(append, out, wide, high);
	d->cr = cairo_create(d->surface);
	cairo_translate(d->cr, MARGIN, MARGIN);
	cairo_pdf_surface_set_metadata(d->surface, CAIRO_PDF_METADATA_TITLE, d->page->title);
	cairo_pdf_surface_set_metadata(d->surface, CAIRO_PDF_METADATA_CREATOR, d->page->generator);
	/* not the time: the same input gives the same bytes */
	cairo_pdf_surface_set_metadata(d->surface, CAIRO_PDF_METADATA_CREATE_DATE,
				       "2000-01-01T00:00:00Z");
	d->layout = pango_layout_new(d->context);
	put_blocks(d);
	g_object_unref(d->layout);
	cairo_destroy(d->cr);
	cairo_surface_finish(d->surface);
	status = cairo_surface_status(d->surface);
	cairo_surface_destroy(d->surface);
	if (status != CAIRO_STATUS_SUCCESS && d->rc == RFL_OK)
		d->rc = rfl_fail(d->err, RFL_EFAILED, (int)status, "report: cairo: %s",
				 cairo_status_to_string(status));
}

enum rfl_rc rfl_page__pdf(const struct rfl_page *p, struct rfl_buf *out, struct rfl_err *err)
{
	struct pdf d = { .page = p, .err = err };

	if (check_threads(err) != RFL_OK)
		return RFL_EFAILED;
	d.arena = rfl_arena_new();
	d.sheets = rfl_arena_array(d.arena, p->n, sizeof(*d.sheets));
	d.grids = rfl_arena_array(d.arena, p->n, sizeof(struct grid *));
	d.waiting = rfl_arena_array(d.arena, p->n, sizeof(struct rfl_block *));
	d.context = fonts_open(p->font_dir);
	put_file(&d, NULL);
	if (d.rc == RFL_OK)
		put_file(&d, out);
	for (size_t i = 0; i < p->n; i++)
		for (size_t c = 0; d.grids[i] && c < d.grids[i]->t.ncolumns; c++)
			g_object_unref(d.grids[i]->columns[c].layout);
	pango_fc_font_map_shutdown(PANGO_FC_FONT_MAP(pango_context_get_font_map(d.context)));
	g_object_unref(d.context);
	rfl_arena_free(d.arena);
	return d.rc;
}
