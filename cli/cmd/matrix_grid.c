/*
 * matrix_grid.c - how much of a matrix is done, as tables: models down, batch sizes across. Sorted
 * and not searched: a matrix may have 100,000 cells.
 */
#include "cli/cmd/matrix_grid.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static enum rfl_rc no_memory(const struct rfl_matrix *m, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
}

/* ---- where a cell stands ---- */

/* Where a cell stands: in the table of its environment and precision, in the row of its model and
 * variant. Cells of one model and batch differ in their options only: the k-th of them, from 0, is
 * variant k. Tables and rows are told by the first of their cells in the file. */
struct place {
	const struct rfl_matrix_cell *cell;
	const struct rfl_matrix_share *share;
	const struct rfl_matrix_cell *table, *row;
	size_t variant;
};

static int compare_firsts(const struct rfl_matrix_cell *a, const struct rfl_matrix_cell *b)
{
	return (a > b) - (a < b);
}

static int compare_batches(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_tables(const struct rfl_matrix_cell *a, const struct rfl_matrix_cell *b)
{
	int order = strcmp(a->env, b->env);

	return order ? order : strcmp(a->precision, b->precision);
}

static int by_words(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = compare_tables(x->cell, y->cell);

	if (order == 0)
		order = strcmp(x->cell->model, y->cell->model);
	if (order == 0)
		order = compare_batches(x->cell->batch, y->cell->batch);
	return order ? order : compare_firsts(x->cell, y->cell);
}

/* Whose rows are the same: by_words(), but the variant in place of the batch. */
static int compare_rows(const struct place *x, const struct place *y)
{
	int order = compare_firsts(x->table, y->table);

	if (order == 0)
		order = strcmp(x->cell->model, y->cell->model);
	return order ? order : (x->variant > y->variant) - (x->variant < y->variant);
}

static int by_rows(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = compare_rows(x, y);

	return order ? order : compare_firsts(x->cell, y->cell);
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = compare_firsts(x->table, y->table);

	if (order == 0)
		order = compare_firsts(x->row, y->row);
	return order ? order : compare_batches(x->cell->batch, y->cell->batch);
}

/* In the order of by_words(): variants, and the first cell of each table. */
static void find_tables(struct place *places, size_t n)
{
	for (size_t begin = 0, end; begin < n; begin = end) {
		const struct rfl_matrix_cell *first = places[begin].cell;

		for (end = begin;
		     end < n && compare_tables(places[begin].cell, places[end].cell) == 0; end++) {
			const struct rfl_matrix_cell *c = places[end].cell;
			const struct place *before = end > begin ? &places[end - 1] : NULL;
			const bool again = before && before->cell->batch == c->batch &&
					   strcmp(before->cell->model, c->model) == 0;

			places[end].variant = again ? before->variant + 1 : 0;
			first = c < first ? c : first;
		}
		for (size_t i = begin; i < end; i++)
			places[i].table = first;
	}
}

/* In the order of by_rows(): the first cell of each row. */
static void find_rows(struct place *places, size_t n)
{
	for (size_t i = 0; i < n; i++)
		places[i].row = i > 0 && compare_rows(&places[i - 1], &places[i]) == 0
					? places[i - 1].row
					: places[i].cell;
}

/* The chosen cells as they are printed: table by table, row by row. */
static size_t arrange(const struct rfl_matrix *m, const struct rfl_matrix_share *shares,
		      struct place *places)
{
	size_t n = 0;

	for (size_t i = 0; i < m->ncells; i++)
		if (shares[i].chosen)
			places[n++] = (struct place){ .cell = &m->cells[i], .share = &shares[i] };
	qsort(places, n, sizeof(*places), by_words);
	find_tables(places, n);
	qsort(places, n, sizeof(*places), by_rows);
	find_rows(places, n);
	qsort(places, n, sizeof(*places), by_place);
	return n;
}

static int by_batch(const void *a, const void *b)
{
	return compare_batches(*(const int64_t *)a, *(const int64_t *)b);
}

/* The batches of a table, rising. @return how many */
static size_t find_batches(const struct place *places, size_t n, int64_t *batches)
{
	size_t most = 0;

	for (size_t i = 0; i < n; i++)
		batches[i] = places[i].cell->batch;
	qsort(batches, n, sizeof(*batches), by_batch);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || batches[i] != batches[most - 1])
			batches[most++] = batches[i];
	return most;
}

/* ---- tables ---- */

static void add_share(struct rfl_table *t, const struct rfl_matrix_share *c)
{
	char text[48];

	if (!c) {
		rfl_table_text(t, "-");
		return;
	}
	(void)snprintf(text, sizeof(text), "%zu/%zu", c->done, c->asked);
	rfl_table_text(t, text);
}

/* The row that begins at a place. @return how many places it has */
static size_t add_row(struct rfl_table *t, const struct place *places, size_t n,
		      const int64_t *batches, size_t nbatches)
{
	const struct place *first = &places[0];
	char name[128];
	size_t at = 0;

	(void)snprintf(name, sizeof(name), first->variant ? "%s (%zu)" : "%s", first->cell->model,
		       first->variant + 1);
	rfl_table_text(t, name);
	for (size_t b = 0; b < nbatches; b++) {
		const bool asked = at < n && places[at].row == first->row &&
				   places[at].cell->batch == batches[b];

		add_share(t, asked ? places[at].share : NULL);
		at += asked;
	}
	return at;
}

static enum rfl_rc put_table(const struct rfl_matrix *m, const struct place *places, size_t n,
			     int64_t *batches, enum rfl_format format, struct rfl_buf *out,
			     struct rfl_err *err)
{
	const size_t nbatches = find_batches(places, n, batches);
	struct rfl_column *columns = rfl_alloc_array(nbatches + 1, sizeof(*columns));
	char(*titles)[24] = rfl_alloc_array(nbatches + 1, sizeof(*titles));
	struct rfl_table *t = NULL;
	enum rfl_rc rc = RFL_OK;

	if (!columns || !titles) {
		rc = no_memory(m, err);
		goto done;
	}
	columns[0] = (struct rfl_column){ .key = "model", .title = "Model" };
	for (size_t b = 0; b < nbatches; b++) {
		(void)snprintf(titles[b], sizeof(titles[b]), "bs %" PRId64, batches[b]);
		columns[b + 1] = (struct rfl_column){ .key = titles[b], .title = titles[b] };
	}
	t = rfl_table_new(columns, nbatches + 1);
	if (!t) {
		rc = no_memory(m, err);
		goto done;
	}
	for (size_t i = 0; i < n;)
		i += add_row(t, &places[i], n - i, batches, nbatches);
	rfl_buf_printf(out, "%s%s%s, %s\n\n", out->len ? "\n" : "",
		       format == RFL_FORMAT_MD ? "## " : "", places[0].cell->env,
		       places[0].cell->precision);
	rc = rfl_table_render(t, format, out, err);
done:
	rfl_table_free(t);
	free(titles);
	free(columns);
	return rc;
}

enum rfl_rc rfl_matrix_grid_render(const struct rfl_matrix *m,
				   const struct rfl_matrix_share *shares, enum rfl_format format,
				   struct rfl_buf *out, struct rfl_err *err)
{
	struct place *places = rfl_alloc_array(m->ncells, sizeof(*places));
	int64_t *batches = rfl_alloc_array(m->ncells, sizeof(*batches));
	enum rfl_rc rc = places && batches ? RFL_OK : no_memory(m, err);
	size_t n = rc ? 0 : arrange(m, shares, places);

	for (size_t begin = 0, end; rc == RFL_OK && begin < n; begin = end) {
		for (end = begin; end < n && places[end].table == places[begin].table;)
			end++;
		rc = put_table(m, &places[begin], end - begin, batches, format, out, err);
	}
	free(places);
	free(batches);
	return rc;
}
