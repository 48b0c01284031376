/* stats.c - statistics of repeated measurements. */
#undef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* M_PI_2 */

#include "base/stats.h"

#include <math.h>
#include <stdbool.h>
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
		return sorted[below]; /* ignore a neighbour with weight 0, which may be infinite */
	return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

/* P(|T| < t) for integer df, with theta = atan(t / sqrt(df)), by the finite sums of Abramowitz and
 * Stegun, Handbook of Mathematical Functions, 26.7.3 (odd) and 26.7.4 (even). */
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

/* The continued fraction of the incomplete beta function, by Lentz's method in the form of Thompson
 * and Barnett (1986): DLMF 8.17.22 (https://dlmf.nist.gov/8.17.E22). It converges quickly for x
 * below (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	f = d;
	for (int m = 1; m <= 1000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step = 1;

		for (int i = 0; i < 2; i++) {
			double term = i == 0 ? even : odd;

			d = 1 + term * d;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = 1 + term / c;
			c = fabs(c) < tiny ? tiny : c;
			step = c * d;
			f *= step;
		}
		if (fabs(step - 1) < 1e-16)
			break;
	}
	return f;
}

/* The regularised incomplete beta function I_x(a, b), x > 0: DLMF 8.17.2; reflection 8.17.4. */
static double beta_regularised(double a, double b, double x)
{
	const double front =
		exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));

	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* With theta = atan(t / sqrt(df)): P(|T| < t) = I_{sin^2 theta}(1/2, df / 2) for any df; for
 * integer df the finite sums are faster. */
static double t95_by_bisection(double df, bool integer)
{
	double low = 0, high = M_PI_2;

	for (int i = 0; i < 60; i++) {
		const double middle = (low + high) / 2, s = sin(middle);
		const double p = integer ? probability_within(middle, (size_t)df)
					 : beta_regularised(0.5, df / 2, s * s);

		if (p < 0.95)
			low = middle;
		else
			high = middle;
	}
	return sqrt(df) * tan((low + high) / 2);
}

/* Values for df = 1 to 30, computed with mpmath to 30 digits; summaries use them very often. */
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

double rfl_stats_t95(double df)
{
	const double z = 1.9599639845400542355, z2 = z * z; /* normal quantile for 97.5 % */
	const bool integer = df == floor(df);

	if (!(df > 0))
		return NAN;
	if (integer && df <= (double)RFL_ARRAY_LEN(t95_table))
		return t95_table[(size_t)df - 1];
	if (df <= 200 || (!integer && df < 1e5))
		return t95_by_bisection(df, integer);
	/* Abramowitz and Stegun 26.7.5; above 200 degrees of freedom its error is below 1e-9. */
	const double g1 = z * (z2 + 1) / 4;
	const double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
	const double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
	const double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;

	return z + (g1 + (g2 + (g3 + g4 / df) / df) / df) / df;
}

struct rfl_stats rfl_stats_of(const double *samples, size_t n)
{
	struct rfl_stats s = { n, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
	double sum = 0, rest = 0, squares = 0;
	RFL_AUTOFREE double *x = NULL;
	size_t known = 0;

	while (known < n && !isnan(samples[known]))
		known++;
	if (n == 0 || known < n)
		return s;
	x = rfl_alloc_array(n, sizeof(*x));
	memcpy(x, samples, n * sizeof(*x));
	qsort(x, n, sizeof(*x), by_value);
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	s.mean = sum / (double)n;
	for (size_t i = 0; i < n; i++) /* the second pass corrects rounding errors from the first */
		rest += x[i] - s.mean;
	if (isfinite(s.mean))
		s.mean += rest / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (x[i] - s.mean) * (x[i] - s.mean);
	s.std = n < 2 ? (double)NAN : sqrt(squares / (double)(n - 1));
	s.median = rfl_stats_percentile(x, n, 50);
	s.p10 = rfl_stats_percentile(x, n, 10);
	s.p90 = rfl_stats_percentile(x, n, 90);
	s.min = x[0];
	s.max = x[n - 1];
	s.ci95 = n < 2 ? (double)NAN : rfl_stats_t95((double)(n - 1)) * s.std / sqrt((double)n);
	for (size_t i = 0; i < n; i++)
		x[i] = fabs(x[i] - s.median);
	qsort(x, n, sizeof(*x), by_value);
	s.mad = rfl_stats_percentile(x, n, 50);
	return s;
}

struct rfl_stats_difference rfl_stats_welch(const struct rfl_stats *a, const struct rfl_stats *b)
{
	struct rfl_stats_difference d = {
		.value = b->mean - a->mean, .lo = (double)NAN, .hi = (double)NAN, .df = (double)NAN
	};
	double va, vb, share, half;

	if (a->n < 2 || b->n < 2)
		return d;
	va = a->std * a->std / (double)a->n;
	vb = b->std * b->std / (double)b->n;
	if (va + vb == 0) {
		d.lo = d.hi = d.value;
		return d;
	}
	share = va / (va + vb);
	d.df = 1 / (share * share / (double)(a->n - 1) +
		    (1 - share) * (1 - share) / (double)(b->n - 1));
	/* Use one method for whole and fractional df, up to where it agrees with the series. */
	half = (d.df < 1e5 ? t95_by_bisection(d.df, false) : rfl_stats_t95(d.df)) * sqrt(va + vb);
	d.lo = d.value - half;
	d.hi = d.value + half;
	return d;
}

struct rfl_stats_trend rfl_stats_trend(const double *samples, size_t n)
{
	struct rfl_stats_trend t = { .rise = (double)NAN, .ci95 = (double)NAN };
	double mean = 0, middle, up = 0, square = 0, rest = 0;

	if (n < 2)
		return t;
	middle = (double)(n - 1) / 2;
	for (size_t i = 0; i < n; i++)
		mean += samples[i] / (double)n;
	for (size_t i = 0; i < n; i++) {
		double at = (double)i - middle;

		up += at * (samples[i] - mean);
		square += at * at;
	}
	t.rise = up / square * (double)(n - 1);
	if (n < 3)
		return t;
	for (size_t i = 0; i < n; i++) {
		double off = samples[i] - mean - up / square * ((double)i - middle);

		rest += off * off;
	}
	t.ci95 = rfl_stats_t95((double)(n - 2)) * sqrt(rest / (double)(n - 2) / square) *
		 (double)(n - 1);
	return t;
}
