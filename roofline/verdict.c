/*
 * verdict.c - what a point shows, in one sentence; above the roof, the causes, likeliest first.
 */
#include "roofline/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "roofline/roofline.h"

/* More of the step than this waits for data: said in every verdict. */
#define DATA_WAIT_SHARE 0.10
/* Less than this of the attainable rate: no ceiling explains the time. */
#define FAR_BELOW 30.0

static bool is(const char *text, const char *value)
{
	return text && strcmp(text, value) == 0;
}

double rfl_verdict_point_spread(const struct rfl_point *p)
{
	double s = (p->attained_gflops_hi - p->attained_gflops_lo) / 2 / p->attained_gflops;

	return s > RFL_VERDICT_LEAST_SPREAD ? s : RFL_VERDICT_LEAST_SPREAD; /* NaN as well */
}

double rfl_verdict_peak_spread(const struct rfl_peak *peak)
{
	double s = NAN;

	if (peak->status == RFL_PEAK_MEASURED && peak->stats.n > 0)
		s = (peak->value - peak->stats.median) / peak->value;
	return s > RFL_VERDICT_LEAST_SPREAD ? s : RFL_VERDICT_LEAST_SPREAD;
}

/* The ceiling that limits at the point's intensity. At the knee the one with the wider spread. */
static const struct rfl_peak *limiting(const struct rfl_verdict_facts *f)
{
	bool compute_wider = rfl_verdict_peak_spread(f->compute) > rfl_verdict_peak_spread(f->dram);

	if (is(f->point->bound, rfl_bound_names[RFL_BOUND_MEMORY]))
		return f->dram;
	if (is(f->point->bound, rfl_bound_names[RFL_BOUND_COMPUTE]))
		return f->compute;
	return compute_wider ? f->compute : f->dram;
}

static double combined_spread(const struct rfl_verdict_facts *f)
{
	return hypot(rfl_verdict_point_spread(f->point), rfl_verdict_peak_spread(limiting(f)));
}

bool rfl_verdict_exceeds(const struct rfl_point *p)
{
	return p->attained_gflops / p->attainable_gflops > 1 + RFL_VERDICT_VISIBLE;
}

bool rfl_verdict_above(const struct rfl_verdict_facts *f)
{
	return f->point->attained_gflops / f->point->attainable_gflops > 1 + combined_spread(f);
}

/* --- causes of a point above its roof --- */

/* How well a cause fits the facts: 0 not at all, 1 possible, 2 likely, 3 nearly certain. */
typedef int (*weigh_fn)(const struct rfl_verdict_facts *f);

static bool memory_side(const struct rfl_verdict_facts *f)
{
	return !is(f->point->bound, rfl_bound_names[RFL_BOUND_COMPUTE]);
}

static bool compute_side(const struct rfl_verdict_facts *f)
{
	return !is(f->point->bound, rfl_bound_names[RFL_BOUND_MEMORY]);
}

static bool counted_bytes(const struct rfl_verdict_facts *f)
{
	/* why counters were not used may follow the word */
	const char *source = f->point->bytes_source ? f->point->bytes_source : "";

	return strncmp(source, "unfused", 7) == 0 || is(source, "fused");
}

/* Would the point be under the roof if every tensor moved once? */
static int weigh_bytes_overcounted(const struct rfl_verdict_facts *f)
{
	const struct rfl_point *p = f->point;
	double least;

	if (!memory_side(f) || !counted_bytes(f))
		return 0;
	least = p->ai_compulsory * p->peak_gbps;
	return least >= p->attained_gflops ? 2 : 1;
}

/* Capacity of the last cache in front of the memory, all instances together; NaN when not known. */
static double last_cache_bytes(const struct rfl_peaks_env *env)
{
	double bytes = NAN;

	for (size_t i = 0; i < env->nlevels; i++) {
		const struct rfl_peak_level *l = &env->levels[i];
		bool per_core = is(l->scope, "core") && env->units > 0;

		if (is(l->level, "DRAM") || is(l->level, "HBM") || l->capacity_bytes <= 0)
			continue;
		bytes = (double)l->capacity_bytes * (per_core ? env->units : 1);
	}
	return bytes;
}

static int weigh_cache_resident(const struct rfl_verdict_facts *f)
{
	if (!memory_side(f))
		return 0;
	return f->step_compulsory_bytes <= last_cache_bytes(f->env) ? 3 : 1;
}

/* ncu starts every kernel with cold caches: what the kernel before left there is read again. */
static int weigh_cold_caches(const struct rfl_verdict_facts *f)
{
	const char *source = f->point->counters_source ? f->point->counters_source : "";

	if (!memory_side(f) || !is(f->point->bytes_source, "counters"))
		return 0;
	return strstr(source, "ncu") ? 2 : 0;
}

static int weigh_fewer_threads(const struct rfl_verdict_facts *f)
{
	const struct rfl_peak *peak = limiting(f);

	return peak->threads > 0 && f->point->threads > peak->threads ? 3 : 0;
}

static int weigh_slow_when_measured(const struct rfl_verdict_facts *f)
{
	return limiting(f)->status == RFL_PEAK_MEASURED ? 1 : 0;
}

static int weigh_given_value(const struct rfl_verdict_facts *f)
{
	enum rfl_peak_status s = limiting(f)->status;

	return s == RFL_PEAK_USER ? 2 : s == RFL_PEAK_SPEC || s == RFL_PEAK_DERIVED ? 1 : 0;
}

/* A faster unit whose ceiling would hold the point: the precision is not the one that ran. */
static int weigh_wrong_precision(const struct rfl_verdict_facts *f)
{
	const struct rfl_peak *tf32;

	if (!compute_side(f) || !is(f->point->backend, "cuda") || !is(f->point->precision, "fp32"))
		return 0;
	tf32 = rfl_peaks_compute(f->env, "tf32.matrix");
	if (f->env->short_form || !tf32 || !rfl_peak_usable(tf32))
		return 1;
	return tf32->value >= f->point->attained_gflops * 1e9 ? 2 : 1;
}

static int weigh_matrix_unit(const struct rfl_verdict_facts *f)
{
	const struct rfl_ceiling *c = NULL;

	if (!compute_side(f) || !f->point->backend || !f->point->precision || f->env->short_form)
		return 0;
	if (rfl_ceiling_find(f->point->backend, f->point->precision, RFL_CLASS_MATRIX, &c, NULL) !=
	    RFL_OK)
		return 0;
	if (!c->faster || is(f->point->compute_key, c->faster))
		return 0;
	return rfl_peaks_compute(f->env, c->faster) ? 2 : 0;
}

static int weigh_fast_convolution(const struct rfl_verdict_facts *f)
{
	return compute_side(f) ? 1 : 0;
}

static int weigh_factor(const struct rfl_verdict_facts *f)
{
	return f->factor && compute_side(f) ? 1 : 0;
}

/* Equal weights keep this order. */
static const struct {
	weigh_fn weigh;
	const char *text;
} causes[] = {
	{ weigh_fewer_threads, "the ceiling was measured with fewer threads than the run used" },
	{ weigh_cache_resident, "the working set stays in cache, so fewer bytes reach memory" },
	{ weigh_bytes_overcounted, "the bytes are overcounted at this level of fusion: caches and "
				   "fused kernels keep tensors "
				   "between operations" },
	{ weigh_cold_caches,
	  "the profiler flushes the caches before every kernel, so that more bytes "
	  "were counted than the run moves (ncu --cache-control none)" },
	{ weigh_wrong_precision,
	  "the library ran fp32 on tensor cores (TF32), which have a higher ceiling" },
	{ weigh_matrix_unit, "the device has a matrix unit whose ceiling is not in the file" },
	{ weigh_given_value, "the ceiling was not measured here and is too low for this device" },
	{ weigh_fast_convolution,
	  "convolutions ran by an algorithm with fewer multiplications than counted (Winograd)" },
	{ weigh_slow_when_measured,
	  "the machine was slower when the ceiling was measured (clock, power, other work)" },
	{ weigh_factor, "the training factor overcounts the FLOPs; take --train-factor exact" },
};

static void write_causes(const struct rfl_verdict_facts *f, struct rfl_buf *out)
{
	int n = 0;

	for (int weight = 3; weight >= 1; weight--)
		for (size_t i = 0; i < RFL_ARRAY_LEN(causes); i++)
			if (causes[i].weigh(f) == weight)
				rfl_buf_printf(out, "%s(%d) %s", n ? "; " : " ", n + 1,
					       causes[i].text),
					n++;
}

/* --- sentences --- */

/* "of the 105 GB/s roof", "of the 512 GFLOP/s of fp32.vector", "... of both roofs" */
static void write_share(const struct rfl_verdict_facts *f, struct rfl_buf *out)
{
	const struct rfl_point *p = f->point;
	char gbps[48], gflops[48];

	rfl_num_si(p->peak_gbps * 1e9, "B/s", 3, gbps, sizeof(gbps));
	rfl_num_si(p->peak_gflops * 1e9, "FLOP/s", 3, gflops, sizeof(gflops));
	rfl_buf_printf(out, "%.3g %% of ", p->percent_of_attainable);
	if (is(p->bound, rfl_bound_names[RFL_BOUND_MEMORY]))
		rfl_buf_printf(out, "what %s allow at %.3g FLOP/byte", gbps, p->ai);
	else if (is(p->bound, rfl_bound_names[RFL_BOUND_COMPUTE]))
		rfl_buf_printf(out, "%s (%s)", gflops, p->compute_key ? p->compute_key : "");
	else
		rfl_buf_printf(out, "what %s (%s) and %s allow together", gflops,
			       p->compute_key ? p->compute_key : "", gbps);
}

static void write_above(const struct rfl_verdict_facts *f, struct rfl_buf *out)
{
	rfl_buf_puts(out, "above the roof: ");
	write_share(f, out);
	rfl_buf_printf(out, ", uncertainty %.2g %%; likely causes:", 100 * combined_spread(f));
	write_causes(f, out);
}

/* On the bandwidth roof by construction: only the distance to the compute ceiling says something.
 */
static void write_lower_bound(const struct rfl_verdict_facts *f, struct rfl_buf *out)
{
	const struct rfl_point *p = f->point;
	double share = 100 * p->attained_gflops / p->peak_gflops;

	if (share >= 100 * RFL_ROOF_NEAR_COMPUTE) {
		rfl_buf_printf(out,
			       "near the compute roof: %.3g %% of %s; the intensity is a lower "
			       "bound, moved to the knee",
			       share, p->compute_key ? p->compute_key : "the ceiling");
		return;
	}
	rfl_buf_printf(out,
		       "on the bandwidth roof by construction: the intensity is a lower bound "
		       "(attained / bandwidth); %.3g %% of %s",
		       share, p->compute_key ? p->compute_key : "the compute ceiling");
}

static void write_below(const struct rfl_verdict_facts *f, struct rfl_buf *out)
{
	static const struct {
		const char *bound, *says;
	} words[] = {
		{ "memory", "memory-bound: " },
		{ "compute", "compute-bound: " },
		{ "knee", "at the knee: " },
	};
	const struct rfl_point *p = f->point;

	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (is(p->bound, words[i].bound))
			rfl_buf_puts(out, words[i].says);
	write_share(f, out);
	if (p->percent_of_attainable < FAR_BELOW)
		rfl_buf_puts(out, "; far below, so neither ceiling explains the time");
}

/* Beyond the ceiling, but no further than ceiling and point are known. */
static void write_within(const struct rfl_verdict_facts *f, struct rfl_buf *out)
{
	bool measured = limiting(f)->status == RFL_PEAK_MEASURED;

	rfl_buf_printf(out,
		       "; above the %s ceiling, within the uncertainty of %.2g %%: measure the "
		       "ceilings%s while nothing else runs",
		       measured ? "measured" : "given", 100 * combined_spread(f),
		       measured ? " again" : "");
}

void rfl_verdict_write(const struct rfl_verdict_facts *f, struct rfl_buf *out)
{
	const struct rfl_point *p = f->point;
	double wait = p->data_wait_ms * 1e-3 / p->step_s;
	char at_roof[48], now[48];

	if (rfl_verdict_above(f)) {
		write_above(f, out);
	} else if (is(p->bytes_source, "lower-bound")) {
		write_lower_bound(f, out);
	} else {
		write_below(f, out);
		if (p->headroom_s > 0) {
			rfl_num_si(p->step_s - p->headroom_s, "s", 3, at_roof, sizeof(at_roof));
			rfl_num_si(p->step_s, "s", 3, now, sizeof(now));
			rfl_buf_printf(out, "; a step takes %s, at the roof %s", now, at_roof);
		}
	}
	if (rfl_verdict_exceeds(p) && !rfl_verdict_above(f))
		write_within(f, out);
	if (wait > DATA_WAIT_SHARE)
		rfl_buf_printf(out, "; %.2g %% of the step waits for data", 100 * wait);
	if (f->unstable)
		rfl_buf_puts(out, "; the runner flagged the step times as unstable");
}
