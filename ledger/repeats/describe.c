/*
 * describe.c - the statistics of configurations, how well several processes scale (weak scaling, by
 * the configuration of one process with the same batch per process), and the order of all.
 */
#include "ledger/repeats/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "ledger/repeats/row_index.h"

/* Further from the median than this many deviations, and than this share of it, is an outlier. */
#define OUTLIER_DEVIATIONS 5.0
#define OUTLIER_SHARE      0.02
#define MAD_TO_SIGMA       1.4826 /* 1 / the third quartile of the normal distribution */

/* --- one configuration ----------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct rfl_run *x = ((const struct rfl_repeat *)a)->run;
	const struct rfl_run *y = ((const struct rfl_repeat *)b)->run;
	int order = x->time && y->time ? strcmp(x->time, y->time) : 0;

	return order ? order : (x > y) - (x < y); /* in the order of the files */
}

static bool all_timed(const struct rfl_repeats_config *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (!c->runs[i].run->time)
			return false;
	return true;
}

static void find_drift(struct rfl_repeats_config *c, struct rfl_stats_trend trend)
{
	if (c->n < 3)
		return; /* two points have a line, and nothing that speaks against it */
	c->drift = trend.rise / fabs(c->stats.mean);
	if (fabs(c->drift) > RFL_REPEATS_DRIFT_MAX && fabs(trend.rise) > trend.ci95)
		c->flags |= RFL_REPEATS_DRIFT;
}

static void find_outliers(struct rfl_repeats_config *c, struct rfl_repeats__notes *notes)
{
	double far = OUTLIER_DEVIATIONS * MAD_TO_SIGMA * c->stats.mad;

	if (c->n < RFL_REPEATS_OUTLIER_MIN)
		return;
	far = fmax(far, OUTLIER_SHARE * fabs(c->stats.median));
	for (size_t i = 0; i < c->n; i++) {
		if (!(fabs(c->runs[i].value - c->stats.median) > far))
			continue;
		c->flags |= RFL_REPEATS_OUTLIER;
		rfl_repeats__note_outlier(notes, c, &c->runs[i]);
	}
}

static struct rfl_stats nothing(void)
{
	const double none = NAN;

	return (struct rfl_stats){ .mean = none,
				   .std = none,
				   .median = none,
				   .mad = none,
				   .p10 = none,
				   .p90 = none,
				   .min = none,
				   .max = none,
				   .ci95 = none };
}

enum rfl_rc rfl_repeats__describe(struct rfl_repeats_config *c, struct rfl_repeats__notes *notes,
				  struct rfl_err *err)
{
	double few[16], *values = few;
	enum rfl_rc rc = RFL_OK;

	c->stats = nothing();
	c->cv = c->drift = (double)NAN;
	if (c->n == 0)
		return RFL_OK;
	if (c->n > RFL_ARRAY_LEN(few))
		values = rfl_alloc_array(c->n, sizeof(*values));
	if (!values)
		return rfl_fail(err, RFL_ENOMEM, 0, "summary of runs: out of memory");
	if (all_timed(c))
		qsort(c->runs, c->n, sizeof(*c->runs), by_time);
	for (size_t i = 0; i < c->n; i++)
		values[i] = c->runs[i].value;
	rc = rfl_stats_describe(values, c->n, &c->stats, err);
	if (rc == RFL_OK && c->stats.mean != 0) {
		c->cv = c->stats.std / fabs(c->stats.mean);
		find_drift(c, rfl_stats_trend(values, c->n));
	}
	if (c->cv > RFL_REPEATS_CV_MAX)
		c->flags |= RFL_REPEATS_UNSTABLE;
	if (rc == RFL_OK)
		find_outliers(c, notes);
	if (values != few)
		free(values);
	return rc;
}

/* --- the order ------------------------------------------------------------------------------- */

static uint64_t block_hash(const void *item)
{
	const struct rfl_ledger_row *row = item;
	uint64_t h = rfl_hash64(0, row->env, strlen(row->env));

	h = rfl_hash64(h, row->model, strlen(row->model));
	return rfl_hash64(h, row->precision, strlen(row->precision));
}

static bool block_alike(const void *x, const void *y)
{
	const struct rfl_ledger_row *a = x, *b = y;

	return strcmp(a->env, b->env) == 0 && strcmp(a->model, b->model) == 0 &&
	       strcmp(a->precision, b->precision) == 0;
}

struct place {
	size_t block; /* of environment, model and precision */
	size_t first; /* the order in which configurations came */
	int64_t batch;
	struct rfl_repeats_config config;
};

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	if (x->batch != y->batch)
		return x->batch < y->batch ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

enum rfl_rc rfl_repeats__order(struct rfl_repeats *r, struct rfl_err *err)
{
	struct rfl_row_index blocks = { .hash = block_hash, .alike = block_alike };
	struct place *places = rfl_alloc_array(r->n, sizeof(*places));
	enum rfl_rc rc = RFL_OK;

	if (!places)
		return rfl_fail(err, RFL_ENOMEM, 0, "summary of runs: out of memory");
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++) {
		places[i].config = r->configs[i];
		places[i].first = i;
		places[i].batch = r->configs[i].row->batch;
		rc = rfl_row_index_put(&blocks, r->configs[i].row, &places[i].block, err);
	}
	if (rc == RFL_OK) {
		qsort(places, r->n, sizeof(*places), by_place);
		for (size_t i = 0; i < r->n; i++)
			r->configs[i] = places[i].config;
	}
	rfl_row_index_fini(&blocks);
	free(places);
	return rc;
}

/* --- several processes ----------------------------------------------------------------------- */

static bool is_of_size(enum rfl_ledger_at column)
{
	return column == RFL_LEDGER_AT_world_size || column == RFL_LEDGER_AT_batch ||
	       column == RFL_LEDGER_AT_interconnect;
}

/* The same work in the same way, but by one process. */
static bool is_base(const struct rfl_ledger_row *one, const struct rfl_ledger_row *many)
{
	if (one->world_size > 1 || one->batch * many->world_size != many->batch)
		return false;
	for (size_t i = 0; i < rfl_nfacts; i++) {
		const struct rfl_fact *f = &rfl_facts[i];

		if (f->role != RFL_FACT_NOTE && !is_of_size(f->column) &&
		    !rfl_fact_same(f, one, many))
			return false;
	}
	return true;
}

static bool is_rate(const struct rfl_ledger_metric *metric)
{
	static const char *const rates[] = { "samples_per_s", "tokens_per_s",
					     "compute_samples_per_s", "tflops" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(rates); i++)
		if (strcmp(metric->name, rates[i]) == 0)
			return true;
	return false;
}

static double efficiency(const struct rfl_repeats *r, const struct rfl_repeats_config *c)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct rfl_repeats_config *one = &r->configs[i];

		if (one->n > 0 && is_base(one->row, c->row))
			return c->stats.mean / ((double)c->row->world_size * one->stats.mean);
	}
	return (double)NAN;
}

void rfl_repeats__scale(struct rfl_repeats *r)
{
	size_t several = 0, based = 0;

	for (size_t i = 0; i < r->n; i++) {
		struct rfl_repeats_config *c = &r->configs[i];

		c->efficiency = (double)NAN;
		if (c->row->world_size <= 1 || c->n == 0 || !is_rate(r->metric))
			continue;
		c->efficiency = efficiency(r, c);
		several++;
		based += isnan(c->efficiency) ? 0 : 1;
	}
	if (based < several)
		rfl_buf_printf(&r->notes,
			       "%zu configuration%s of several processes: no efficiency, since no "
			       "run of one process has the same batch per process, threads and "
			       "options\n",
			       several - based, several - based == 1 ? "" : "s");
}
