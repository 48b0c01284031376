/*
 * mean.c - how well the mean of a burst's step times is known.
 *
 * Steps are not independent: clocks rise and fall, other programs come and go, and neighbours share
 * that. The usual standard error, which takes each step for news, is then too small, and a burst
 * would stop too soon. Means of batches of neighbours are nearly independent once a batch is longer
 * than what disturbs it; what is left between neighbouring batches is taken for a process of first
 * order. The batches grow with the burst (non-overlapping batch means: A. M. Law, Simulation
 * Modeling and Analysis, ch. 9).
 */
#include "runner/burst/parts.h"

#include <math.h>

/* Full: two neighbours become one. */
static void halve(struct rfl_burst__mean *m)
{
	for (size_t i = 0; i < RFL_BURST__BATCHES / 2; i++)
		m->batches[i] = (m->batches[2 * i] + m->batches[2 * i + 1]) / 2;
	m->nbatches = RFL_BURST__BATCHES / 2;
	m->per_batch *= 2;
}

void rfl_burst__mean_add(struct rfl_burst__mean *m, double time_s)
{
	if (m->n == 0)
		m->per_batch = 1;
	if (m->nbatches == RFL_BURST__BATCHES)
		halve(m);
	m->n++;
	m->sum += time_s;
	m->open_sum += time_s;
	if (++m->open_n < m->per_batch)
		return;
	m->batches[m->nbatches++] = m->open_sum / (double)m->per_batch;
	m->open_sum = 0;
	m->open_n = 0;
}

/* By how much less n values tell whose neighbours are alike. Neighbours that differ more than
 * chance has it are not believed: nothing is gained by them. */
static double variance_factor(double alone, double together)
{
	const double lag1 = alone > 0 ? together / alone : 0;

	return lag1 > 0 ? (1 + lag1) / (1 - lag1) : 1;
}

double rfl_burst__mean_error(const struct rfl_burst__mean *m)
{
	const double n = (double)m->nbatches, mean = m->sum / (double)m->n;
	double middle = 0, alone = 0, together = 0;

	if (m->n < RFL_BURST__FEWEST)
		return (double)NAN;
	for (size_t i = 0; i < m->nbatches; i++)
		middle += m->batches[i] / n;
	for (size_t i = 0; i < m->nbatches; i++) {
		const double d = m->batches[i] - middle;

		alone += d * d;
		if (i + 1 < m->nbatches)
			together += d * (m->batches[i + 1] - middle);
	}
	return sqrt(alone / (n - 1) / n * variance_factor(alone, together)) / mean;
}
