/* cover.c - finds the runs of a matrix in a ledger. */
#include "ledger/matrix.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/repeats/row_index.h"

/* Cells by id, and the first cell for each environment, model, precision and batch. */
struct index {
	const struct rfl_matrix *m;
	struct rfl_texts ids; /* in the order of the cells */
	struct rfl_row_index by_what;
};

static uint64_t hash_what(const void *item)
{
	const struct rfl_matrix_cell *c = item;
	uint64_t h = rfl_hash64(0, c->model, strlen(c->model));

	h = rfl_hash64(h, c->precision, strlen(c->precision));
	return rfl_hash64(h, &c->batch, sizeof(c->batch));
}

static bool same_what(const void *a, const void *b)
{
	const struct rfl_matrix_cell *x = a, *y = b;

	return x->batch == y->batch && strcmp(x->env, y->env) == 0 &&
	       strcmp(x->model, y->model) == 0 && strcmp(x->precision, y->precision) == 0;
}

static void place_row(const struct index *ix, const struct rfl_ledger_row *row,
		      struct rfl_matrix_coverage *c)
{
	const struct rfl_matrix *m = ix->m;
	const bool ok = rfl_text_same(row->status, "ok");
	const int64_t batch = row->micro_batch >= 0 ? row->micro_batch : row->batch;
	struct rfl_matrix_cell key = { .batch = -1 };
	const struct rfl_matrix_cell *by_words = NULL, *cell;
	struct rfl_matrix_run *run;
	struct rfl_label l;
	int64_t repeat;
	size_t i;

	if (row->world_size > 1 && row->rank >= 0)
		return; /* a single rank: the row for all ranks is used instead */

	/* For a row without a cell, use the parts of its label or, if they are missing, its
	 * columns. */
	rfl_label_parse(row->label, row->model, &l);
	repeat = l.run >= 0 ? l.run : row->repeat;
	key.env = l.env[0] ? l.env : row->env;
	key.model = l.model[0] ? l.model : row->model;
	key.precision = l.precision[0] ? l.precision : row->precision;
	key.batch = l.batch >= 0 ? l.batch : batch;
	/* A run of several processes is only matched by its cell id. Profiled runs are ignored. If
	 * the label contradicts the columns, the columns are used. */
	if (row->world_size <= 1 && !l.profiled && key.env && key.model && key.precision &&
	    (!row->precision || strcmp(key.precision, row->precision) == 0) &&
	    (batch < 0 || key.batch == batch) &&
	    (i = rfl_row_index_find(&ix->by_what, &key)) != SIZE_MAX)
		by_words = ix->by_what.rows[i];
	cell = by_words;
	if (row->cell && row->cell[0]) {
		i = rfl_row_index_find(&ix->ids.index, row->cell);
		cell = i == SIZE_MAX ? NULL : &m->cells[i];
		c->stale += !cell && by_words;
	}
	/* --oom changed the batch, so the run does not belong to the cell. */
	if (cell && row->requested_batch >= 0 && row->batch != row->requested_batch)
		cell = NULL;
	if (!cell || repeat > m->repeats) {
		c->foreign++;
		return;
	}
	run = &c->runs[cell - m->cells];
	if (repeat >= 1)
		run += (size_t)(repeat - 1) * m->ncells;
	else /* no repeat number: the first run that is not done, else the last */
		for (int r = 1; r < m->repeats && run->ok; r++)
			run += m->ncells;
	if (ok || run->ok == 0)
		run->row = row;
	run->ok += ok;
	run->failed += !ok;
}

enum rfl_rc rfl_matrix_cover(const struct rfl_matrix *m, const struct rfl_ledger *ledger,
			     struct rfl_matrix_coverage *ret, struct rfl_err *err)
{
	struct index ix = { .m = m, .by_what = { .hash = hash_what, .alike = same_what } };
	size_t number;
	enum rfl_rc rc = RFL_OK;

	*ret = (struct rfl_matrix_coverage){ .nruns = m->ncells * (size_t)m->repeats };
	ret->runs = rfl_alloc_array(ret->nruns, sizeof(*ret->runs));
	if (!ret->runs)
		rc = rfl_no_memory(err, m->path);
	for (size_t i = 0; i < m->ncells && rc == RFL_OK; i++) {
		rc = rfl_row_index_put(&ix.by_what, &m->cells[i], &number, err);
		if (rc == RFL_OK && !rfl_texts_put(&ix.ids, m->cells[i].id, &number))
			rc = rfl_no_memory(err, m->path);
	}
	if (rc)
		goto done;
	for (size_t i = 0; i < ret->nruns; i++)
		ret->runs[i] = (struct rfl_matrix_run){ .cell = i % m->ncells,
							.repeat = (int)(i / m->ncells) + 1 };
	for (size_t i = 0; ledger && i < ledger->nrows; i++)
		place_row(&ix, &ledger->rows[i], ret);
	for (size_t i = 0; i < ret->nruns; i++) {
		struct rfl_matrix_run *run = &ret->runs[i];

		run->state = run->failed ? RFL_MATRIX_FAILED : RFL_MATRIX_MISSING;
		if (run->ok)
			run->state = RFL_MATRIX_DONE;
		ret->done += run->state == RFL_MATRIX_DONE;
		ret->failed += run->state == RFL_MATRIX_FAILED;
		ret->missing += run->state == RFL_MATRIX_MISSING;
		ret->surplus += run->ok > 1 ? run->ok - 1 : 0;
	}
done:
	rfl_texts_fini(&ix.ids);
	rfl_row_index_fini(&ix.by_what);
	return rc;
}

void rfl_matrix_coverage_fini(struct rfl_matrix_coverage *c)
{
	free(c->runs);
	*c = (struct rfl_matrix_coverage){ 0 };
}
