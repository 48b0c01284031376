/*
 * cover.c - which runs of a matrix a ledger has. To which run a row belongs is decided here;
 * what a row says is the ledger's.
 */
#include "ledger/matrix.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

/* The cells in two orders, for the search. */
struct index {
	const struct rfl_matrix *m;
	const struct rfl_matrix_cell **by_id;
	const struct rfl_matrix_cell *
		*by_what; /* env, model, precision, batch, order of the file */
};

/* ---- searching ---- */

static int compare_ids(const void *a, const void *b)
{
	const struct rfl_matrix_cell *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

/* Environment, model, precision and batch. */
static int compare_what(const struct rfl_matrix_cell *x, const struct rfl_matrix_cell *y)
{
	int order = strcmp(x->env, y->env);

	if (order == 0)
		order = strcmp(x->model, y->model);
	if (order == 0)
		order = strcmp(x->precision, y->precision);
	return order ? order : (x->batch > y->batch) - (x->batch < y->batch);
}

static int compare_whats(const void *a, const void *b)
{
	const struct rfl_matrix_cell *const *x = a, *const *y = b;
	int order = compare_what(*x, *y);

	return order ? order : (*x > *y) - (*x < *y);
}

static enum rfl_rc make_index(const struct rfl_matrix *m, struct index *ret, struct rfl_err *err)
{
	const size_t size = sizeof(const struct rfl_matrix_cell *);

	*ret = (struct index){ .m = m,
			       .by_id = rfl_alloc_array(m->ncells, size),
			       .by_what = rfl_alloc_array(m->ncells, size) };
	if (!ret->by_id || !ret->by_what)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
	for (size_t i = 0; i < m->ncells; i++)
		ret->by_id[i] = ret->by_what[i] = &m->cells[i];
	qsort(ret->by_id, m->ncells, size, compare_ids);
	qsort(ret->by_what, m->ncells, size, compare_whats);
	return RFL_OK;
}

static const struct rfl_matrix_cell *find_id(const struct index *ix, const char *id)
{
	struct rfl_matrix_cell key = { .id = "" };
	const struct rfl_matrix_cell *at = &key;
	const struct rfl_matrix_cell **found;

	if (strlen(id) >= sizeof(key.id))
		return NULL;
	memcpy(key.id, id, strlen(id) + 1);
	found = bsearch(&at, ix->by_id, ix->m->ncells, sizeof(at), compare_ids);
	return found ? *found : NULL;
}

/* The first of the file's cells that is of this environment, model, precision and batch. */
static const struct rfl_matrix_cell *find_what(const struct index *ix,
					       const struct rfl_matrix_cell *key)
{
	size_t low = 0, high = ix->m->ncells;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare_what(ix->by_what[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == ix->m->ncells || compare_what(ix->by_what[low], key) != 0)
		return NULL;
	return ix->by_what[low];
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

	rfl_label_parse(row->label ? row->label : "", row->model, &l);
	*repeat = l.run >= 0 ? l.run : row->repeat;
	key.env = l.env[0] ? l.env : row->env;
	key.model = l.model[0] ? l.model : row->model;
	key.precision = l.precision[0] ? l.precision : row->precision;
	key.batch = l.batch >= 0 ? l.batch : batch;
	if (row->world_size > 1) /* only the id of a cell tells that it has several processes */
		return NULL;
	if (l.profiled || !key.env || !key.model || !key.precision)
		return NULL; /* times of a profiled run are no measurement of the matrix */
	if (!is_said_rightly(&l, row, batch))
		return NULL;
	return find_what(ix, &key);
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

static void count_row(const struct rfl_ledger_row *row, struct rfl_matrix_run *run)
{
	if (is_ok(row) || run->ok == 0)
		run->row = row;
	run->ok += is_ok(row);
	run->failed += !is_ok(row);
}

static void place_row(const struct index *ix, const struct rfl_ledger_row *row,
		      struct rfl_matrix_coverage *c)
{
	const bool has_id = row->cell && row->cell[0];
	int64_t repeat = -1;
	const struct rfl_matrix_cell *by_words = cell_by_words(ix, row, &repeat);
	const struct rfl_matrix_cell *cell = has_id ? find_id(ix, row->cell) : by_words;
	size_t at;

	if (row->world_size > 1 && row->rank >= 0)
		return; /* of a single rank: the row of all counts */
	c->stale += !cell && by_words;
	/* Of a batch that was made smaller until it fitted, the row is no measurement of the cell.
	 */
	if (cell && row->requested_batch >= 0 && row->batch != row->requested_batch)
		cell = NULL;
	if (!cell || repeat > ix->m->repeats) {
		c->foreign++;
		return;
	}
	at = (size_t)(cell - ix->m->cells);
	if (repeat < 1)
		repeat = next_repeat(ix->m, c, at);
	count_row(row, &c->runs[(size_t)(repeat - 1) * ix->m->ncells + at]);
}

/* ---- coverage ---- */

static void sum_up(struct rfl_matrix_coverage *c)
{
	for (size_t i = 0; i < c->nruns; i++) {
		struct rfl_matrix_run *run = &c->runs[i];

		run->state = run->ok       ? RFL_MATRIX_DONE
			     : run->failed ? RFL_MATRIX_FAILED
					   : RFL_MATRIX_MISSING;
		c->done += run->state == RFL_MATRIX_DONE;
		c->failed += run->state == RFL_MATRIX_FAILED;
		c->missing += run->state == RFL_MATRIX_MISSING;
		c->surplus += run->ok > 1 ? run->ok - 1 : 0;
	}
}

enum rfl_rc rfl_matrix_cover(const struct rfl_matrix *m, const struct rfl_ledger *ledger,
			     struct rfl_matrix_coverage *ret, struct rfl_err *err)
{
	struct index ix;
	enum rfl_rc rc = make_index(m, &ix, err);

	*ret = (struct rfl_matrix_coverage){ .nruns = m->ncells * (size_t)m->repeats };
	if (rc == RFL_OK) {
		ret->runs = rfl_alloc_array(ret->nruns, sizeof(*ret->runs));
		if (!ret->runs)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
	}
	for (size_t i = 0; rc == RFL_OK && i < ret->nruns; i++)
		ret->runs[i] = (struct rfl_matrix_run){ .cell = i % m->ncells,
							.repeat = (int)(i / m->ncells) + 1 };
	for (size_t i = 0; rc == RFL_OK && ledger && i < ledger->nrows; i++)
		place_row(&ix, &ledger->rows[i], ret);
	if (rc == RFL_OK)
		sum_up(ret);
	free(ix.by_id);
	free(ix.by_what);
	return rc;
}

void rfl_matrix_coverage_fini(struct rfl_matrix_coverage *c)
{
	free(c->runs);
	*c = (struct rfl_matrix_coverage){ 0 };
}
