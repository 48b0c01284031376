/*
 * figure_ceilings.c - which ceilings are worth drawing, and what is written along them: the roof
 * first (bandwidth and the compute ceiling of most points), then what explains the points, four in
 * all.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "plot/figure.h"

static const char *rate_of(struct rfl_figure *f, enum rfl_fig_kind kind, double per_s)
{
	const char *unit = kind == RFL_FIG_BANDWIDTH ? "B/s" : "FLOP/s";
	char text[RFL_NUM_MAX];

	return rfl_scene_printf(f->scene, "%s", rfl_num_si(per_s, unit, 3, text, sizeof(text)));
}

/* A new ceiling; NULL when there is no room, or one that looks the same. */
static struct rfl_fig_ceiling *add(struct rfl_figure *f, enum rfl_fig_kind kind, double value,
				   const char *id)
{
	struct rfl_fig_ceiling *c;

	if (f->nceilings == RFL_FIG_CEILINGS || !(value > 0))
		return NULL;
	for (size_t i = 0; i < f->nceilings; i++)
		if (f->ceilings[i].kind == kind && fabs(f->ceilings[i].value / value - 1) < 0.02)
			return NULL;
	c = &f->ceilings[f->nceilings++];
	*c = (struct rfl_fig_ceiling){
		.kind = kind, .value = value, .lo = NAN, .hi = NAN, .id = id
	};
	return c;
}

/* A peak. Quiet ceilings are labelled by the value alone; of the roof it is said how it was found:
 * "DRAM 38.6 GB/s measured, triad nt, 24 runs within 2 %", "FP32 vector 182 GFLOP/s measured, 2
 * threads, avx512 fma". */
static void add_peak(struct rfl_figure *f, enum rfl_fig_kind kind, const struct rfl_peak *p,
		     bool primary, const char *what, const char *id)
{
	static const char *const status_words[] = {
		[RFL_PEAK_MEASURED] = "measured",
		[RFL_PEAK_SPEC] = "data sheet",
		[RFL_PEAK_DERIVED] = "derived",
		[RFL_PEAK_USER] = "as given",
	};
	struct rfl_fig_ceiling *c = rfl_peak_usable(p) ? add(f, kind, p->value / 1e9, id) : NULL;
	const bool memory = kind == RFL_FIG_BANDWIDTH,
		   measured = p && p->status == RFL_PEAK_MEASURED;
	struct rfl_scene *s = f->scene;
	const char *text;
	double spread;

	if (!c)
		return;
	c->primary = primary;
	c->solid = primary || (memory && measured);
	if (measured && p->stats.n > 1) {
		c->lo = p->stats.min / 1e9;
		c->hi = p->stats.max / 1e9;
	}
	text = rfl_scene_printf(s, "%s %s", what, rate_of(f, kind, c->value * 1e9));
	c->labels[0] = c->labels[1] = c->labels[2] = text;
	if (!primary)
		return;
	text = c->labels[1] = rfl_scene_printf(s, "%s %s", text, status_words[p->status]);
	if (!memory && p->threads > 0)
		text = rfl_scene_printf(s, "%s, %d thread%s", text, p->threads,
					p->threads == 1 ? "" : "s");
	if (p->kernel && *p->kernel)
		text = rfl_scene_printf(s, "%s, %.*s", text, (int)strcspn(p->kernel, ","),
					p->kernel);
	/* all runs between the least and the greatest */
	spread = 100 * (p->stats.max - p->stats.min) / p->stats.max;
	if (memory && p->stats.n >= 2 && !isnan(spread))
		text = rfl_scene_printf(s, "%s, %lld runs within %.0f %%", text,
					(long long)p->stats.n, fmax(ceil(spread), 1));
	c->labels[0] = text;
}

/* The data sheet's value beside a measured one: "data sheet 76.8 GB/s (76 % reached)". */
static void add_sheet(struct rfl_figure *f, enum rfl_fig_kind kind, const struct rfl_peak *p,
		      const char *id)
{
	struct rfl_fig_ceiling *c;

	if (!p || p->status != RFL_PEAK_MEASURED || !(p->spec > 0))
		return;
	c = add(f, kind, p->spec / 1e9, id);
	if (!c)
		return;
	c->labels[1] = c->labels[2] =
		rfl_scene_printf(f->scene, "data sheet %s", rate_of(f, kind, p->spec));
	c->labels[0] = rfl_scene_printf(f->scene, "%s (%.0f %% reached)", c->labels[1],
					100 * p->value / p->spec);
}

/* A point of the compute ceiling that most points have; the earliest of equals. */
static const struct rfl_point *main_point(const struct rfl_figure *f)
{
	const struct rfl_point *ret = NULL;
	size_t most = 0;

	for (size_t i = 0; i < f->nmarks; i++) {
		const double peak = f->marks[i].point->peak_gflops;
		size_t n = 0;

		if (i > 0 && f->marks[i - 1].point->peak_gflops == peak)
			continue;
		for (size_t k = 0; k < f->nmarks; k++)
			n += f->marks[k].point->peak_gflops == peak;
		if (n > most) {
			most = n;
			ret = f->marks[i].point;
		}
	}
	return ret;
}

static bool differs(double a, double b)
{
	return fabs(a - b) > 1e-6 * fabs(b);
}

/* A figure must not put points under other ceilings than the ones they were made with. */
static enum rfl_rc check_peak(const struct rfl_peaks_env *env, const struct rfl_peak *peak,
			      const char *key, double point, const char *unit, const char *what,
			      struct rfl_err *err)
{
	char cell[128];

	if (!rfl_peak_usable(peak))
		return rfl_fail(err, RFL_EMISSING, 0,
				"environment %s: %s is not known; 'roofline peaks measure' or "
				"'roofline peaks set' supplies it",
				env->name, rfl_peaks_cell(env, key, cell, sizeof(cell)));
	if (!differs(point, peak->value / 1e9))
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0,
			"environment %s: the points were made with %g %s of %s, the peaks file "
			"says %g; run 'roofline points' again",
			env->name, point, unit, what, peak->value / 1e9);
}

static enum rfl_rc check_same(const struct rfl_figure *f, struct rfl_err *err)
{
	const struct rfl_peaks_env *env = f->in->env;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; rc == RFL_OK && i < f->nmarks; i++) {
		const struct rfl_point *p = f->marks[i].point;
		const struct rfl_peak *c =
			p->compute_key ? rfl_peaks_compute(env, p->compute_key) : NULL;

		rc = check_peak(env, rfl_peaks_dram(env), "memory.DRAM", p->peak_gbps, "GB/s",
				"memory bandwidth", err);
		if (rc == RFL_OK && c)
			rc = check_peak(env, c, p->compute_key, p->peak_gflops, "GFLOP/s",
					p->compute_key, err);
	}
	return rc;
}

/* The ceiling of a point: a peak of the file, or a mixture of precisions whose key is not in it. */
static void add_compute(struct rfl_figure *f, const struct rfl_point *p, bool primary)
{
	const struct rfl_peaks_env *env = f->in->env;
	const struct rfl_peak *peak =
		p->compute_key ? rfl_peaks_compute(env, p->compute_key) : NULL;
	const struct rfl_peak mixed = { .status = RFL_PEAK_DERIVED, .value = p->peak_gflops * 1e9 };

	if (!peak)
		add_peak(f, RFL_FIG_COMPUTE, &mixed, primary,
			 p->compute_key ? p->compute_key : "compute", "roof-compute-mixed");
	else
		add_peak(f, RFL_FIG_COMPUTE, peak, primary,
			 env->short_form ? "compute" : rfl_words_compute(f->scene, p->compute_key),
			 rfl_scene_printf(f->scene, "roof-%s", p->compute_key));
}

enum rfl_rc rfl_figure__ceilings(struct rfl_figure *f, struct rfl_err *err)
{
	const struct rfl_peaks_env *env = f->in->env;
	const struct rfl_peak *dram = rfl_peaks_dram(env);
	const struct rfl_point *p = main_point(f);
	const char *one;
	enum rfl_rc rc = check_same(f, err);

	if (rc != RFL_OK)
		return rc;
	f->gbps = p->peak_gbps;
	f->gflops = p->peak_gflops;
	f->knee = f->gflops / f->gbps;
	add_peak(f, RFL_FIG_BANDWIDTH, dram, true,
		 env->short_form                              ? "memory"
		 : env->kind && strcmp(env->kind, "gpu") == 0 ? "device memory"
							      : "DRAM",
		 "roof-memory");
	add_compute(f, p, true);
	for (size_t i = 0; i < f->nmarks; i++)
		if (differs(f->marks[i].point->peak_gflops, f->gflops))
			add_compute(f, f->marks[i].point, false);
	/* one core of the roof's own kind: the ceiling of a loop that does not scale */
	one = rfl_scene_printf(f->scene, "%s.1core", p->compute_key ? p->compute_key : "");
	for (size_t i = 0; i < env->ncompute && !env->short_form; i++)
		if (strcmp(env->compute[i].key, one) == 0)
			add_peak(f, RFL_FIG_COMPUTE, &env->compute[i].peak, false, "one core",
				 "roof-one-core");
	add_sheet(f, RFL_FIG_BANDWIDTH, dram, "roof-memory-sheet");
	add_sheet(f, RFL_FIG_COMPUTE,
		  p->compute_key ? rfl_peaks_compute(env, p->compute_key) : NULL,
		  "roof-compute-sheet");
	/* the cache just above DRAM, of the scope in which DRAM was measured */
	for (size_t i = env->nlevels; i-- > 0;) {
		const struct rfl_peak_level *l = &env->levels[i];

		if (!rfl_peak_usable(&l->peak) || l->peak.value / 1e9 <= f->gbps * 1.02 ||
		    (l->scope && strcmp(l->scope, "core") == 0 && env->units > 1))
			continue;
		add_peak(f, RFL_FIG_BANDWIDTH, &l->peak, false, l->level,
			 rfl_scene_printf(f->scene, "roof-%s", l->level));
		break;
	}
	return rfl_scene_check(f->scene, err);
}
