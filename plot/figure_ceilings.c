/*
 * figure_ceilings.c - which ceilings are worth drawing, and what is written along them: the roof
 * first (bandwidth and the compute ceiling that most points stand under), then what explains the
 * points, four in all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot/figure.h"

static const char *status_word(enum rfl_peak_status status)
{
	switch (status) {
	case RFL_PEAK_MEASURED:
		return "measured";
	case RFL_PEAK_SPEC:
		return "data sheet";
	case RFL_PEAK_DERIVED:
		return "derived";
	case RFL_PEAK_USER:
		return "as given";
	default:
		return rfl_peak_status_name(status);
	}
}

/* ", 24 runs within 2 %": all runs between the least and the greatest. */
static const char *spread_words(struct rfl_figure *f, const struct rfl_peak *p)
{
	double spread = 100 * (p->stats.max - p->stats.min) / p->stats.max;

	if (p->stats.n < 2 || isnan(spread))
		return "";
	return rfl_scene_printf(f->scene, ", %lld runs within %s %%", (long long)p->stats.n,
				spread < 1 ? "1"
					   : rfl_scene_printf(f->scene, "%.0f", ceil(spread)));
}

/* ", 2 threads, avx512 fma": how it was measured, in a few words. */
static const char *method_words(struct rfl_figure *f, const struct rfl_peak *p)
{
	const char *text = "";

	if (p->kernel && *p->kernel)
		text = rfl_scene_printf(f->scene, ", %s", rfl_words_first(f->scene, p->kernel));
	if (p->threads > 0)
		text = rfl_scene_printf(f->scene, ", %d thread%s%s", p->threads,
					p->threads == 1 ? "" : "s", text);
	return text;
}

static void set_labels(struct rfl_figure *f, struct rfl_fig_ceiling *c, const char *what,
		       const struct rfl_peak *p)
{
	struct rfl_scene *s = f->scene;
	const char *rate =
		rfl_words_rate(s, c->value * 1e9, c->kind == RFL_FIG_BANDWIDTH ? "B/s" : "FLOP/s");

	c->labels[2] = rfl_scene_printf(s, "%s %s", what, rate);
	c->labels[1] = rfl_scene_printf(s, "%s %s", c->labels[2], status_word(p->status));
	if (c->kind == RFL_FIG_BANDWIDTH)
		c->labels[0] = rfl_scene_printf(
			s, "%s%s%s", c->labels[1],
			p->kernel && *p->kernel
				? rfl_scene_printf(s, ", %s", rfl_words_first(s, p->kernel))
				: "",
			spread_words(f, p));
	else
		c->labels[0] = rfl_scene_printf(s, "%s%s", c->labels[1], method_words(f, p));
	if (!c->primary)
		c->labels[0] = c->labels[1] = c->labels[2];
}

static bool known(const struct rfl_figure *f, enum rfl_fig_kind kind, double value)
{
	for (size_t i = 0; i < f->nceilings; i++)
		if (f->ceilings[i].kind == kind && fabs(f->ceilings[i].value / value - 1) < 0.02)
			return true;
	return false;
}

static struct rfl_fig_ceiling *add(struct rfl_figure *f, enum rfl_fig_kind kind, double value,
				   const char *id)
{
	struct rfl_fig_ceiling *c;

	if (f->nceilings == RFL_FIG_CEILINGS || !(value > 0) || known(f, kind, value))
		return NULL;
	c = &f->ceilings[f->nceilings++];
	*c = (struct rfl_fig_ceiling){
		.kind = kind, .value = value, .lo = NAN, .hi = NAN, .id = id
	};
	return c;
}

static void add_peak(struct rfl_figure *f, enum rfl_fig_kind kind, const struct rfl_peak *p,
		     bool primary, const char *what, const char *id)
{
	struct rfl_fig_ceiling *c;

	if (!p || !rfl_peak_usable(p))
		return;
	c = add(f, kind, p->value / 1e9, id);
	if (!c)
		return;
	c->primary = primary;
	c->solid = primary || (kind == RFL_FIG_BANDWIDTH && p->status == RFL_PEAK_MEASURED);
	if (p->status == RFL_PEAK_MEASURED && p->stats.n > 1) {
		c->lo = p->stats.min / 1e9;
		c->hi = p->stats.max / 1e9;
	}
	set_labels(f, c, what, p);
}

/* The data sheet's value beside a measured one: "sheet 76.8 GB/s (76 % reached)". */
static void add_sheet(struct rfl_figure *f, enum rfl_fig_kind kind, const struct rfl_peak *p,
		      const char *id)
{
	struct rfl_fig_ceiling *c;
	const char *text;

	if (!p || p->status != RFL_PEAK_MEASURED || !(p->spec > 0))
		return;
	c = add(f, kind, p->spec / 1e9, id);
	if (!c)
		return;
	text = rfl_scene_printf(
		f->scene, "data sheet %s",
		rfl_words_rate(f->scene, p->spec, kind == RFL_FIG_BANDWIDTH ? "B/s" : "FLOP/s"));
	c->labels[0] =
		rfl_scene_printf(f->scene, "%s (%.0f %% reached)", text, 100 * p->value / p->spec);
	c->labels[1] = c->labels[2] = text;
}

static int by_ceiling(const void *a, const void *b)
{
	const struct rfl_mark *x = *(struct rfl_mark *const *)a, *y = *(struct rfl_mark *const *)b;
	double p = x->point->peak_gflops, q = y->point->peak_gflops;

	return p != q ? (p < q ? -1 : 1) : x->number - y->number;
}

/* The compute ceiling that most points stand under; the earliest of equals. */
static const struct rfl_point *main_point(struct rfl_figure *f)
{
	struct rfl_mark **marks = rfl_figure__sort(f, by_ceiling);
	const struct rfl_mark *ret = &f->marks[0];
	size_t most = 0;

	for (size_t i = 0, n; marks && i < f->nmarks; i += n) {
		for (n = 1; i + n < f->nmarks; n++)
			if (marks[i + n]->point->peak_gflops != marks[i]->point->peak_gflops)
				break;
		if (n > most || (n == most && marks[i]->number < ret->number)) {
			most = n;
			ret = marks[i];
		}
	}
	return ret->point;
}

static bool differs(double a, double b)
{
	return fabs(a - b) > 1e-6 * fabs(b);
}

/* A figure must not put points under other ceilings than the ones they were made with. */
static enum rfl_rc check_same(const struct rfl_figure *f, struct rfl_err *err)
{
	const struct rfl_peaks_env *env = f->in->env;
	const struct rfl_peak *dram = rfl_peaks_dram(env);
	char cell[128];

	if (!dram || !rfl_peak_usable(dram))
		return rfl_fail(err, RFL_EMISSING, 0,
				"environment %s: %s is not known; 'roofline peaks measure' or "
				"'roofline peaks set' supplies it",
				env->name, rfl_peaks_cell(env, "memory.DRAM", cell, sizeof(cell)));
	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_point *p = f->marks[i].point;
		const struct rfl_peak *c =
			p->compute_key ? rfl_peaks_compute(env, p->compute_key) : NULL;

		if (c && !rfl_peak_usable(c))
			return rfl_fail(
				err, RFL_EMISSING, 0,
				"environment %s: %s is not known; 'roofline peaks measure' or "
				"'roofline peaks set' supplies it",
				env->name, rfl_peaks_cell(env, p->compute_key, cell, sizeof(cell)));
		if (differs(p->peak_gbps, dram->value / 1e9))
			return rfl_fail(
				err, RFL_EINVAL, 0,
				"environment %s: the points were made with %g GB/s of memory "
				"bandwidth, the peaks file says %g; run 'roofline points' again",
				env->name, p->peak_gbps, dram->value / 1e9);
		if (c && differs(p->peak_gflops, c->value / 1e9))
			return rfl_fail(
				err, RFL_EINVAL, 0,
				"environment %s: the points were made with %g GFLOP/s of %s, the "
				"peaks file says %g; run 'roofline points' again",
				env->name, p->peak_gflops, p->compute_key, c->value / 1e9);
	}
	return RFL_OK;
}

/* A ceiling of points whose key is not one of the file: a mixture of precisions. */
static void add_mixed(struct rfl_figure *f, const struct rfl_point *p, bool primary)
{
	struct rfl_fig_ceiling *c = add(f, RFL_FIG_COMPUTE, p->peak_gflops, "roof-compute-mixed");
	const struct rfl_peak derived = { .status = RFL_PEAK_DERIVED,
					  .value = p->peak_gflops * 1e9 };

	if (!c)
		return;
	c->primary = primary;
	set_labels(f, c, p->compute_key ? p->compute_key : "compute", &derived);
}

static void add_compute(struct rfl_figure *f, const struct rfl_point *p, bool primary)
{
	const struct rfl_peak *peak =
		p->compute_key ? rfl_peaks_compute(f->in->env, p->compute_key) : NULL;

	if (peak)
		add_peak(f, RFL_FIG_COMPUTE, peak, primary,
			 f->in->env->short_form ? "compute"
						: rfl_words_compute(f->scene, p->compute_key),
			 rfl_scene_printf(f->scene, "roof-%s", p->compute_key));
	else
		add_mixed(f, p, primary);
}

/* One core of the roof's own kind: what a loop that does not scale stands under. */
static void add_one_core(struct rfl_figure *f, const char *key)
{
	const char *one = key ? rfl_scene_printf(f->scene, "%s.1core", key) : "";

	if (f->in->env->short_form)
		return;
	for (size_t i = 0; i < f->in->env->ncompute; i++)
		if (strcmp(f->in->env->compute[i].key, one) == 0)
			add_peak(f, RFL_FIG_COMPUTE, &f->in->env->compute[i].peak, false,
				 "one core", "roof-one-core");
}

/* The cache just above DRAM, of the scope in which DRAM was measured. */
static void add_cache(struct rfl_figure *f)
{
	const struct rfl_peaks_env *env = f->in->env;

	for (size_t i = env->nlevels; i-- > 0;) {
		const struct rfl_peak_level *l = &env->levels[i];

		if (!rfl_peak_usable(&l->peak) || l->peak.value / 1e9 <= f->gbps * 1.02 ||
		    (l->scope && strcmp(l->scope, "core") == 0 && env->units > 1))
			continue;
		add_peak(f, RFL_FIG_BANDWIDTH, &l->peak, false, l->level,
			 rfl_scene_printf(f->scene, "roof-%s", l->level));
		return;
	}
}

enum rfl_rc rfl_figure__ceilings(struct rfl_figure *f, struct rfl_err *err)
{
	const struct rfl_peaks_env *env = f->in->env;
	const struct rfl_peak *dram = rfl_peaks_dram(env);
	const struct rfl_point *p = main_point(f);
	const struct rfl_peak *compute;
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
	compute = p->compute_key ? rfl_peaks_compute(env, p->compute_key) : NULL;
	add_one_core(f, p->compute_key);
	add_sheet(f, RFL_FIG_BANDWIDTH, dram, "roof-memory-sheet");
	add_sheet(f, RFL_FIG_COMPUTE, compute, "roof-compute-sheet");
	add_cache(f);
	return rfl_scene_check(f->scene, err);
}
