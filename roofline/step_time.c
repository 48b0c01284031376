/* step_time.c - the step time of a configuration and the times of its phases. */
#include "roofline/step_time.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

/* The mean of a phase over the runs that have it, weighted by their rates. */
static double mean_of(const struct rfl_run_step *runs, size_t n, enum rfl_timed phase)
{
	double mean = 0, weights = 0;

	for (size_t k = 0; k < n; k++) {
		const double ms = runs[k].phase_ms[phase];

		if (isnan(ms))
			continue;
		weights += runs[k].samples_per_s;
		mean += (ms - mean) * (runs[k].samples_per_s / weights);
	}
	return weights > 0 ? mean : (double)NAN;
}

struct rfl_step_time rfl_step_time(double samples, const struct rfl_run_step *runs, size_t n)
{
	RFL_AUTOFREE double *values = rfl_alloc_array(n, sizeof(*values));
	struct rfl_step_time t = { .lo_s = NAN, .hi_s = NAN, .source = "spread not recorded" };
	size_t known = 0;

	for (size_t k = 0; k < n; k++)
		values[k] = runs[k].samples_per_s;
	t.rate = rfl_stats_of(values, n);
	for (size_t k = 0; k < n; k++)
		if (!isnan(runs[k].median_ms))
			values[known++] = runs[k].median_ms;
	t.step_s = samples / t.rate.mean;
	t.median_s = rfl_stats_of(values, known).median / 1e3;
	for (enum rfl_timed i = 0; i < RFL_TIMED_PHASES; i++)
		t.phase_ms[i] = mean_of(runs, n, i);
	if (n >= 2) {
		t.lo_s = samples / t.rate.max;
		t.hi_s = samples / t.rate.min;
		t.source = "min-max of the repeats";
	} else if (n == 1 && !isnan(runs->p10_ms) && !isnan(runs->p90_ms)) {
		t.lo_s = fmin(runs->p10_ms / 1e3, t.step_s);
		t.hi_s = fmax(runs->p90_ms / 1e3, t.step_s);
		t.source = "p10-p90 of the steps";
	}
	return t;
}

struct rfl_step_time rfl_step_time_of(const struct rfl_runs *runs,
				      const struct rfl_repeats_config *config)
{
	RFL_AUTOFREE struct rfl_run_step *list = rfl_alloc_array(config->n, sizeof(*list));
	struct rfl_step_time t;
	size_t n = 0;

	for (size_t k = 0; k < config->n; k++) {
		const struct rfl_ledger_row *row = rfl_runs_row(runs, config->runs[k].run);

		if (row->samples_per_s > 0 && isfinite(row->samples_per_s))
			list[n++] = rfl_run_step_of_row(row);
	}
	t = rfl_step_time((double)config->row->batch, list, n);
	return t;
}
