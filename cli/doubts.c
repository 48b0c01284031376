/*
 * doubts.c - the doubts of 'roofline peaks check' as warnings.
 */
#include "cli/doubts.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"

struct doubts {
	const struct rfl_peaks *peaks;
	const struct rfl_points *points;
	const struct rfl_opt_list *envs;
};

static bool is_used(const struct doubts *d, const char *env)
{
	bool wanted = d->envs->n == 0;

	for (size_t i = 0; i < d->envs->n; i++)
		wanted = wanted || strcmp(d->envs->items[i], env) == 0;
	for (size_t i = 0; wanted && i < d->points->n; i++)
		if (d->points->points[i].env && strcmp(d->points->points[i].env, env) == 0)
			return true;
	return false;
}

static void warn(const char *env, const char *cell, const char *text, void *ctx)
{
	const struct doubts *d = ctx;

	if (is_used(d, env))
		rfl_log(RFL_LOG_WARN, "%s: %s: %s: %s", d->peaks->path, env, cell, text);
}

void rfl_cli_warn_doubts(const struct rfl_peaks *peaks, const struct rfl_points *points,
			 const struct rfl_opt_list *envs)
{
	struct doubts d = { .peaks = peaks, .points = points, .envs = envs };
	char today[RFL_TIME_ISO_SIZE];

	rfl_clock_iso(today);
	(void)rfl_peaks_check(peaks, today, warn, &d);
}
