/*
 * stats.h - statistics of repeated measurements, in the unit of the samples. A value that needs
 * more samples than given is NaN, such as the standard deviation of one sample.
 */
#ifndef RFL_BASE_STATS_H
#define RFL_BASE_STATS_H

#include <stddef.h>

#include "base/compiler.h"

struct rfl_stats {
	size_t n;
	double mean;
	double std; /**< sample standard deviation (divisor n - 1) */
	double median;
	double mad; /**< median absolute deviation, not scaled */
	double p10, p90;
	double min, max;
	double ci95; /**< half-width of the 95 % confidence interval of the mean, by Student's t */
};

/** Compute statistics. All are NaN if there are no samples or a sample is NaN. */
struct rfl_stats rfl_stats_of(const double *samples, size_t n);

/** Percentile p in [0, 100] of sorted samples, linear between ranks (Hyndman and Fan, type 7). */
double rfl_stats_percentile(const double *sorted, size_t n, double p);

/** Quantile of Student's t: t such that P(|T| < t) = 0.95 with df > 0 degrees of freedom, which
 * may be fractional; NaN for other df. */
double rfl_stats_t95(double df);

/** The difference of two means, b - a, and its 95 % confidence interval. */
struct rfl_stats_difference {
	double value;
	double lo, hi; /**< NaN if either set has fewer than two samples */
	double df; /**< degrees of freedom; NaN if `lo` and `hi` are NaN or neither set varies */
};

/** Compare two sets of samples with possibly different variances, after B. L. Welch, "The
 * generalization of 'Student's' problem when several different population variances are involved",
 * Biometrika 34 (1947). If neither set varies, the interval has zero width. */
struct rfl_stats_difference rfl_stats_welch(const struct rfl_stats *a, const struct rfl_stats *b);

/** The least-squares line through samples in order: its rise from the first sample to the last. */
struct rfl_stats_trend {
	double rise; /**< NaN for n < 2 */
	double ci95; /**< half-width of its 95 % confidence interval, by Student's t; NaN for n < 3
		      */
};

struct rfl_stats_trend rfl_stats_trend(const double *samples, size_t n);

#endif
