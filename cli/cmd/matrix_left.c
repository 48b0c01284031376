/*
 * matrix_left.c - how long the rest of a matrix will take, from runs that are alike: of the same
 * cell, then of the same model, then any.
 */
#include "cli/cmd/matrix.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

enum rfl_rc rfl_matrix_left_init(const struct rfl_matrix *m, struct rfl_matrix_left *ret,
				 struct rfl_err *err)
{
	*ret = (struct rfl_matrix_left){
		.m = m,
		.alike = rfl_alloc_array(m->ncells, sizeof(*ret->alike)),
		.of_cell = rfl_alloc_array(m->ncells, sizeof(*ret->of_cell)),
		.of_model = rfl_alloc_array(m->ncells, sizeof(*ret->of_model)),
	};
	if (!ret->alike || !ret->of_cell || !ret->of_model)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
	return rfl_matrix_alike(m, NULL, ret->alike, err);
}

void rfl_matrix_left_fini(struct rfl_matrix_left *l)
{
	free(l->alike);
	free(l->of_cell);
	free(l->of_model);
	*l = (struct rfl_matrix_left){ .m = NULL };
}

static void add(struct rfl_matrix_known *k, double seconds, double amount)
{
	k->seconds += seconds;
	k->amount += amount;
}

/* Seconds of one; NaN: none is known. */
static double rate_of(const struct rfl_matrix_known *k)
{
	return k->amount > 0 ? k->seconds / k->amount : (double)NAN;
}

void rfl_matrix_left_add(struct rfl_matrix_left *l, size_t cell, double seconds)
{
	if (isnan(seconds))
		return;
	add(&l->of_cell[cell], seconds, 1);
	add(&l->of_model[l->alike[cell].first[RFL_ALIKE_MODEL]], seconds,
	    (double)l->m->cells[cell].batch);
	add(&l->of_all, seconds, 1);
}

double rfl_matrix_left_cell(const struct rfl_matrix_left *l, size_t cell)
{
	double per_sample;

	if (l->of_cell[cell].amount > 0)
		return rate_of(&l->of_cell[cell]);
	per_sample = rate_of(&l->of_model[l->alike[cell].first[RFL_ALIKE_MODEL]]);
	return isnan(per_sample) ? rate_of(&l->of_all)
				 : per_sample * (double)l->m->cells[cell].batch;
}
