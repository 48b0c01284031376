/*
 * stats.c - description of repeated measurements.
 */
#undef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* M_PI_2 */

#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double rfl_stats_percentile(const double *sorted, size_t n, double p)
{
	double rank, fraction;
	size_t below;

	if (n == 0 || !(p >= 0 && p <= 100))
		return NAN;
	rank = (double)(n - 1) * p / 100;
	below = (size_t)rank;
	if (below + 1 >= n)
		return sorted[n - 1];
	fraction = rank - (double)below;
	if (fraction == 0)
		return sorted[below]; /* also keeps an infinite neighbour out */
	return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

/*
 * P(|T| < t) for integer df, with theta = atan(t / sqrt(df)): the finite sums of Abramowitz and
 * Stegun, Handbook of Mathematical Functions, 26.7.3 (odd) and 26.7.4 (even).
 */
static double probability_within(double theta, size_t df)
{
	double s = sin(theta), c = cos(theta), term, sum = 0;

	if (df % 2 == 0) {
		term = 1;
		for (size_t k = 2; k <= df; k += 2) {
			sum += term;
			term *= c * c * (double)(k - 1) / (double)k;
		}
		return s * sum;
	}
	term = c;
	for (size_t k = 3; k <= df; k += 2) {
		sum += term;
		term *= c * c * (double)(k - 1) / (double)k;
	}
	return M_2_PI * (theta + s * sum);
}

static double t95_by_bisection(size_t df)
{
	double low = 0, high = M_PI_2;

	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if (probability_within(middle, df) < 0.95)
			low = middle;
		else
			high = middle;
	}
	return sqrt((double)df) * tan((low + high) / 2);
}

/* Abramowitz and Stegun 26.7.5; beyond 200 degrees its error is below 1e-9. */
static double t95_by_expansion(double df)
{
	const double z = 1.9599639845400542355; /* of the normal distribution */
	const double z2 = z * z;
	const double g1 = z * (z2 + 1) / 4;
	const double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
	const double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
	const double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;

	return z + (g1 + (g2 + (g3 + g4 / df) / df) / df) / df;
}

/* For 1, 2, ... 30 degrees, by mpmath with 30 digits: summaries ask for them thousands of times. */
static const double t95_table[] = {
	12.706204736174705, 4.3026527297494639, 3.1824463052837096, 2.7764451051977944,
	2.5705818356363155, 2.44691185114497,   2.3646242515927853, 2.3060041352041667,
	2.2621571627982055, 2.2281388519862747, 2.2009851600916399, 2.1788128296672289,
	2.1603686564627925, 2.1447866879178038, 2.1314495455597757, 2.1199052992212547,
	2.1098155778333171, 2.1009220402410385, 2.0930240544083098, 2.0859634472658648,
	2.0796138447276804, 2.0738730679040262, 2.0686576104190487, 2.0638985616280258,
	2.0595385527532977, 2.0555294386428732, 2.0518305164802856, 2.0484071417952452,
	2.0452296421327043, 2.0422724563012383,
};

double rfl_stats_t95(size_t df)
{
	if (df == 0)
		return NAN;
	if (df <= RFL_ARRAY_LEN(t95_table))
		return t95_table[df - 1];
	return df <= 200 ? t95_by_bisection(df) : t95_by_expansion((double)df);
}

/* Two passes: the second one corrects the rounding of the first. */
static double mean_of(const double *x, size_t n)
{
	double sum = 0, rest = 0, mean;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		rest += x[i] - mean;
	return isfinite(mean) ? mean + rest / (double)n : mean;
}

static double sample_std(const double *x, size_t n, double mean)
{
	double sum = 0;

	if (n < 2)
		return NAN;
	for (size_t i = 0; i < n; i++)
		sum += (x[i] - mean) * (x[i] - mean);
	return sqrt(sum / (double)(n - 1));
}

enum rfl_rc rfl_stats_describe(const double *samples, size_t n, struct rfl_stats *ret,
			       struct rfl_err *err)
{
	struct rfl_stats s = { .n = n };
	double *x;

	if (n == 0)
		return rfl_fail(err, RFL_EINVAL, 0, "statistics of no samples");
	for (size_t i = 0; i < n; i++)
		if (isnan(samples[i]))
			return rfl_fail(err, RFL_EINVAL, 0,
					"statistics: sample %zu of %zu is not a "
					"number",
					i + 1, n);
	x = rfl_alloc_array(n, sizeof(*x));
	if (!x)
		return rfl_fail(err, RFL_ENOMEM, 0, "statistics of %zu samples: out of memory", n);
	memcpy(x, samples, n * sizeof(*x));
	qsort(x, n, sizeof(*x), by_value);
	s.mean = mean_of(x, n);
	s.std = sample_std(x, n, s.mean);
	s.median = rfl_stats_percentile(x, n, 50);
	s.p10 = rfl_stats_percentile(x, n, 10);
	s.p90 = rfl_stats_percentile(x, n, 90);
	s.min = x[0];
	s.max = x[n - 1];
	s.ci95 = n < 2 ? (double)NAN : rfl_stats_t95(n - 1) * s.std / sqrt((double)n);
	for (size_t i = 0; i < n; i++)
		x[i] = fabs(x[i] - s.median);
	qsort(x, n, sizeof(*x), by_value);
	s.mad = rfl_stats_percentile(x, n, 50);
	free(x);
	*ret = s;
	return RFL_OK;
}
