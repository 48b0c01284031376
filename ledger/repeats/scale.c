/*
 * scale.c - how well several processes scale: weak scaling, by the configuration of one
 * process with the same batch per process.
 */
#include "ledger/repeats/parts.h"

#include <math.h>
#include <string.h>

#include "ledger/facts.h"

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
