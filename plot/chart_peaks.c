/* chart_peaks.c - a chart of ceilings: bandwidth against the working set, as measured. */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "plot/chart_runs.h"

/* Whether one core can use the whole capacity of a level: a working set of more than half of it was
 * tried on one core. There may be several caches. */
static bool reached_by_one(const struct rfl_peak_level *l)
{
	for (size_t i = 0; i < l->nsweep; i++)
		if (strcmp(l->sweep[i].scope, "core") == 0 &&
		    2 * l->sweep[i].working_set_bytes > l->capacity_bytes)
			return true;
	return false;
}

/* Number of threads that measured a ceiling of one core at the same time; 1 for other ceilings. */
static double cores_of(const struct rfl_peak_level *l)
{
	return rfl_text_same(l->scope, "core") && l->peak.threads > 0 ? l->peak.threads : 1;
}

/* Add a panel with the curve of a scope and the capacities of the caches. */
static void add_curve(struct rfl_chart *c, const struct rfl_peaks_env *env, const char *scope,
		      const char *title)
{
	const bool one = strcmp(scope, "core") == 0;
	struct rfl_chart_panel *p = &c->panels[c->npanels];
	struct rfl_chart_series *s =
		rfl_chart_series(c, c->npanels, "read, short tests of all working sets");

	for (const struct rfl_peak_level *l = env->levels; l < env->levels + env->nlevels; l++) {
		const double count = one ? 1 : cores_of(l);
		char size[RFL_NUM_MAX];

		for (size_t k = 0; k < l->nsweep; k++)
			if (strcmp(l->sweep[k].scope, scope) == 0)
				rfl_chart_add(c, s,
					      rfl_chart_point((double)l->sweep[k].working_set_bytes,
							      l->sweep[k].value / 1e9, 1));
		if (l->capacity_bytes > 0 && (!one || reached_by_one(l)) &&
		    p->nedges < RFL_CHART_EDGES)
			p->edges[p->nedges++] = (struct rfl_chart_edge){
				.x = (double)l->capacity_bytes * count,
				.text = rfl_scene_printf(
					c->scene, "%s %s", l->level,
					rfl_num_bytes((double)l->capacity_bytes * count, size,
						      sizeof(size))),
			};
	}
	if (s->n == 0) {
		p->n = p->nedges = 0;
		return;
	}
	p->x.title = title;
	c->npanels++;
}

/* Add the ceilings: of all cores together, like the first panel. */
static void add_ceilings(struct rfl_chart *c, const struct rfl_peaks_env *env)
{
	const char *const rate =
		env->kind && strcmp(env->kind, "gpu") == 0 ? "sustained rate" : "fastest";
	int64_t least = INT64_MAX, most = 0;
	size_t lost = 0;

	for (const struct rfl_peak_level *l = env->levels; l < env->levels + env->nlevels; l++) {
		const struct rfl_peak *p = &l->peak;
		const double unit = cores_of(l) / 1e9;
		struct rfl_chart_series *s = NULL;
		const char *name;

		if (rfl_peaks_is_part(env, l)) /* of fewer cores than the panel */
			continue;
		if (p->status != RFL_PEAK_MEASURED || p->working_set_bytes <= 0) {
			lost++;
			continue;
		}
		name = rfl_scene_printf(c->scene, "%s: %s", l->level,
					p->kernel ? p->kernel : "kernel unknown");
		for (size_t k = c->npanels; k-- > 0;) { /* the same series in each panel */
			s = rfl_chart_series(c, k, name);
			s->color = s->marker = (int)c->panels[k].n - 1;
		}
		rfl_chart_add(
			c, s,
			(struct rfl_chart_row){ .x = (double)p->working_set_bytes,
						.y = p->value * unit,
						.lo = p->stats.n > 1 ? p->stats.min * unit : NAN,
						.hi = p->stats.n > 1 ? p->stats.max * unit : NAN,
						.n = (size_t)p->stats.n });
		least = p->stats.n < least ? p->stats.n : least;
		most = p->stats.n > most ? p->stats.n : most;
	}
	if (most > 1)
		rfl_chart__note(c, "Levels: the %s of %s; error bars: their range.", rate,
				rfl_words_range(c->scene, (size_t)least, (size_t)most, "run"));
	if (lost)
		rfl_chart__note(c, "%s without a measured working set %s not shown.",
				rfl_words_count(c->scene, lost, "ceiling"),
				lost == 1 ? "is" : "are");
}

enum rfl_rc rfl_chart__bandwidth(struct rfl_chart_runs *of, struct rfl_err *err)
{
	const struct rfl_peaks_env *env = of->in->peaks;
	struct rfl_chart *c = of->chart;
	size_t drawn = 0;

	c->subtitle = rfl_scene_printf(c->scene, "%s", env->device ? env->device : "");
	for (size_t i = 0; i < RFL_CHART_PANELS; i++) {
		c->panels[i].x.title = "Working set";
		c->panels[i].x.log = 2;
		c->panels[i].x.bytes = true;
		c->panels[i].y.title = "Bandwidth (GB/s)";
		c->panels[i].y.zero = true;
	}
	add_curve(c, env, "node", "Working set of all cores together");
	add_curve(c, env, "core", "Working set of one core");
	if (c->npanels == 0)
		add_curve(c, env, "device", "Working set");
	c->npanels = c->npanels ? c->npanels : 1;
	add_ceilings(c, env);
	for (size_t i = 0; i < c->panels[0].n; i++)
		drawn += c->panels[0].series[i].n;
	if (c->npanels > 1 || c->panels[0].nedges)
		rfl_chart__note(c, "Dashed: capacities of the caches.");
	return drawn ? RFL_OK
		     : rfl_fail(
			       err, RFL_EMISSING, 0,
			       "%s: no bandwidth with its working set; run 'roofline peaks measure "
			       "--env %s' to measure both",
			       env->name, env->name);
}
