/*
 * stats_compare.c - two sets of repeated measurements against each other, and one against its own
 * order.
 */
#undef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* M_PI_2 */

#include "base/stats.h"

#include <math.h>
#include <stdint.h>

/*
 * The continued fraction of the incomplete beta function, by Lentz's method in the form of Thompson
 * and Barnett (1986): DLMF 8.17.22 (https://dlmf.nist.gov/8.17.E22). It converges fast for x below
 * (a + 1) / (a + b + 2).
 */
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

/* The regularised incomplete beta function I_x(a, b), DLMF 8.17.2, with its reflection 8.17.4. */
static double beta_regularised(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* With theta = atan(t / sqrt(df)): P(|T| < t) = I_{sin^2 theta}(1/2, df / 2). */
static double t95_by_beta(double df)
{
	double low = 0, high = M_PI_2;

	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2, s = sin(middle);

		if (beta_regularised(0.5, df / 2, s * s) < 0.95)
			low = middle;
		else
			high = middle;
	}
	return sqrt(df) * tan((low + high) / 2);
}

double rfl_stats_t95_real(double df)
{
	if (!(df > 0))
		return NAN;
	if (df >= 1e5) /* between neighbours there it is as good as straight */
		return df < 9e15 ? rfl_stats_t95((size_t)df) +
					   (df - floor(df)) * (rfl_stats_t95((size_t)df + 1) -
							       rfl_stats_t95((size_t)df))
				 : rfl_stats_t95(SIZE_MAX);
	return t95_by_beta(df);
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
	half = rfl_stats_t95_real(d.df) * sqrt(va + vb);
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
	t.ci95 = rfl_stats_t95(n - 2) * sqrt(rest / (double)(n - 2) / square) * (double)(n - 1);
	return t;
}
