/*
 * attained.c - sums of least times.
 */
#include "complexity/attained.h"

const char *const rfl_limit_names[] = { "compute", "vector", "memory", NULL };

double rfl_attained_time(const struct rfl_attained *a)
{
	double sum = 0;

	for (int i = 0; i < RFL_LIMIT_COUNT; i++)
		sum += a->limit_s[i];
	return sum;
}

enum rfl_limit rfl_attained_bound(const struct rfl_attained *a)
{
	enum rfl_limit most = RFL_LIMIT_COUNT;

	for (int i = 0; i < RFL_LIMIT_COUNT; i++)
		if (a->limit_s[i] > 0 &&
		    (most == RFL_LIMIT_COUNT || a->limit_s[i] > a->limit_s[most]))
			most = (enum rfl_limit)i;
	return most;
}

void rfl_attained_add(struct rfl_attained *sum, const struct rfl_attained *a)
{
	for (int i = 0; i < RFL_LIMIT_COUNT; i++)
		sum->limit_s[i] += a->limit_s[i];
}
