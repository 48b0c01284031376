/* table.c - the cells of a table, and its output formats. */
#include "report/table.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/num.h"
#include "base/text.h"
#include "report/page.h"

#define UNKNOWN    "-" /* in tables for people */
#define SHORT_TEXT 16  /* characters of a cell that stay on one line in HTML */

const char *const rfl_format_names[] = { "table", "csv", "json", "md", NULL };

struct cell {
	enum { CELL_NULL, CELL_TEXT, CELL_BOOL, CELL_INT, CELL_REAL } kind;
	union {
		const char *text; /* also of a CELL_BOOL */
		int64_t integer;
		double real;
	};
};

struct rfl_table {
	struct rfl_arena *arena; /* owns all but cells and notes, which grow */
	struct rfl_column *columns;
	size_t ncolumns;
	size_t *widths;     /* column widths in characters */
	struct cell *cells; /* row by row */
	size_t ncells, cells_cap;
	const char **notes;
	size_t nnotes, notes_cap;
	const char *row_number; /* attribute of rows in HTML; NULL: none */
};

struct rfl_table *rfl_table_of(const struct rfl_column *columns, size_t n, unsigned given)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_table *t = rfl_arena_array(arena, 1, sizeof(*t));

	t->arena = arena;
	t->columns = rfl_arena_array(arena, n, sizeof(*t->columns));
	t->widths = rfl_arena_array(arena, n, sizeof(*t->widths));
	for (size_t i = 0; i < n; i++) {
		struct rfl_column *c = &t->columns[t->ncolumns];

		if (columns[i].when & ~given)
			continue;
		*c = columns[i];
		if (c->field) {
			c->kind = (enum rfl_column_kind)c->field->kind;
			c->key = c->key ? c->key : c->field->name;
			c->title = c->title ? c->title : c->field->name;
		}
		t->ncolumns++;
	}
	return t;
}

struct rfl_table *rfl_table_new(const struct rfl_column *columns, size_t n)
{
	return rfl_table_of(columns, n, ~0U);
}

void rfl_table_free(struct rfl_table *t)
{
	if (!t)
		return;
	free(t->cells);
	free(t->notes);
	rfl_arena_free(t->arena);
}

static void add_cell(struct rfl_table *t, struct cell cell)
{
	rfl_reserve(&t->cells, &t->cells_cap, t->ncells + 1);
	t->cells[t->ncells++] = cell;
}

void rfl_table_text(struct rfl_table *t, const char *value)
{
	add_cell(t, (struct cell){ .kind = value ? CELL_TEXT : CELL_NULL,
				   .text = rfl_arena_strdup(t->arena, value) });
}

void rfl_table_int(struct rfl_table *t, int64_t value)
{
	add_cell(t, (struct cell){ .kind = value == RFL_INT_UNKNOWN ? CELL_NULL : CELL_INT,
				   .integer = value });
}

void rfl_table_real(struct rfl_table *t, double value)
{
	add_cell(t,
		 (struct cell){ .kind = isfinite(value) ? CELL_REAL : CELL_NULL, .real = value });
}

static void add_member(struct rfl_table *t, const struct rfl_column *c, const void *row)
{
	union {
		bool flag;
		const char *text;
		const void *row;
		int small;
		int64_t integer;
		double real;
	} v;

	if (c->put) {
		c->put(t, row);
		return;
	}
	memcpy(&v, (const char *)row + c->at, c->size);
	if (c->field) {
		const void *at = c->size ? v.row : row;

		if (!rfl_field_known(c->field, at))
			rfl_table_text(t, NULL);
		else if (c->kind == RFL_COLUMN_TEXT)
			rfl_table_text(t, *rfl_field_text_at(c->field, at));
		else if (c->kind == RFL_COLUMN_REAL)
			rfl_table_real(t, *rfl_field_real_at(c->field, at));
		else
			rfl_table_int(t, *rfl_field_int_at(c->field, at));
	} else if (c->kind == RFL_COLUMN_TEXT && c->size == sizeof(v.flag))
		add_cell(t, (struct cell){ .kind = CELL_BOOL, .text = v.flag ? "True" : "False" });
	else if (c->kind == RFL_COLUMN_TEXT)
		rfl_table_text(t, v.text);
	else if (c->kind == RFL_COLUMN_REAL)
		rfl_table_real(t, v.real);
	else
		rfl_table_int(t, c->size == sizeof(v.small) ? v.small : v.integer);
}

void rfl_table_add(struct rfl_table *t, const void *rows, size_t n, size_t row_size)
{
	for (size_t r = 0; r < n; r++)
		for (size_t c = 0; c < t->ncolumns; c++)
			add_member(t, &t->columns[c], (const char *)rows + r * row_size);
}

size_t rfl_table_rows(const struct rfl_table *t)
{
	return t->ncolumns ? t->ncells / t->ncolumns : 0;
}

void rfl_table_number_rows(struct rfl_table *t, const char *attribute)
{
	t->row_number = attribute;
}

void rfl_table_note(struct rfl_table *t, const char *fmt, ...)
{
	RFL_AUTO(buf) text = { .len = 0 };
	va_list ap;

	va_start(ap, fmt);
	rfl_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	rfl_text_mask_from(&text, 0);
	rfl_reserve(&t->notes, &t->notes_cap, t->nnotes + 1);
	t->notes[t->nnotes++] = rfl_arena_strdup(t->arena, rfl_buf_str(&text));
}

void rfl_table_note_lines(struct rfl_table *t, const char *lines)
{
	while (*lines) {
		size_t len = strcspn(lines, "\n");

		rfl_table_note(t, "%.*s", (int)len, lines);
		lines += len + (lines[len] == '\n');
	}
}

/* Return the text of a cell for people, with numbers in the unit of the title.
 * @param number  buffer for a number */
static const char *for_people(const struct rfl_table *t, size_t i, char number[RFL_NUM_MAX])
{
	const struct rfl_column *c = &t->columns[i % t->ncolumns];
	const struct cell *cell = &t->cells[i];
	const double scale = c->scale != 0 ? c->scale : 1;
	double value;

	if (cell->kind == CELL_NULL)
		return UNKNOWN;
	if (cell->kind == CELL_TEXT || cell->kind == CELL_BOOL)
		return cell->text;
	if (cell->kind == CELL_INT && scale == 1 && c->decimals == 0)
		return rfl_num_grouped(cell->integer, number);
	value = cell->kind == CELL_INT ? (double)cell->integer : cell->real;
	if (value == 0) /* exactly 0 */
		return "0";
	return c->decimals > 0
		       ? rfl_num_fixed(value / scale, c->decimals, number)
		       : rfl_num_people(value / scale, c->digits > 0 ? c->digits : 4, number);
}

/* In Markdown, "<float>" would be an invisible HTML element; "<0.1" is text. */
static bool begins_html(const char *s)
{
	return *s == '<' && (isalpha((unsigned char)s[1]) || (s[1] && strchr("/!?", s[1])));
}

void rfl_md_put(struct rfl_buf *out, const char *text, const char *more, const char *line_break)
{
	for (const char *s = text; *s; s++) {
		const bool inside = *s == '_' && s > text && isalnum((unsigned char)s[-1]) &&
				    isalnum((unsigned char)s[1]);

		if (*s == '\n') {
			rfl_buf_puts(out, line_break);
		} else if (*s != '\r') {
			if (strchr("*`[\\&~", *s) || (*s == '_' && !inside) || begins_html(s) ||
			    strchr(more, *s))
				rfl_buf_putc(out, '\\');
			rfl_buf_putc(out, *s);
		}
	}
}

static void put_notes(const struct rfl_table *t, bool markdown, struct rfl_buf *out)
{
	if (t->nnotes > 0)
		rfl_buf_putc(out, '\n');
	for (size_t i = 0; i < t->nnotes; i++) {
		if (markdown)
			rfl_md_put(out, t->notes[i], "", "\n");
		else
			rfl_buf_puts(out, t->notes[i]);
		/* in Markdown, two trailing blanks are a line break */
		rfl_buf_puts(out, markdown && i + 1 < t->nnotes ? "  \n" : "\n");
	}
}

/* Return the width on a terminal: the number of characters, not bytes. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void put_aligned(const struct rfl_table *t, size_t column, const char *s,
			struct rfl_buf *out)
{
	const int pad = (int)(t->widths[column] - width_of(s));
	const bool right = t->columns[column].kind != RFL_COLUMN_TEXT;

	rfl_buf_printf(out, "%s%*s", column ? "  " : "", right ? pad : 0, "");
	for (; *s != '\0'; s++) /* keep the cell on one line */
		rfl_buf_putc(out, *s == '\n' ? ' ' : *s);
	if (column + 1 == t->ncolumns)
		rfl_buf_putc(out, '\n');
	else /* no trailing blanks */
		rfl_buf_printf(out, "%*s", right ? 0 : pad, "");
}

struct rfl_table_texts rfl_table_texts(const struct rfl_table *t, struct rfl_arena *arena)
{
	const size_t n = t->ncolumns + t->ncells;
	const struct rfl_table_texts ret = {
		.ncolumns = t->ncolumns,
		.nrows = 1 + rfl_table_rows(t),
		.cells = rfl_arena_array(arena, n + 1, sizeof(*ret.cells)),
		.columns = t->columns,
		.nnotes = t->nnotes,
		.notes = t->notes,
	};
	char number[RFL_NUM_MAX];

	for (size_t i = 0; i < n; i++) {
		char *text = rfl_arena_strdup(
			arena, i < t->ncolumns ? t->columns[i].title
					       : for_people(t, i - t->ncolumns, number));

		for (char *s = text; *s; s++)
			*s = *s == '\t' || *s == '\r' ? ' ' : *s;
		text[rfl_text_mask(text, strlen(text), true)] = '\0';
		ret.cells[i] = text;
	}
	return ret;
}

static void render_text(const struct rfl_table *t, struct rfl_buf *out)
{
	const struct rfl_table_texts texts = rfl_table_texts(t, t->arena);

	memset(t->widths, 0, t->ncolumns * sizeof(*t->widths));
	for (size_t i = 0; i < texts.ncolumns * texts.nrows; i++) {
		const size_t width = width_of(texts.cells[i]);

		if (width > t->widths[i % t->ncolumns])
			t->widths[i % t->ncolumns] = width;
	}
	for (size_t i = 0; i < texts.ncolumns * texts.nrows; i++) {
		put_aligned(t, i % t->ncolumns, texts.cells[i], out);
		for (size_t c = 0; i + 1 == t->ncolumns && c < t->ncolumns; c++) {
			for (size_t k = 0; k < t->widths[c]; k++)
				rfl_buf_putc(out, '-');
			rfl_buf_puts(out, c + 1 < t->ncolumns ? "  " : "\n");
		}
	}
	put_notes(t, false, out);
}

static void put_markdown(const struct rfl_table *t, size_t i, const char *text, struct rfl_buf *out)
{
	rfl_buf_puts(out, i % t->ncolumns ? " | " : "| ");
	rfl_md_put(out, text, "|", "<br>");
	if ((i + 1) % t->ncolumns == 0)
		rfl_buf_puts(out, " |\n");
}

/* Write a value for programs, as JSON or CSV. */
static void put_exact(const struct cell *cell, bool json, struct rfl_buf *out)
{
	char number[RFL_NUM_MAX];

	switch (cell->kind) {
	case CELL_NULL:
		rfl_buf_puts(out, json ? "null" : "");
		break;
	case CELL_TEXT:
		if (json)
			rfl_json_write_string(out, cell->text, strlen(cell->text));
		else
			rfl_csv_write_field(out, cell->text);
		break;
	case CELL_BOOL:
		rfl_buf_puts(out, !json ? cell->text : cell->text[0] == 'T' ? "true" : "false");
		break;
	case CELL_INT:
		rfl_buf_printf(out, "%lld", (long long)cell->integer);
		break;
	case CELL_REAL:
		if (json)
			rfl_json_write_real(out, cell->real);
		else
			rfl_buf_puts(out, rfl_num_exact(cell->real, number));
		break;
	}
}

/* A first column of texts names the rows. Rounded numbers carry their exact values. Columns have a
 * class for their alignment and line breaks: n (numbers), k (short texts), w (long texts). */
static void render_html(const struct rfl_table *t, struct rfl_buf *out)
{
	char number[RFL_NUM_MAX];

	memset(t->widths, 0, t->ncolumns * sizeof(*t->widths));
	for (size_t i = 0; i < t->ncells; i++)
		if (t->cells[i].kind == CELL_TEXT && width_of(t->cells[i].text) > SHORT_TEXT)
			t->widths[i % t->ncolumns] = 1;

	rfl_buf_puts(
		out,
		"<div class=\"scroll\" tabindex=\"0\">\n<table class=\"data\">\n<thead>\n<tr>");
	for (size_t c = 0; c < t->ncolumns; c++) {
		rfl_buf_printf(out, "<th scope=\"col\"%s>",
			       t->columns[c].kind != RFL_COLUMN_TEXT ? " class=\"n\"" : "");
		rfl_html_escape(out, t->columns[c].title);
		rfl_buf_puts(out, "</th>");
	}
	rfl_buf_puts(out, "</tr>\n</thead>\n<tbody>\n");
	for (size_t i = 0; i < t->ncells; i++) {
		const size_t c = i % t->ncolumns;
		const bool text = t->columns[c].kind == RFL_COLUMN_TEXT, head = c == 0 && text;

		if (c == 0 && t->row_number)
			rfl_buf_printf(out, "<tr %s=\"%zu\">", t->row_number, i / t->ncolumns);
		else if (c == 0)
			rfl_buf_puts(out, "<tr>");
		rfl_buf_puts(out, head ? "<th scope=\"row\"" : "<td");
		rfl_buf_printf(out, " class=\"%c\"", !text ? 'n' : t->widths[c] ? 'w' : 'k');
		if (t->cells[i].kind == CELL_INT || t->cells[i].kind == CELL_REAL) {
			rfl_buf_puts(out, " data-value=\"");
			put_exact(&t->cells[i], false, out);
			rfl_buf_putc(out, '"');
		}
		rfl_buf_putc(out, '>');
		rfl_html_escape(out, for_people(t, i, number));
		rfl_buf_printf(out, "%s%s", head ? "</th>" : "</td>",
			       c + 1 == t->ncolumns ? "</tr>\n" : "");
	}
	rfl_buf_puts(out, "</tbody>\n</table>\n</div>\n");
	rfl_buf_puts(out, t->nnotes ? "<ul class=\"notes\">\n" : "");
	for (size_t i = 0; i < t->nnotes; i++) {
		rfl_buf_puts(out, "<li>");
		rfl_html_escape(out, t->notes[i]);
		rfl_buf_puts(out, "</li>\n");
	}
	rfl_buf_puts(out, t->nnotes ? "</ul>\n" : "");
}

void rfl_table_render(const struct rfl_table *t, enum rfl_format format, struct rfl_buf *out)
{
	const size_t begin = out->len;
	char number[RFL_NUM_MAX];

	assert(t->ncolumns == 0 || t->ncells % t->ncolumns == 0);
	switch (format) {
	case RFL_FORMAT_TABLE:
		render_text(t, out);
		break;
	case RFL_FORMAT_CSV:
		for (size_t c = 0; c < t->ncolumns; c++) {
			rfl_csv_write_field(out, t->columns[c].key);
			rfl_buf_putc(out, c + 1 < t->ncolumns ? ',' : '\n');
		}
		for (size_t i = 0; i < t->ncells; i++) {
			const size_t before = out->len;

			put_exact(&t->cells[i], false, out);
			/* A single empty field would be an empty line, which readers skip. */
			if (t->ncolumns == 1 && out->len == before)
				rfl_buf_puts(out, "\"\"");
			rfl_buf_putc(out, (i + 1) % t->ncolumns ? ',' : '\n');
		}
		break;
	case RFL_FORMAT_JSON: /* one object per line, which also suits grep */
		rfl_buf_puts(out, t->ncells ? "[\n" : "[");
		for (size_t i = 0; i < t->ncells; i++) {
			const char *key = t->columns[i % t->ncolumns].key;

			rfl_buf_puts(out, i % t->ncolumns ? ", " : "  {");
			rfl_json_write_string(out, key, strlen(key));
			rfl_buf_puts(out, ": ");
			put_exact(&t->cells[i], true, out);
			if ((i + 1) % t->ncolumns == 0)
				rfl_buf_puts(out, i + 1 < t->ncells ? "},\n" : "}\n");
		}
		rfl_buf_puts(out, "]\n");
		break;
	case RFL_FORMAT_MD:
		for (size_t c = 0; c < t->ncolumns; c++)
			put_markdown(t, c, t->columns[c].title, out);
		for (size_t c = 0; c < t->ncolumns; c++)
			rfl_buf_puts(out,
				     t->columns[c].kind != RFL_COLUMN_TEXT ? "|---:" : "|:---");
		rfl_buf_puts(out, "|\n");
		for (size_t i = 0; i < t->ncells; i++)
			put_markdown(t, i, for_people(t, i, number), out);
		put_notes(t, true, out);
		break;
	case RFL_FORMAT_HTML:
		render_html(t, out);
		break;
	case RFL_FORMAT_PDF:
		assert(false);
		break;
	}
	if (rfl_format_for_people(format))
		rfl_text_mask_from(out, begin);
}

/* What people need not see in a column: nothing, all of it, or that it is the same everywhere. */
enum spare { NEEDED, EMPTY, SAME };

static enum spare spare_of(const struct rfl_table *t, size_t column)
{
	char first[RFL_NUM_MAX], number[RFL_NUM_MAX];
	const char *text = for_people(t, column, first);
	bool empty = t->cells[column].kind == CELL_NULL, same = !empty;

	for (size_t i = column + t->ncolumns; i < t->ncells && (empty || same); i += t->ncolumns) {
		empty = empty && t->cells[i].kind == CELL_NULL;
		same = same && strcmp(for_people(t, i, number), text) == 0;
	}
	return empty ? EMPTY : same && t->columns[column].setting ? SAME : NEEDED;
}

void rfl_table_trim(struct rfl_table *t)
{
	const size_t before = t->ncolumns, ncells = t->ncells;
	enum spare *spare = rfl_arena_array(t->arena, before, sizeof(*spare));
	RFL_AUTO(buf) note = { .len = 0 };
	char number[RFL_NUM_MAX];

	if (ncells == 0)
		return;
	for (size_t c = 0; c < before; c++) {
		spare[c] = spare_of(t, c);
		if (spare[c] == SAME)
			rfl_buf_printf(&note, "%s %s %s",
				       note.len ? "," : "In all rows:", t->columns[c].title,
				       for_people(t, c, number));
	}
	t->ncolumns = t->ncells = 0;
	for (size_t i = 0; i < ncells; i++) {
		if (spare[i % before] != NEEDED)
			continue;
		t->cells[t->ncells++] = t->cells[i];
		if (i < before)
			t->columns[t->ncolumns++] = t->columns[i];
	}
	if (note.len)
		rfl_table_note(t, "%s.", rfl_buf_str(&note));
}

void rfl_table_finish(struct rfl_table *take_t, enum rfl_format format, struct rfl_buf *out)
{
	if (rfl_format_for_people(format))
		rfl_table_trim(take_t);
	rfl_table_render(take_t, format, out);
	rfl_table_free(take_t);
}
