/* chart_peaks.c - a chart of ceilings: measured bandwidth against the working set. */
#include <math.h>

#include "base/num.h"
#include "plot/chart.h"

enum rfl_rc rfl_chart_bandwidth(const struct rfl_peaks_env *env, struct rfl_chart **ret,
				struct rfl_err *err)
{
	struct rfl_chart *c = rfl_chart_new("bandwidth", env->name);
	int64_t least = INT64_MAX, most = 0;
	size_t lost = 0;
	enum rfl_rc rc;

	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "chart: out of memory");
	c->npanels = 1;
	c->title = rfl_scene_printf(c->scene, "Memory bandwidth: %s", env->name);
	c->subtitle = rfl_scene_printf(c->scene, "%s", env->device ? env->device : "");
	c->panels[0].x = (struct rfl_chart_axis){
		.title = "Working set", .lo = NAN, .hi = NAN, .log2 = true, .bytes = true
	};
	c->panels[0].y = (struct rfl_chart_axis){
		.title = "Bandwidth (GB/s)", .lo = NAN, .hi = NAN, .zero = true
	};
	for (size_t i = 0; i < env->nlevels; i++) {
		const struct rfl_peak_level *l = &env->levels[i];
		const struct rfl_peak *p = &l->peak;
		struct rfl_chart_series *s;

		if (p->status != RFL_PEAK_MEASURED || p->working_set_bytes <= 0) {
			lost++;
			continue;
		}
		s = rfl_chart_series(c, 0,
				     rfl_scene_printf(c->scene, "%s: %s", l->level,
						      p->kernel ? p->kernel : "kernel unknown"));
		if (!s)
			break;
		s->color = s->marker = (int)c->panels[0].n - 1;
		rfl_chart_add(
			c, s,
			(struct rfl_chart_row){ .x = (double)p->working_set_bytes,
						.y = p->value / 1e9,
						.lo = p->stats.n > 1 ? p->stats.min / 1e9 : NAN,
						.hi = p->stats.n > 1 ? p->stats.max / 1e9 : NAN,
						.n = (size_t)p->stats.n });
		least = p->stats.n < least ? p->stats.n : least;
		most = p->stats.n > most ? p->stats.n : most;
	}
	rc = rfl_scene_check(c->scene, err);
	if (rc == RFL_OK && c->panels[0].n == 0)
		rc = rfl_fail(err, RFL_EMISSING, 0,
			      "%s: no bandwidth with its working set; run 'roofline peaks measure "
			      "--env %s' to measure them",
			      env->name, env->name);
	if (rc != RFL_OK) {
		rfl_chart_free(c);
		return rc;
	}
	if (most > 1 && least == most)
		c->note = rfl_scene_printf(c->scene,
					   "The fastest of %lld runs; error bars: their range.",
					   (long long)most);
	else if (most > 1)
		c->note = rfl_scene_printf(
			c->scene, "The fastest of %lld to %lld runs; error bars: their range.",
			(long long)least, (long long)most);
	if (lost)
		c->note = rfl_scene_printf(c->scene,
					   "%s%s%zu ceiling%s without a measured working set "
					   "%s not shown.",
					   c->note, *c->note ? " " : "", lost, lost == 1 ? "" : "s",
					   lost == 1 ? "is" : "are");
	if (!(rc = rfl_scene_check(c->scene, err)))
		*ret = c;
	else
		rfl_chart_free(c);
	return rc;
}
