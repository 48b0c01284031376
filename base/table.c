/*
 * table.c - the cells of a table. table_render.c turns them into text.
 */
#include "base/table_impl.h"

#include <math.h>
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
	if (rfl_grow(&t->cells, &t->cells_cap, t->ncells + 1, SIZE_MAX, NULL)) {
		t->failed = true;
		return NULL;
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

void rfl_table_note(struct rfl_table *t, const char *fmt, ...)
{
	struct rfl_buf text;
	va_list ap;

	if (t->failed)
		return;
	rfl_buf_init(&text, 0);
	va_start(ap, fmt);
	rfl_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	t->failed = text.failed ||
		    rfl_grow(&t->notes, &t->notes_cap, t->nnotes + 1, SIZE_MAX, NULL) != RFL_OK;
	if (!t->failed) {
		t->notes[t->nnotes] = rfl_arena_strdup(t->arena, rfl_buf_str(&text));
		t->failed = !t->notes[t->nnotes];
		t->nnotes += !t->failed;
	}
	rfl_buf_fini(&text);
}

void rfl_table_note_lines(struct rfl_table *t, const char *lines)
{
	while (*lines) {
		size_t len = strcspn(lines, "\n");

		rfl_table_note(t, "%.*s", (int)len, lines);
		lines += len + (lines[len] == '\n');
	}
}
