/*
 * matrix_left.c - the time that is left, by what is alike: the cell, then the model, then anything.
 */
#include "cli/cmd/matrix_left.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- what is alike ---- */

static int compare_kinds(const struct rfl_matrix_cell *a, const struct rfl_matrix_cell *b)
{
	int order = strcmp(a->env, b->env);

	if (order == 0)
		order = strcmp(a->model, b->model);
	return order ? order : strcmp(a->precision, b->precision);
}

static int by_kind(const void *a, const void *b)
{
	const struct rfl_matrix_cell *const *x = a, *const *y = b;

	return compare_kinds(*x, *y);
}

/* Numbers the kinds of cells: environment, model and precision. */
static enum rfl_rc number_kinds(struct rfl_matrix_left *l, struct rfl_err *err)
{
	const size_t n = l->m->ncells;
	const struct rfl_matrix_cell **sorted =
		rfl_alloc_array(n, sizeof(const struct rfl_matrix_cell *));
	size_t kind = 0;

	if (!sorted)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", l->m->path);
	for (size_t i = 0; i < n; i++)
		sorted[i] = &l->m->cells[i];
	qsort(sorted, n, sizeof(const struct rfl_matrix_cell *), by_kind);
	for (size_t i = 0; i < n; i++) {
		kind += i > 0 && compare_kinds(sorted[i - 1], sorted[i]) != 0;
		l->kinds[sorted[i] - l->m->cells] = kind;
	}
	free(sorted);
	return RFL_OK;
}

/* ---- sums ---- */

enum rfl_rc rfl_matrix_left_init(const struct rfl_matrix *m, struct rfl_matrix_left *ret,
				 struct rfl_err *err)
{
	*ret = (struct rfl_matrix_left){
		.m = m,
		.kinds = rfl_alloc_array(m->ncells, sizeof(*ret->kinds)),
		.of_cell = rfl_alloc_array(m->ncells, sizeof(*ret->of_cell)),
		.of_kind = rfl_alloc_array(m->ncells, sizeof(*ret->of_kind)),
	};
	if (!ret->kinds || !ret->of_cell || !ret->of_kind)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
	return number_kinds(ret, err);
}

void rfl_matrix_left_fini(struct rfl_matrix_left *l)
{
	free(l->kinds);
	free(l->of_cell);
	free(l->of_kind);
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
	add(&l->of_kind[l->kinds[cell]], seconds, (double)l->m->cells[cell].batch);
	add(&l->of_all, seconds, 1);
}

double rfl_matrix_left_of_row(const struct rfl_ledger_row *row)
{
	if (row->warmup < 0 || row->iters < 0)
		return (double)NAN;
	return row->setup_s + row->step_ms_mean * 1e-3 * (double)(row->warmup + row->iters);
}

double rfl_matrix_left_cell(const struct rfl_matrix_left *l, size_t cell)
{
	double per_sample;

	if (l->of_cell[cell].amount > 0)
		return rate_of(&l->of_cell[cell]);
	per_sample = rate_of(&l->of_kind[l->kinds[cell]]);
	return isnan(per_sample) ? rate_of(&l->of_all)
				 : per_sample * (double)l->m->cells[cell].batch;
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
