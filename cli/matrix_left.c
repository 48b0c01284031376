/*
 * matrix_left.c - the time that is left, by what is alike: the cell, then the model, then anything.
 */
#include "cli/matrix_left.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum rfl_rc rfl_matrix_left_init(const struct rfl_matrix *m, struct rfl_matrix_left *ret,
				 struct rfl_err *err)
{
	*ret = (struct rfl_matrix_left){
		.m = m,
		.seconds = rfl_alloc_array(m->ncells, sizeof(*ret->seconds)),
		.known = rfl_alloc_array(m->ncells, sizeof(*ret->known)),
	};
	if (ret->seconds && ret->known)
		return RFL_OK;
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
}

void rfl_matrix_left_fini(struct rfl_matrix_left *l)
{
	free(l->seconds);
	free(l->known);
	*l = (struct rfl_matrix_left){ .m = NULL };
}

void rfl_matrix_left_add(struct rfl_matrix_left *l, size_t cell, double seconds)
{
	if (isnan(seconds))
		return;
	l->seconds[cell] += seconds;
	l->known[cell]++;
}

double rfl_matrix_left_of_row(const struct rfl_ledger_row *row)
{
	if (row->warmup < 0 || row->iters < 0)
		return (double)NAN;
	return row->setup_s + row->step_ms_mean * 1e-3 * (double)(row->warmup + row->iters);
}

static bool is_alike(const struct rfl_matrix_cell *a, const struct rfl_matrix_cell *b)
{
	return strcmp(a->env, b->env) == 0 && strcmp(a->model, b->model) == 0 &&
	       strcmp(a->precision, b->precision) == 0;
}

/* Known seconds over known samples (or runs) of the cells that are like one; NaN: none is. */
static double rate_of(const struct rfl_matrix_left *l, const struct rfl_matrix_cell *like)
{
	double seconds = 0, amount = 0;

	for (size_t i = 0; i < l->m->ncells; i++) {
		const struct rfl_matrix_cell *c = &l->m->cells[i];

		if (like && !is_alike(like, c))
			continue;
		seconds += l->seconds[i];
		amount += (double)l->known[i] * (like ? (double)c->batch : 1.0);
	}
	return amount > 0 ? seconds / amount : (double)NAN;
}

double rfl_matrix_left_cell(const struct rfl_matrix_left *l, size_t cell)
{
	const struct rfl_matrix_cell *c = &l->m->cells[cell];
	double per_sample;

	if (l->known[cell])
		return l->seconds[cell] / (double)l->known[cell];
	per_sample = rate_of(l, c);
	return isnan(per_sample) ? rate_of(l, NULL) : per_sample * (double)c->batch;
}

const char *rfl_matrix_left_text(double seconds, char *out, size_t size)
{
	if (isnan(seconds))
		return "";
	if (seconds < 90)
		(void)snprintf(out, size, "about %.0f s left", ceil(seconds));
	else if (seconds < 90 * 60)
		(void)snprintf(out, size, "about %.0f min left", seconds / 60);
	else
		(void)snprintf(out, size, "about %.1f h left", seconds / 3600);
	return out;
}
