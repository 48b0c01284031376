/*
 * table.c - the cells of a table. table_render.c turns them into text.
 */
#include "base/table_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rfl_format_names[] = { "table", "csv", "json", "md", NULL };

struct rfl_table *rfl_table_new(const struct rfl_column *columns, size_t n)
{
	struct rfl_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->arena = rfl_arena_new(0);
	t->columns = rfl_alloc_array(n, sizeof(*t->columns));
	if (!t->arena || !t->columns) {
		rfl_table_free(t);
		return NULL;
	}
	memcpy(t->columns, columns, n * sizeof(*columns));
	t->ncolumns = n;
	return t;
}

void rfl_table_free(struct rfl_table *t)
{
	if (!t)
		return;
	rfl_arena_free(t->arena);
	free(t->columns);
	free(t->cells);
	free(t->notes);
	free(t);
}

/* The next cell, or NULL after a failure. */
static struct rfl_table__cell *new_cell(struct rfl_table *t, enum rfl_table__kind kind)
{
	if (t->failed)
		return NULL;
	if (t->ncells == t->cells_cap) {
		size_t cap = t->cells_cap ? 2 * t->cells_cap : 64;
		struct rfl_table__cell *cells = realloc(t->cells, cap * sizeof(*cells));

		if (!cells) {
			t->failed = true;
			return NULL;
		}
		t->cells = cells;
		t->cells_cap = cap;
	}
	t->cells[t->ncells] = (struct rfl_table__cell){ .kind = kind };
	return &t->cells[t->ncells++];
}

void rfl_table_null(struct rfl_table *t)
{
	(void)new_cell(t, RFL_TABLE__NULL);
}

void rfl_table_text(struct rfl_table *t, const char *value)
{
	struct rfl_table__cell *cell;

	if (!value) {
		rfl_table_null(t);
		return;
	}
	cell = new_cell(t, RFL_TABLE__TEXT);
	if (!cell)
		return;
	cell->text = rfl_arena_strdup(t->arena, value);
	if (!cell->text) {
		t->ncells--;
		t->failed = true;
	}
}

void rfl_table_int(struct rfl_table *t, int64_t value)
{
	struct rfl_table__cell *cell = new_cell(t, RFL_TABLE__INT);

	if (cell)
		cell->integer = value;
}

void rfl_table_real(struct rfl_table *t, double value)
{
	struct rfl_table__cell *cell =
		new_cell(t, isnan(value) ? RFL_TABLE__NULL : RFL_TABLE__REAL);

	if (cell)
		cell->real = value;
}

size_t rfl_table_rows(const struct rfl_table *t)
{
	return t->ncolumns ? t->ncells / t->ncolumns : 0;
}

/* vsnprintf through the arena, which has only the variadic form. */
static char *format_note(struct rfl_arena *a, const char *fmt, va_list ap) RFL_VPRINTF(2);

static char *format_note(struct rfl_arena *a, const char *fmt, va_list ap)
{
	va_list again;
	char *text = NULL;
	int len;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len >= 0)
		text = rfl_arena_array(a, (size_t)len + 1, 1);
	if (text)
		vsnprintf(text, (size_t)len + 1, fmt, ap);
	return text;
}

void rfl_table_note(struct rfl_table *t, const char *fmt, ...)
{
	const char **notes;
	va_list ap;
	char *text;

	if (t->failed)
		return;
	va_start(ap, fmt);
	text = format_note(t->arena, fmt, ap);
	va_end(ap);
	notes = text ? realloc(t->notes, (t->nnotes + 1) * sizeof(*notes)) : NULL;
	if (!notes) {
		t->failed = true;
		return;
	}
	notes[t->nnotes++] = text;
	t->notes = notes;
}

void rfl_table_note_lines(struct rfl_table *t, const char *lines)
{
	while (*lines) {
		size_t len = strcspn(lines, "\n");

		rfl_table_note(t, "%.*s", (int)len, lines);
		lines += len + (lines[len] == '\n');
	}
}
