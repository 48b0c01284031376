/*
 * cover.c - which runs of a matrix a ledger has. To which run a row belongs is decided here;
 * what a row says is the ledger's.
 */
#include "ledger/matrix.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/repeats/row_index.h"

/* The cells by their id, and the first of each environment, model, precision and batch. */
struct index {
	const struct rfl_matrix *m;
	struct rfl_row_index by_id, by_what;
};

static uint64_t hash_id(const void *item)
{
	const struct rfl_matrix_cell *c = item;

	return rfl_hash64(0, c->id, strlen(c->id));
}

static bool same_id(const void *a, const void *b)
{
	const struct rfl_matrix_cell *x = a, *y = b;

	return strcmp(x->id, y->id) == 0;
}

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

/* The cell with this id, or NULL. */
static const struct rfl_matrix_cell *find_id(const struct index *ix, const char *id)
{
	struct rfl_matrix_cell key = { .id = "" };
	size_t i;

	if (strlen(id) >= sizeof(key.id))
		return NULL;
	memcpy(key.id, id, strlen(id) + 1);
	i = rfl_row_index_find(&ix->by_id, &key);
	return i == SIZE_MAX ? NULL : ix->by_id.rows[i];
}

/* ---- whose row ---- */

static bool is_ok(const struct rfl_ledger_row *row)
{
	return row->status && strcmp(row->status, "ok") == 0;
}

/* A label is free text: what its row says of precision and batch is what ran. */
static bool is_said_rightly(const struct rfl_label *l, const struct rfl_ledger_row *row,
			    int64_t batch)
{
	return (!l->precision[0] || !row->precision || strcmp(l->precision, row->precision) == 0) &&
	       (l->batch < 0 || batch < 0 || l->batch == batch);
}

/* A row without a cell: what its label says, or, of what that leaves open, its columns. */
static const struct rfl_matrix_cell *
cell_by_words(const struct index *ix, const struct rfl_ledger_row *row, int64_t *repeat)
{
	const int64_t batch = row->micro_batch >= 0 ? row->micro_batch : row->batch;
	struct rfl_label l;
	struct rfl_matrix_cell key = { .batch = -1 };
	size_t i;

	rfl_label_parse(row->label ? row->label : "", row->model, &l);
	*repeat = l.run >= 0 ? l.run : row->repeat;
	key.env = l.env[0] ? l.env : row->env;
	key.model = l.model[0] ? l.model : row->model;
	key.precision = l.precision[0] ? l.precision : row->precision;
	key.batch = l.batch >= 0 ? l.batch : batch;
	if (row->world_size > 1) /* only the id of a cell says that it has several processes */
		return NULL;
	if (l.profiled || !key.env || !key.model || !key.precision)
		return NULL; /* times of a profiled run do not count for the matrix */
	if (!is_said_rightly(&l, row, batch))
		return NULL;
	i = rfl_row_index_find(&ix->by_what, &key);
	return i == SIZE_MAX ? NULL : ix->by_what.rows[i];
}

/* Where a row without a number belongs: the first run of its cell that is not done; when all are,
 * the last. */
static int64_t next_repeat(const struct rfl_matrix *m, const struct rfl_matrix_coverage *c,
			   size_t cell)
{
	for (int r = 1; r < m->repeats; r++)
		if (c->runs[(size_t)(r - 1) * m->ncells + cell].ok == 0)
			return r;
	return m->repeats;
}

static void place_row(const struct index *ix, const struct rfl_ledger_row *row,
		      struct rfl_matrix_coverage *c)
{
	const bool has_id = row->cell && row->cell[0];
	int64_t repeat = -1;
	const struct rfl_matrix_cell *by_words = cell_by_words(ix, row, &repeat);
	const struct rfl_matrix_cell *cell = has_id ? find_id(ix, row->cell) : by_words;
	struct rfl_matrix_run *run;
	size_t at;

	if (row->world_size > 1 && row->rank >= 0)
		return; /* of a single rank: the row of all counts */
	c->stale += !cell && by_words;
	/* a run whose batch was made smaller until it fitted did not do the work of the cell */
	if (cell && row->requested_batch >= 0 && row->batch != row->requested_batch)
		cell = NULL;
	if (!cell || repeat > ix->m->repeats) {
		c->foreign++;
		return;
	}
	at = (size_t)(cell - ix->m->cells);
	if (repeat < 1)
		repeat = next_repeat(ix->m, c, at);
	run = &c->runs[(size_t)(repeat - 1) * ix->m->ncells + at];
	if (is_ok(row) || run->ok == 0)
		run->row = row;
	run->ok += is_ok(row);
	run->failed += !is_ok(row);
}

enum rfl_rc rfl_matrix_cover(const struct rfl_matrix *m, const struct rfl_ledger *ledger,
			     struct rfl_matrix_coverage *ret, struct rfl_err *err)
{
	struct index ix = { .m = m,
			    .by_id = { .hash = hash_id, .alike = same_id },
			    .by_what = { .hash = hash_what, .alike = same_what } };
	size_t number;
	enum rfl_rc rc = RFL_OK;

	*ret = (struct rfl_matrix_coverage){ .nruns = m->ncells * (size_t)m->repeats };
	ret->runs = rfl_alloc_array(ret->nruns, sizeof(*ret->runs));
	if (!ret->runs) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
		goto done;
	}
	for (size_t i = 0; i < m->ncells; i++)
		if ((rc = rfl_row_index_put(&ix.by_id, &m->cells[i], &number, err)) ||
		    (rc = rfl_row_index_put(&ix.by_what, &m->cells[i], &number, err)))
			goto done;
	for (size_t i = 0; i < ret->nruns; i++)
		ret->runs[i] = (struct rfl_matrix_run){ .cell = i % m->ncells,
							.repeat = (int)(i / m->ncells) + 1 };
	for (size_t i = 0; ledger && i < ledger->nrows; i++)
		place_row(&ix, &ledger->rows[i], ret);
	for (size_t i = 0; i < ret->nruns; i++) {
		struct rfl_matrix_run *run = &ret->runs[i];

		run->state = run->ok       ? RFL_MATRIX_DONE
			     : run->failed ? RFL_MATRIX_FAILED
					   : RFL_MATRIX_MISSING;
		ret->done += run->state == RFL_MATRIX_DONE;
		ret->failed += run->state == RFL_MATRIX_FAILED;
		ret->missing += run->state == RFL_MATRIX_MISSING;
		ret->surplus += run->ok > 1 ? run->ok - 1 : 0;
	}
done:
	rfl_row_index_fini(&ix.by_id);
	rfl_row_index_fini(&ix.by_what);
	return rc;
}

void rfl_matrix_coverage_fini(struct rfl_matrix_coverage *c)
{
	free(c->runs);
	*c = (struct rfl_matrix_coverage){ 0 };
}
