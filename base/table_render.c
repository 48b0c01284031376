/*
 * table_render.c - a table as aligned text, CSV, JSON and Markdown.
 */
#include "base/table_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/json.h"
#include "base/num.h"
#include "base/text.h"

#define UNKNOWN "-" /* what people see where nothing is known */

static const struct rfl_table__cell *cell_at(const struct rfl_table *t, size_t row, size_t column)
{
	return &t->cells[row * t->ncolumns + column];
}

static bool is_number_column(const struct rfl_column *c)
{
	return c->kind != RFL_COLUMN_TEXT;
}

/* What is left of a number under the column's title. Nothing at all is no rounded number. */
static const char *number_for_people(const struct rfl_column *c, double value,
				     char out[RFL_NUM_MAX])
{
	if (value == 0)
		return "0";
	if (c->scale != 0)
		value /= c->scale;
	if (c->decimals > 0)
		return rfl_num_fixed(value, c->decimals, out);
	return rfl_num_people(value, c->digits > 0 ? c->digits : 4, out);
}

/* The text of a cell as people read it; `number` is room for it when it is no text already. */
static const char *for_people(const struct rfl_column *c, const struct rfl_table__cell *cell,
			      char number[RFL_NUM_MAX])
{
	bool scaled = (c->scale != 0 && c->scale != 1) || c->decimals > 0;

	switch (cell->kind) {
	case RFL_TABLE__NULL:
		return UNKNOWN;
	case RFL_TABLE__TEXT:
		return cell->text;
	case RFL_TABLE__INT:
		return scaled ? number_for_people(c, (double)cell->integer, number)
			      : rfl_num_grouped(cell->integer, number);
	case RFL_TABLE__REAL:
		break;
	}
	return number_for_people(c, cell->real, number);
}

/* --- aligned text ---------------------------------------------------------------------------- */

/* Columns on a terminal: characters, not bytes. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void repeat(struct rfl_buf *out, char c, size_t n)
{
	while (n-- > 0)
		rfl_buf_putc(out, c);
}

/* One line stays one line. */
static void put_line_text(struct rfl_buf *out, const char *s)
{
	for (; *s != '\0'; s++)
		rfl_buf_putc(out, *s == '\n' || *s == '\r' || *s == '\t' ? ' ' : *s);
}

static void put_aligned(const struct rfl_table *t, size_t column, const char *s, size_t width,
			struct rfl_buf *out)
{
	size_t pad = width - width_of(s);
	bool right = is_number_column(&t->columns[column]);

	if (column > 0)
		rfl_buf_puts(out, "  ");
	if (right)
		repeat(out, ' ', pad);
	put_line_text(out, s);
	if (!right && column + 1 < t->ncolumns) /* no blanks at the end of a line */
		repeat(out, ' ', pad);
}

/* Every cell as people read it, row by row; numbers live in the arena. NULL out of memory. */
static const char **show_cells(const struct rfl_table *t, struct rfl_arena *a)
{
	const char **shown = rfl_arena_array(a, t->ncells, sizeof(*shown));

	for (size_t i = 0; shown && i < t->ncells; i++) {
		char number[RFL_NUM_MAX];
		const char *text = for_people(&t->columns[i % t->ncolumns], &t->cells[i], number);

		shown[i] = text == number ? rfl_arena_strdup(a, number) : text;
		if (!shown[i])
			return NULL;
	}
	return shown;
}

static void measure(const struct rfl_table *t, const char *const *shown, size_t *widths)
{
	for (size_t c = 0; c < t->ncolumns; c++)
		widths[c] = width_of(t->columns[c].title);
	for (size_t i = 0; i < t->ncells; i++) {
		size_t w = width_of(shown[i]);

		if (w > widths[i % t->ncolumns])
			widths[i % t->ncolumns] = w;
	}
}

static void put_notes(const struct rfl_table *t, const char *line_end, struct rfl_buf *out)
{
	if (t->nnotes > 0)
		rfl_buf_putc(out, '\n');
	for (size_t i = 0; i < t->nnotes; i++) {
		rfl_buf_puts(out, t->notes[i]);
		rfl_buf_puts(out, i + 1 < t->nnotes ? line_end : "\n");
	}
}

static enum rfl_rc render_text(const struct rfl_table *t, size_t *widths, struct rfl_buf *out,
			       struct rfl_err *err)
{
	struct rfl_arena *a = rfl_arena_new(SIZE_MAX / 2);
	const char **shown = a ? show_cells(t, a) : NULL;

	if (!shown) {
		rfl_arena_free(a);
		return rfl_fail(err, RFL_ENOMEM, 0, "table: out of memory");
	}
	measure(t, shown, widths);
	for (size_t c = 0; c < t->ncolumns; c++)
		put_aligned(t, c, t->columns[c].title, widths[c], out);
	rfl_buf_putc(out, '\n');
	for (size_t c = 0; c < t->ncolumns; c++) {
		rfl_buf_puts(out, c ? "  " : "");
		repeat(out, '-', widths[c]);
	}
	rfl_buf_putc(out, '\n');
	for (size_t i = 0; i < t->ncells; i++) {
		size_t c = i % t->ncolumns;

		put_aligned(t, c, shown[i], widths[c], out);
		if (c + 1 == t->ncolumns)
			rfl_buf_putc(out, '\n');
	}
	put_notes(t, "\n", out);
	rfl_arena_free(a);
	return RFL_OK;
}

/* --- Markdown -------------------------------------------------------------------------------- */

static void put_markdown(struct rfl_buf *out, const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == '\n')
			rfl_buf_puts(out, "<br>");
		else if (*s == '|' || *s == '\\')
			rfl_buf_printf(out, "\\%c", *s);
		else if (*s != '\r')
			rfl_buf_putc(out, *s);
	}
}

static void render_markdown(const struct rfl_table *t, struct rfl_buf *out)
{
	char number[RFL_NUM_MAX];

	for (size_t c = 0; c < t->ncolumns; c++) {
		rfl_buf_puts(out, c ? " | " : "| ");
		put_markdown(out, t->columns[c].title);
	}
	rfl_buf_puts(out, " |\n");
	for (size_t c = 0; c < t->ncolumns; c++)
		rfl_buf_puts(out, is_number_column(&t->columns[c]) ? "|---:" : "|:---");
	rfl_buf_puts(out, "|\n");
	for (size_t r = 0; r < rfl_table_rows(t); r++) {
		for (size_t c = 0; c < t->ncolumns; c++) {
			rfl_buf_puts(out, c ? " | " : "| ");
			put_markdown(out, for_people(&t->columns[c], cell_at(t, r, c), number));
		}
		rfl_buf_puts(out, " |\n");
	}
	put_notes(t, "  \n", out); /* two blanks: a line break */
}

/* --- machine forms --------------------------------------------------------------------------- */

/* The exact value as text; "" when it is not known. */
static const char *exact(const struct rfl_table__cell *cell, char number[RFL_NUM_MAX])
{
	switch (cell->kind) {
	case RFL_TABLE__NULL:
		return "";
	case RFL_TABLE__TEXT:
		return cell->text;
	case RFL_TABLE__INT:
		snprintf(number, RFL_NUM_MAX, "%lld", (long long)cell->integer);
		break;
	case RFL_TABLE__REAL:
		rfl_num_exact(cell->real, number);
		break;
	}
	return number;
}

static void render_csv(const struct rfl_table *t, const char **fields, char (*numbers)[RFL_NUM_MAX],
		       struct rfl_buf *out)
{
	for (size_t c = 0; c < t->ncolumns; c++)
		fields[c] = t->columns[c].key;
	rfl_csv_write_row(out, fields, t->ncolumns);
	for (size_t r = 0; r < rfl_table_rows(t); r++) {
		for (size_t c = 0; c < t->ncolumns; c++)
			fields[c] = exact(cell_at(t, r, c), numbers[c]);
		rfl_csv_write_row(out, fields, t->ncolumns);
	}
}

static void put_json_cell(const struct rfl_table__cell *cell, struct rfl_buf *out)
{
	switch (cell->kind) {
	case RFL_TABLE__NULL:
		rfl_buf_puts(out, "null");
		break;
	case RFL_TABLE__TEXT:
		rfl_json_write_string(out, cell->text, strlen(cell->text));
		break;
	case RFL_TABLE__INT:
		rfl_buf_printf(out, "%lld", (long long)cell->integer);
		break;
	case RFL_TABLE__REAL:
		rfl_json_write_real(out, cell->real);
		break;
	}
}

/* One object per line: as easy for grep as for a parser. */
static void render_json(const struct rfl_table *t, struct rfl_buf *out)
{
	size_t rows = rfl_table_rows(t);

	rfl_buf_puts(out, rows ? "[\n" : "[");
	for (size_t r = 0; r < rows; r++) {
		rfl_buf_puts(out, "  {");
		for (size_t c = 0; c < t->ncolumns; c++) {
			rfl_buf_puts(out, c ? ", " : "");
			rfl_json_write_string(out, t->columns[c].key, strlen(t->columns[c].key));
			rfl_buf_puts(out, ": ");
			put_json_cell(cell_at(t, r, c), out);
		}
		rfl_buf_puts(out, r + 1 < rows ? "},\n" : "}\n");
	}
	rfl_buf_puts(out, "]\n");
}

enum rfl_rc rfl_table_render(const struct rfl_table *t, enum rfl_format format, struct rfl_buf *out,
			     struct rfl_err *err)
{
	const char **fields = NULL;
	char(*numbers)[RFL_NUM_MAX] = NULL;
	size_t *widths = NULL;
	const size_t begin = out->len;
	enum rfl_rc rc = RFL_OK;

	if (t->failed)
		return rfl_fail(err, RFL_ENOMEM, 0, "table: out of memory");
	if (t->ncolumns && t->ncells % t->ncolumns != 0)
		return rfl_fail(err, RFL_EINVAL, 0, "table: the last row has %zu of %zu cells",
				t->ncells % t->ncolumns, t->ncolumns);
	fields = rfl_alloc_array(t->ncolumns, sizeof(*fields));
	numbers = rfl_alloc_array(t->ncolumns, sizeof(*numbers));
	widths = rfl_alloc_array(t->ncolumns, sizeof(*widths));
	if (!fields || !numbers || !widths) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "table: out of memory");
		goto done;
	}
	switch (format) {
	case RFL_FORMAT_TABLE:
		rc = render_text(t, widths, out, err);
		break;
	case RFL_FORMAT_CSV:
		render_csv(t, fields, numbers, out);
		break;
	case RFL_FORMAT_JSON:
		render_json(t, out);
		break;
	case RFL_FORMAT_MD:
		render_markdown(t, out);
		break;
	}
	if (format == RFL_FORMAT_TABLE || format == RFL_FORMAT_MD)
		rfl_text_mask_from(out, begin);
	if (rc == RFL_OK)
		rc = rfl_buf_check(out, "table", err);
done:
	free(fields);
	free(numbers);
	free(widths);
	return rc;
}
