/*
 * verdict.c - what limits a point and how far it is from its roof, as a bound, as words and as a
 * sentence. Above the roof, the sentence lists the causes, most likely first.
 */
#include "roofline/verdict.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

const struct rfl_bound_words rfl_bound_words[RFL_BOUND_UNKNOWN] = {
	[RFL_BOUND_MEMORY] = { "memory", "memory-bound", "" },
	[RFL_BOUND_COMPUTE] = { "compute", "compute-bound", "" },
	[RFL_BOUND_KNEE] = { "ridge", "at the ridge point", "both ceilings limit" },
	[RFL_BOUND_NEITHER] = { "neither",
				"below " RFL_QUOTED(RFL_VERDICT_EXPLAINS) " % of the roof",
				"neither ceiling explains the time" },
	[RFL_BOUND_ABOVE] = { "above", "above the roof",
			      "the bytes, the FLOPs or the ceiling are wrong" },
	[RFL_BOUND_BY_CONSTRUCTION] = { "by construction", "on the roof by construction",
					"the bytes are a lower bound, so nothing follows about "
					"the limit" },
	[RFL_BOUND_L2] = { "L2", "L2-bound", "" },
	[RFL_BOUND_L1] = { "L1", "L1-bound", "" },
};

static bool is(const char *text, const char *value)
{
	return text && strcmp(text, value) == 0;
}

/* Half the width of the interval of the achieved rate, relative to the rate. */
static double point_spread(const struct rfl_point *p)
{
	double s = (p->attained_gflops_hi - p->attained_gflops_lo) / 2 / p->attained_gflops;

	return s > RFL_VERDICT_LEAST_SPREAD ? s : RFL_VERDICT_LEAST_SPREAD; /* NaN as well */
}

/* The relative amount by which a better run of the same benchmark may exceed a measured ceiling:
 * (value - median) / value. The minimum spread if unknown. */
static double peak_spread(const struct rfl_peak *peak)
{
	double s = NAN;

	if (peak->status == RFL_PEAK_MEASURED && peak->stats.n > 0)
		s = (peak->value - peak->stats.median) / peak->value;
	return s > RFL_VERDICT_LEAST_SPREAD ? s : RFL_VERDICT_LEAST_SPREAD;
}

struct level {
	const char *name;
	enum rfl_bound bound;
	double ai, gbps;
	struct rfl_roof roof; /* with the compute ceiling */
};

/* Find the memory level that allows the lowest rate: DRAM, unless the traffic and the bandwidth of
 * a cache are known. A lower bound of the intensity has no other level. */
static struct level lowest_level(const struct rfl_point *p)
{
	const struct level levels[] = {
		{ .name = "DRAM", .bound = RFL_BOUND_MEMORY, .ai = p->ai, .gbps = p->peak_gbps },
		{ .name = "L2", .bound = RFL_BOUND_L2, .ai = p->ai_l2, .gbps = p->peak_l2_gbps },
		{ .name = "L1", .bound = RFL_BOUND_L1, .ai = p->ai_l1, .gbps = p->peak_l1_gbps },
	};
	const size_t n = is(p->bytes_source, "lower-bound") ? 1 : RFL_ARRAY_LEN(levels);
	struct level ret = levels[0];

	for (size_t i = 1; i < n; i++)
		if (levels[i].ai > 0 && levels[i].gbps > 0 &&
		    levels[i].ai * levels[i].gbps < ret.ai * ret.gbps)
			ret = levels[i];
	ret.roof = (struct rfl_roof){ .compute_flop_per_s = p->peak_gflops * 1e9,
				      .bandwidth_byte_per_s = ret.gbps * 1e9 };
	return ret;
}

/* The ceiling that is lowest at the intensities of a point; only the memory if it has no FLOPs. */
static enum rfl_bound lowest_ceiling(const struct rfl_point *p)
{
	const struct level l = lowest_level(p);
	const bool dram = l.bound == RFL_BOUND_MEMORY;
	enum rfl_bound bound;

	if (p->flops_per_step == 0)
		return RFL_BOUND_MEMORY;
	if (p->peak_gflops > 0 && l.gbps > 0 && l.ai > 0) {
		bound = rfl_roof_bound(&l.roof, l.ai, dram ? p->ai_lo : NAN, dram ? p->ai_hi : NAN);
		return bound == RFL_BOUND_MEMORY ? l.bound : bound;
	}
	for (bound = RFL_BOUND_MEMORY; bound <= RFL_BOUND_KNEE; bound++)
		if (is(p->bound, rfl_bound_words[bound].word))
			return bound;
	return is(p->bound, "knee") ? RFL_BOUND_KNEE : RFL_BOUND_UNKNOWN; /* of older versions */
}

/* The attainable rate in FLOP/s; NaN: unknown. */
static double attainable_of(const struct rfl_point *p)
{
	const struct level l = lowest_level(p);

	if (p->peak_gflops > 0 && p->peak_gbps > 0)
		return rfl_roof_attainable(&l.roof, l.ai);
	return p->attainable_gflops * 1e9;
}

struct rfl_point_verdict rfl_point_verdict(const struct rfl_point *p)
{
	const double attainable = attainable_of(p);
	struct rfl_point_verdict v = { .roof = lowest_ceiling(p),
				       .attainable_gflops = attainable / 1e9 };
	const bool lower = is(p->bytes_source, "lower-bound");
	bool above;

	v.share = p->flops_per_step == 0 ? p->attained_gbps / p->peak_gbps
					 : p->attained_gflops * 1e9 / attainable;
	if (!(v.share > 0 && isfinite(v.share))) {
		v.bound = RFL_BOUND_UNKNOWN;
		return v;
	}
	v.over = v.share > 1 + RFL_VERDICT_VISIBLE;
	/* files of version 0.1.0 have the uncertainty in the sentence only */
	above = v.share > 1 + (isnan(p->uncertainty)
				       ? hypot(point_spread(p), RFL_VERDICT_LEAST_SPREAD)
				       : p->uncertainty);
	if (isnan(p->uncertainty) && p->verdict)
		above = strncmp(p->verdict, "above", 5) == 0;
	v.bound = v.over && above ? RFL_BOUND_ABOVE
		  : lower         ? p->attained_gflops >= RFL_ROOF_NEAR_COMPUTE * p->peak_gflops
					    ? RFL_BOUND_COMPUTE
					    : RFL_BOUND_BY_CONSTRUCTION
		  : 100 * v.share < RFL_VERDICT_EXPLAINS ? RFL_BOUND_NEITHER
							 : v.roof;
	return v;
}

const char *rfl_point_bound(const struct rfl_point *p)
{
	const enum rfl_bound bound = rfl_point_verdict(p).bound;

	return bound == RFL_BOUND_UNKNOWN ? NULL : rfl_bound_words[bound].word;
}

/* The ceiling that limits a point. At the ridge point, it is the one with the larger spread. */
static const struct rfl_peak *limiting(enum rfl_bound roof, const struct rfl_verdict_facts *f)
{
	if (roof == RFL_BOUND_L2 || roof == RFL_BOUND_L1)
		return rfl_peaks_cache(f->env, rfl_bound_words[roof].word, NULL);
	if (roof == RFL_BOUND_MEMORY)
		return f->dram;
	return roof == RFL_BOUND_COMPUTE || peak_spread(f->compute) > peak_spread(f->dram)
		       ? f->compute
		       : f->dram;
}

/* A lower bound is on the roof. A smaller relative distance than this is a rounding error. */
#define ON_THE_ROOF 1e-12

void rfl_point_judge(struct rfl_point *p, const struct rfl_verdict_facts *f,
		     struct rfl_arena *texts)
{
	const struct rfl_peaks_env *env = f->env;
	struct rfl_point_verdict v;
	double share;

	if (!isnan(p->ai_l2))
		(void)rfl_peaks_cache(env, "L2", &p->peak_l2_gbps);
	if (!isnan(p->ai_l1))
		(void)rfl_peaks_cache(env, "L1", &p->peak_l1_gbps);
	if (p->clock_hz > 0 && f->compute->status == RFL_PEAK_MEASURED)
		p->peak_clock_hz = f->compute->clock_hz;
	else if (p->clock_hz > 0 && f->sheet_clock_hz > 0 &&
		 (f->compute->status == RFL_PEAK_SPEC || f->compute->status == RFL_PEAK_DERIVED))
		p->peak_clock_hz = f->sheet_clock_hz;
	if (!is(p->bytes_source, "lower-bound"))
		p->attained_gbps = p->bytes_per_step / p->step_s / 1e9;
	p->uncertainty = hypot(point_spread(p), peak_spread(limiting(lowest_ceiling(p), f)));
	v = rfl_point_verdict(p);
	p->attainable_gflops = v.attainable_gflops;
	share = p->flops_per_step == 0 ? v.share : p->attained_gflops / p->attainable_gflops;
	p->percent_of_attainable = 100 * share;
	p->headroom_s = p->step_s * (1 - share);
	if (fabs(p->headroom_s) < p->step_s * ON_THE_ROOF)
		p->headroom_s = 0;
	p->bound = rfl_arena_strdup(texts, rfl_point_bound(p));
	if (v.roof != RFL_BOUND_UNKNOWN)
		p->nearest = rfl_arena_strdup(
			texts, v.roof == RFL_BOUND_MEMORY ? "DRAM" : rfl_bound_words[v.roof].word);
}

void rfl_point_set_roof(struct rfl_point *p, const char *key, double flop_per_s,
			enum rfl_peak_status status, const struct rfl_peak *dram,
			struct rfl_arena *texts)
{
	const struct rfl_roof roof = { .compute_flop_per_s = flop_per_s,
				       .bandwidth_byte_per_s = dram->value };

	p->compute_key = rfl_arena_strdup(texts, key);
	p->peak_gflops = flop_per_s / 1e9;
	p->peak_gbps = dram->value / 1e9;
	p->knee_ai = rfl_roof_knee(&roof);
	p->peak_gflops_status = rfl_arena_strdup(texts, rfl_peak_status_name(status));
	p->peak_gbps_status = rfl_arena_strdup(texts, rfl_peak_status_name(dram->status));
}

/* Causes of equal weight are listed in this order. */
enum cause {
	FEWER_THREADS,
	CACHE_RESIDENT,
	BYTES_OVERCOUNTED,
	COLD_CACHES,
	WRONG_PRECISION,
	MATRIX_UNIT,
	ADDITIONS,
	GIVEN_VALUE,
	FAST_CONVOLUTION,
	SLOW_WHEN_MEASURED,
	FACTOR,
	CAUSES
};
static const char *const causes[CAUSES] = {
	[FEWER_THREADS] = "the ceiling was measured with fewer threads than the run used",
	[CACHE_RESIDENT] = "the working set stays in cache, so fewer bytes reach memory",
	[BYTES_OVERCOUNTED] = "the bytes are overcounted at this level of fusion because caches "
			      "and fused kernels keep tensors between operations",
	[COLD_CACHES] = "the profiler flushes the caches before every kernel and therefore counts "
			"more bytes than the run moves (use ncu --cache-control none)",
	[WRONG_PRECISION] =
		"the library ran fp32 on tensor cores (TF32), which have a higher ceiling",
	[MATRIX_UNIT] = "the peaks file lacks the ceiling of the matrix cores of this device",
	[ADDITIONS] = "the CPU runs additions beside multiply-adds, which alone are the roof",
	[GIVEN_VALUE] = "the ceiling was not measured on this device and is too low for it",
	[FAST_CONVOLUTION] =
		"convolutions used an algorithm with fewer multiplications than counted (Winograd)",
	[SLOW_WHEN_MEASURED] =
		"the machine was slower when the ceiling was measured (clock, power or other work)",
	[FACTOR] = "the training factor overcounts the FLOPs (use --train-factor exact)",
};

/* Causes are ranked by weight: 1 possible, 2 likely, 3 nearly certain. */
static void write_causes(const struct rfl_point *p, enum rfl_bound roof,
			 const struct rfl_verdict_facts *f, struct rfl_buf *out)
{
	const char *bytes = p->bytes_source ? p->bytes_source : "";
	const struct rfl_peak *peak = limiting(roof, f), *tf32;
	const struct rfl_ceiling *c = NULL;
	int weight[CAUSES] = { 0 }, n = 0;
	double cache = NAN; /* total size of the last-level caches in bytes */

	if (roof == RFL_BOUND_MEMORY || roof == RFL_BOUND_KNEE) {
		for (size_t i = 0; i < f->env->nlevels; i++) {
			const struct rfl_peak_level *l = &f->env->levels[i];
			const bool per_core = is(l->scope, "core") && f->env->units > 0;

			if (!is(l->level, "DRAM") && !is(l->level, "HBM") && l->capacity_bytes > 0)
				cache = (double)l->capacity_bytes * (per_core ? f->env->units : 1);
		}
		weight[CACHE_RESIDENT] = f->step_compulsory_bytes <= cache ? 3 : 1;
		/* Likely if the point would be below the roof with every tensor moved only once. A
		 * reason may follow the keyword "unfused". */
		if (strncmp(bytes, "unfused", 7) == 0 || is(bytes, "fused") ||
		    is(bytes, RFL_POINT_OF_PLAN))
			weight[BYTES_OVERCOUNTED] =
				p->ai_compulsory * p->peak_gbps >= p->attained_gflops ? 2 : 1;
		/* ncu flushes the caches before every kernel, so the kernel reads its data
		 * again. */
		if (is(bytes, "counters") && p->counters_source &&
		    strstr(p->counters_source, "ncu"))
			weight[COLD_CACHES] = 2;
	}
	if (roof == RFL_BOUND_COMPUTE || roof == RFL_BOUND_KNEE) {
		const bool counted = is(p->flops_source, "counters"); /* as executed */

		weight[FAST_CONVOLUTION] = counted ? 0 : 1;
		weight[FACTOR] = f->factor ? 1 : 0;
		/* Likely if a faster unit of another precision has a ceiling that is high
		 * enough. */
		if (is(p->backend, "cuda") && is(p->precision, "fp32") && !counted) {
			tf32 = f->env->short_form ? NULL : rfl_peaks_compute(f->env, "tf32.matrix");
			weight[WRONG_PRECISION] = 1;
			if (tf32 && rfl_peak_usable(tf32) &&
			    tf32->value >= p->attained_gflops * 1e9)
				weight[WRONG_PRECISION] = 2;
		}
		if (p->backend && p->precision && !f->env->short_form &&
		    rfl_ceiling_find(p->backend, p->precision, &c, NULL) == RFL_OK && c->faster &&
		    !is(p->compute_key, c->faster) && rfl_peaks_compute(f->env, c->faster))
			weight[MATRIX_UNIT] = 2;
		for (const struct rfl_peaks_part *part = rfl_peaks_parts;
		     part->word && p->compute_key; part++)
			if (part->line == RFL_LINE_ABOVE &&
			    rfl_peaks_line(f->env, p->compute_key, part))
				weight[ADDITIONS] = 2;
	}
	if (peak->threads > 0 && p->threads > peak->threads)
		weight[FEWER_THREADS] = 3;
	if (peak->status == RFL_PEAK_MEASURED)
		weight[SLOW_WHEN_MEASURED] = 1;
	else if (peak->status == RFL_PEAK_USER)
		weight[GIVEN_VALUE] = 2;
	else if (peak->status == RFL_PEAK_SPEC || peak->status == RFL_PEAK_DERIVED)
		weight[GIVEN_VALUE] = 1;
	for (int w = 3; w >= 1; w--)
		for (int i = 0; i < CAUSES; i++)
			if (weight[i] == w) {
				rfl_buf_printf(out, "%s(%d) %s", n ? "; " : " ", n + 1, causes[i]);
				n++;
			}
}

/* "60 % of the limit for 105 GB/s at 4.2 FLOP/byte", "75 % of 512 GFLOP/s (fp32.vector)" */
static void write_share(const struct rfl_point *p, enum rfl_bound roof, struct rfl_buf *out)
{
	const struct level l = lowest_level(p);
	char gbps[48], gflops[48];

	rfl_num_si(l.gbps * 1e9, "B/s", 3, gbps, sizeof(gbps));
	rfl_num_si(p->peak_gflops * 1e9, "FLOP/s", 3, gflops, sizeof(gflops));
	rfl_buf_printf(out, "%.3g %% of ", p->percent_of_attainable);
	if (p->flops_per_step == 0)
		rfl_buf_puts(out, gbps);
	else if (roof == RFL_BOUND_MEMORY)
		rfl_buf_printf(out, "the limit for %s at %.3g FLOP/byte", gbps, p->ai);
	else if (roof == l.bound)
		rfl_buf_printf(out, "the limit for %s (%s) at %.3g FLOP/byte", gbps, l.name, l.ai);
	else if (roof == RFL_BOUND_COMPUTE)
		rfl_buf_printf(out, "%s (%s)", gflops, p->compute_key ? p->compute_key : "");
	else
		rfl_buf_printf(out, "the joint limit for %s (%s) and %s", gflops,
			       p->compute_key ? p->compute_key : "", gbps);
}

void rfl_verdict_write(const struct rfl_point *p, const struct rfl_verdict_facts *f,
		       struct rfl_buf *out)
{
	const struct rfl_point_verdict v = rfl_point_verdict(p);
	const bool measured = limiting(v.roof, f)->status == RFL_PEAK_MEASURED;
	const bool lower = is(p->bytes_source, "lower-bound");
	const double wait = p->data_wait_ms * 1e-3 / p->step_s;
	const bool whole = is(p->step_source, RFL_POINT_OF_CAPTURE);
	const double of_compute = 100 * p->attained_gflops / p->peak_gflops;
	/* FLOPs are for GEMMs and convolutions unless counters counted them */
	const struct rfl_peak *gemm =
		is(p->flops_source, "counters") ? NULL : rfl_peaks_gemm(f->env, p->compute_key);
	char at_roof[48], now[48];

	if (v.bound == RFL_BOUND_UNKNOWN)
		return;
	if (v.bound == RFL_BOUND_ABOVE) {
		rfl_buf_printf(out, "%s: ", rfl_bound_words[v.bound].adjective);
		write_share(p, v.roof, out);
		rfl_buf_printf(out, ", uncertainty %.2g %%; likely causes:", 100 * p->uncertainty);
		write_causes(p, v.roof, f, out);
	} else if (lower && v.bound == RFL_BOUND_COMPUTE) {
		rfl_buf_printf(out,
			       "near the compute roof: %.3g %% of %s; the intensity is a lower "
			       "bound, moved to the ridge point",
			       of_compute, p->compute_key ? p->compute_key : "the ceiling");
	} else if (lower) {
		rfl_buf_printf(out,
			       "%s: the intensity is a lower bound (achieved / bandwidth); %.3g %% "
			       "of %s",
			       rfl_bound_words[v.bound].adjective, of_compute,
			       p->compute_key ? p->compute_key : "the compute ceiling");
	} else {
		rfl_buf_printf(out, "%s: ",
			       v.bound == RFL_BOUND_NEITHER ? rfl_bound_words[v.bound].means
							    : rfl_bound_words[v.bound].adjective);
		write_share(p, v.roof, out);
		if (p->headroom_s > 0) {
			rfl_num_si(p->step_s - p->headroom_s, "s", 3, at_roof, sizeof(at_roof));
			rfl_num_si(p->step_s, "s", 3, now, sizeof(now));
			rfl_buf_printf(out, "; %s%s takes %s and would take %s at the roof",
				       p->part_kind || whole ? "the " : "a ",
				       p->part_kind ? rfl_part_word(p->part_kind)
				       : whole      ? "program"
						    : "step",
				       now, at_roof);
		}
	}
	if (gemm && (v.roof == RFL_BOUND_COMPUTE || v.roof == RFL_BOUND_KNEE)) {
		rfl_num_si(gemm->value, "FLOP/s", 3, now, sizeof(now));
		rfl_buf_printf(out, "; %.3g %% of the %s that a GEMM achieves (%.*s.gemm)",
			       100 * p->attained_gflops * 1e9 / gemm->value, now,
			       (int)strcspn(p->compute_key, "."), p->compute_key);
	}
	if (v.over && v.bound != RFL_BOUND_ABOVE)
		rfl_buf_printf(out,
			       "; above the %s ceiling, but within the uncertainty of %.2g %%: "
			       "measure the ceilings%s while nothing else runs",
			       measured ? "measured" : "given", 100 * p->uncertainty,
			       measured ? " again" : "");
	if (wait > RFL_VERDICT_DATA_WAIT)
		rfl_buf_printf(out, "; waiting for data takes %.2g %% of the step", 100 * wait);
	if (f->unstable)
		rfl_buf_puts(out, "; the step times are flagged as unstable");
	if (f->busy)
		rfl_buf_puts(out, "; other programs used the CPU during the run");
}
