/* run_stats.c - drift, autocorrelation, outliers, cold start, and the flags derived from them. */
#include "ledger/repeats/run_stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Parameters of the CUSUM, in standard deviations of a rank. The limit raises about one false alarm
 * in a hundred windows of 100 independent steps (docs/internals/measuring.md; simulated in the
 * test). */
#define CUSUM_ALLOWANCE 0.5
#define CUSUM_LIMIT     5.0

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double *sorted(const double *values, size_t n, double *scratch)
{
	memcpy(scratch, values, n * sizeof(*values));
	qsort(scratch, n, sizeof(*scratch), by_value);
	return scratch;
}

static double median_of(const double *values, size_t n, double *scratch)
{
	return rfl_stats_percentile(sorted(values, n, scratch), n, 50);
}

/* One side of Page's CUSUM (sign 1: slower, -1: faster). */
struct cusum {
	double sign, sum, largest;
	size_t at; /* number of steps up to the largest sum; 0: the sum did not reach the limit */
};

static void cusum_add(struct cusum *c, double rank, size_t step)
{
	c->sum = fmax(0, c->sum + c->sign * rank - CUSUM_ALLOWANCE);
	if (c->sum > c->largest) {
		c->largest = c->sum;
		c->at = step + 1;
	}
}

/* Page's two-sided CUSUM over the ranks of the first 20 steps among all steps, in standard
 * deviations of a rank. With fewer than 40 steps, the first half is used. The change is
 * estimated at the largest sum, on average one or two steps late. Ranks are independent of the
 * noise distribution and robust against a single slow step, but correlated steps raise more
 * false alarms. */
static int64_t cold_steps(const double *times, size_t n, double *scratch)
{
	struct cusum slow = { .sign = 1, .largest = CUSUM_LIMIT };
	struct cusum fast = { .sign = -1, .largest = CUSUM_LIMIT };
	size_t head = n / 2 < RFL_RUN_WARM_STEPS ? n / 2 : RFL_RUN_WARM_STEPS, cold;
	double level;

	for (size_t i = 0; i < head; i++) {
		/* Standardise the rank to mean 0 and (without ties) standard deviation 1. It is
		 * doubled before that, so that ties get their mean rank. */
		double rank = 0;

		for (size_t k = 0; k < n; k++)
			rank += times[k] < times[i] ? 2 : k != i && times[k] == times[i];
		rank = (rank - (double)(n - 1)) * sqrt(3.0 / ((double)n * (double)n - 1.0));
		cusum_add(&slow, rank, i);
		cusum_add(&fast, rank, i);
	}
	cold = slow.largest >= fast.largest ? slow.at : fast.at;
	if (cold == 0 || cold == head) /* still rising: a later change is drift */
		return 0;
	level = median_of(times + head, n - head, scratch);
	if (fabs(median_of(times, cold, scratch) - level) <= RFL_RUN_WARM_CHANGE * level)
		return 0;
	return (int64_t)cold;
}

struct rfl_run_stats rfl_run_stats_of(const double *times, size_t n)
{
	struct rfl_run_stats s = { .time = rfl_stats_of(times, n) };
	const size_t third = n / 3;
	double together = 0, alone = 0;
	RFL_AUTOFREE double *scratch = rfl_alloc_array(n, sizeof(*scratch));

	(void)sorted(times, n, scratch);
	s.relative_iqr =
		(rfl_stats_percentile(scratch, n, 75) - rfl_stats_percentile(scratch, n, 25)) /
		rfl_stats_percentile(scratch, n, 50);
	s.drift = (double)NAN;
	if (third > 0)
		s.drift = median_of(times + (n - third), third, scratch) /
				  median_of(times, third, scratch) -
			  1.0;
	for (size_t i = 0; i < n; i++) {
		const double off = times[i] - s.time.mean;

		alone += off * off;
		if (i + 1 < n)
			together += off * (times[i + 1] - s.time.mean);
		s.outliers += fabs(times[i] - s.time.median) > RFL_RUN_OUTLIER * s.time.mad;
	}
	s.lag1 = n < 3 || alone <= 0 ? (double)NAN : together / alone;
	s.cold_steps = cold_steps(times, n, scratch);
	return s;
}

char *rfl_run_flags(const struct rfl_run_stats *stats, const struct rfl_run_signs *signs,
		    char out[RFL_RUN_FLAGS_MAX])
{
	const bool drifts = fabs(stats->drift) > RFL_RUN_DRIFT_LIMIT;
	const struct {
		bool raised;
		const char *name;
	} flags[] = {
		{ drifts || stats->relative_iqr > RFL_RUN_UNSTABLE_IQR, "unstable" },
		{ drifts, "drift" },
		{ signs->busy, "busy" },
		{ stats->cold_steps > 0, "not_warm" },
		{ signs->throttled, "throttled" },
		{ signs->data_wait_mean > RFL_RUN_LOADER_BOUND * stats->time.mean, "loader_bound" },
		{ stats->time.n < RFL_RUN_FEW_STEPS, "few_steps" },
		{ signs->until_missed, "until_missed" },
	};
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < RFL_ARRAY_LEN(flags); i++) {
		if (flags[i].raised)
			at += (size_t)snprintf(out + at, RFL_RUN_FLAGS_MAX - at, "%s%s",
					       at ? " " : "", flags[i].name);
	}
	return out;
}
