/* cover.c - finds the runs of a matrix in a ledger. */
#include "ledger/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/repeats/row_index.h"

/* Cells by id, and the first cell for each environment, model, precision and batch. */
struct rfl_matrix_index {
	const struct rfl_matrix *m;
	struct rfl_texts ids; /* in the order of the cells */
	struct rfl_row_index by_what;
	struct rfl_texts texts; /* of the runs */
	bool keeps_rows;
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

/* Note what the row that counts says of its run. */
static void note(struct rfl_matrix_index *ix, struct rfl_matrix_run *run,
		 const struct rfl_ledger_row *row)
{
	run->row = ix->keeps_rows ? row : NULL;
	run->status = rfl_texts_keep(&ix->texts, row->status);
	if (row->error_text && rfl_text_same(row->status, "ok"))
		run->status = "files lost";
	run->reason = rfl_texts_keep(&ix->texts, row->error_text);
	if (run->ok > 1) /* only then is it asked which row counts */
		run->run_id = rfl_texts_copy(&ix->texts, row->run_id);
	run->run_s = row->warmup >= 0 && row->iters >= 0
			     ? row->setup_s +
				       row->step_ms_mean * 1e-3 * (double)(row->warmup + row->iters)
			     : (double)NAN;
}

void rfl_matrix_cover_row(struct rfl_matrix_coverage *c, const struct rfl_ledger_row *row)
{
	struct rfl_matrix_index *ix = c->index;
	const struct rfl_matrix *m = ix->m;
	/* if a run is ok, its error is about a file, such as the table of its steps */
	const bool ok = rfl_text_same(row->status, "ok") && !row->error_text;
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
	run->ok += ok;
	run->failed += !ok;
	if (ok || run->ok == 0)
		note(ix, run, row);
}

static void clear_runs(struct rfl_matrix_coverage *c)
{
	const size_t ncells = c->index->m->ncells;

	for (size_t i = 0; i < c->nruns; i++)
		c->runs[i] = (struct rfl_matrix_run){ .cell = i % ncells,
						      .repeat = (int)(i / ncells) + 1,
						      .run_s = (double)NAN };
	c->foreign = c->stale = 0;
}

void rfl_matrix_cover_begin(const struct rfl_matrix *m, struct rfl_matrix_coverage *ret)
{
	struct rfl_matrix_index *ix = rfl_alloc_array(1, sizeof(*ix));

	ix->m = m;
	ix->by_what = (struct rfl_row_index){ .hash = hash_what, .alike = same_what };
	*ret = (struct rfl_matrix_coverage){ .nruns = m->ncells * (size_t)m->repeats, .index = ix };
	ret->runs = rfl_alloc_array(ret->nruns, sizeof(*ret->runs));
	for (size_t i = 0; i < m->ncells; i++) {
		rfl_row_index_put(&ix->by_what, &m->cells[i]);
		rfl_texts_put(&ix->ids, m->cells[i].id);
	}
	clear_runs(ret);
}

void rfl_matrix_cover_end(struct rfl_matrix_coverage *c)
{
	for (size_t i = 0; i < c->nruns; i++) {
		struct rfl_matrix_run *run = &c->runs[i];

		run->state = run->failed ? RFL_MATRIX_FAILED : RFL_MATRIX_MISSING;
		if (run->ok)
			run->state = RFL_MATRIX_DONE;
		c->done += run->state == RFL_MATRIX_DONE;
		c->failed += run->state == RFL_MATRIX_FAILED;
		c->missing += run->state == RFL_MATRIX_MISSING;
		c->surplus += run->ok > 1 ? run->ok - 1 : 0;
	}
}

void rfl_matrix_cover(const struct rfl_matrix *m, const struct rfl_ledger *ledger,
		      struct rfl_matrix_coverage *ret)
{
	rfl_matrix_cover_begin(m, ret);
	ret->index->keeps_rows = true;
	for (size_t i = 0; ledger && i < ledger->nrows; i++)
		rfl_matrix_cover_row(ret, &ledger->rows[i]);
	rfl_matrix_cover_end(ret);
}

static void visit(const struct rfl_ledger_row *row, void *ctx)
{
	if (row)
		rfl_matrix_cover_row(ctx, row);
	else
		clear_runs(ctx);
}

enum rfl_rc rfl_matrix_cover_file(const struct rfl_matrix *m, const char *path, size_t since,
				  struct rfl_matrix_coverage *ret, struct rfl_err *err)
{
	static const char columns[] =
		"run_id cell repeat label env status error_text model batch requested_batch "
		"micro_batch precision warmup iters step_ms_mean setup_s world_size rank";
	enum rfl_rc rc = RFL_OK;

	rfl_matrix_cover_begin(m, ret);
	if (path)
		rc = rfl_ledger_each(path, columns, since, visit, ret, err);
	rfl_matrix_cover_end(ret);
	return rc;
}

void rfl_matrix_coverage_fini(struct rfl_matrix_coverage *c)
{
	if (c->index) {
		rfl_texts_fini(&c->index->ids);
		rfl_texts_fini(&c->index->texts);
		rfl_row_index_fini(&c->index->by_what);
	}
	free(c->index);
	free(c->runs);
	*c = (struct rfl_matrix_coverage){ 0 };
}
