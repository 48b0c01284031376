/*
 * roofline.c - the formulas of the model, the ceilings that apply to operations, and the minimum
 * time of every operation of a count.
 */
#include "roofline/roofline.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "roofline/parts.h"

double rfl_roof_knee(const struct rfl_roof *roof)
{
	assert(roof->bandwidth_byte_per_s > 0 && roof->compute_flop_per_s > 0);
	return roof->compute_flop_per_s / roof->bandwidth_byte_per_s;
}

double rfl_roof_attainable(const struct rfl_roof *roof, double ai)
{
	double memory = ai * roof->bandwidth_byte_per_s;

	if (isnan(ai))
		return NAN;
	return memory < roof->compute_flop_per_s ? memory : roof->compute_flop_per_s;
}

enum rfl_bound rfl_roof_bound(const struct rfl_roof *roof, double ai, double ai_lo, double ai_hi)
{
	double knee = rfl_roof_knee(roof);

	/* as a ratio, so that the band is symmetric on a logarithmic axis */
	if (ai <= knee * (1 + RFL_ROOF_KNEE_BAND) && ai * (1 + RFL_ROOF_KNEE_BAND) >= knee)
		return RFL_BOUND_KNEE;
	if (ai_lo <= knee && knee <= ai_hi) /* false if either limit is NaN */
		return RFL_BOUND_KNEE;
	return ai < knee ? RFL_BOUND_MEMORY : RFL_BOUND_COMPUTE;
}

double rfl_roof_lower_bound_ai(const struct rfl_roof *roof, double attained_flop_per_s)
{
	double ai = attained_flop_per_s / roof->bandwidth_byte_per_s;
	double knee = rfl_roof_knee(roof);

	if (attained_flop_per_s >= RFL_ROOF_NEAR_COMPUTE * roof->compute_flop_per_s && ai < knee)
		return knee;
	return ai;
}

/* A ceiling is never replaced by one of another precision or accumulator: fp32 does not use tf32,
 * and fp16.matrix, which accumulates in fp32, does not use fp16.matrix.fp16acc. amp is the usual
 * 16-bit autocast of the device, fp16 on CUDA and MPS and bf16 on a CPU, with elementwise
 * operations in fp32. The bf16 instructions of CPUs are dot products, so elementwise operations in
 * bf16 are computed in fp32, too, and so is everything on a CPU without these instructions. */
static const struct rfl_ceiling ceilings[] = {
	/* backend, precision, key, faster, elementwise, inference */
	{ "cpu", "fp32", "fp32.vector", "fp32.matrix", "fp32.vector", false },
	{ "cpu", "fp64", "fp64.vector", NULL, "fp64.vector", false },
	{ "cpu", "amp", "bf16.vector", "bf16.matrix", "fp32.vector", false },
	{ "cpu", "bf16", "bf16.vector", "bf16.matrix", "fp32.vector", false },
	{ "cpu", "fp16", "fp16.vector", "fp16.matrix", "fp16.vector", false },
	{ "cuda", "fp32", "fp32.vector", NULL, "fp32.vector", false },
	{ "cuda", "fp64", "fp64.vector", NULL, "fp64.vector", false },
	{ "cuda", "tf32", "tf32.matrix", NULL, "fp32.vector", false },
	{ "cuda", "amp", "fp16.matrix", NULL, "fp32.vector", false },
	{ "cuda", "fp16", "fp16.matrix", NULL, "fp16.vector", false },
	{ "cuda", "bf16", "bf16.matrix", NULL, "bf16.vector", false },
	{ "mps", "fp32", "fp32.vector", "fp32.matrix", "fp32.vector", false },
	{ "mps", "amp", "fp16.vector", "fp16.matrix", "fp32.vector", false },
	{ "mps", "fp16", "fp16.vector", "fp16.matrix", "fp16.vector", false },
	{ "mps", "bf16", "bf16.vector", "bf16.matrix", "bf16.vector", false },
	{ "cuda", "fp8", "fp8.matrix", NULL, "fp32.vector", true },
	{ "cuda", "int8", "int8.matrix", NULL, "fp32.vector", true },
};

const struct rfl_ceiling *rfl_ceiling_at(size_t i)
{
	return i < RFL_ARRAY_LEN(ceilings) ? &ceilings[i] : NULL;
}

enum rfl_rc rfl_ceiling_find(const char *backend, const char *precision,
			     const struct rfl_ceiling **ret, struct rfl_err *err)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(ceilings); i++)
		if (strcmp(ceilings[i].backend, backend) == 0 &&
		    strcmp(ceilings[i].precision, precision) == 0) {
			*ret = &ceilings[i];
			return RFL_OK;
		}
	return rfl_fail(err, RFL_ENOTFOUND, 0,
			"no ceiling is defined for precision '%s' on backend '%s'; see "
			"docs/reference/points.md for the supported pairs",
			precision, backend);
}

const char *rfl_ceiling_key(const struct rfl_ceiling *ceiling, const struct rfl_peaks_env *env)
{
	const struct rfl_peak *p, *vector;

	/* The short form has one value for all keys. */
	if (!ceiling->faster || env->short_form)
		return ceiling->key;
	p = rfl_peaks_compute(env, ceiling->faster);
	if (p && rfl_peak_usable(p))
		return ceiling->faster;
	vector = rfl_peaks_compute(env, ceiling->key);
	if (vector && vector->status == RFL_PEAK_UNSUPPORTED &&
	    strcmp(ceiling->backend, "cpu") == 0)
		return ceiling->elementwise;
	/* The environment only lists the faster unit. */
	if (p && p->status != RFL_PEAK_UNSUPPORTED && !vector)
		return ceiling->faster;
	return ceiling->key;
}

struct rfl_attained rfl_attain(const struct rfl_attain_roof *roof, double core_flops,
			       double elementwise, double bytes)
{
	const double times[RFL_LIMIT_COUNT] = {
		[RFL_LIMIT_COMPUTE] = core_flops / roof->compute_flop_per_s,
		[RFL_LIMIT_VECTOR] =
			isnan(roof->vector_flop_per_s) ? 0 : elementwise / roof->vector_flop_per_s,
		[RFL_LIMIT_MEMORY] = bytes / roof->bandwidth_byte_per_s,
	};
	struct rfl_attained ret = { .limit_s = { 0 } };
	int longest = 0;

	for (int i = 1; i < RFL_LIMIT_COUNT; i++)
		if (times[i] > times[longest])
			longest = i;
	ret.limit_s[longest] = times[longest];
	return ret;
}

static struct rfl_attained attain_cost(const struct rfl_attain_roof *roof,
				       const struct rfl_cost *cost, int passes)
{
	struct rfl_attained sum = { .limit_s = { 0 } };

	for (int pass = 0; pass < passes; pass++) {
		const struct rfl_traffic *t = &cost->traffic[roof->base.fusion][pass];
		int64_t elementwise = rfl_elementwise_sum(&cost->elementwise[pass]);
		struct rfl_attained one;

		if (pass == RFL_PASS_FORWARD)
			elementwise += cost->bias_adds;
		one = rfl_attain(roof, 2.0 * (double)cost->macs[pass], (double)elementwise,
				 (double)(t->read_bytes + t->write_bytes));
		rfl_attained_add(&sum, &one);
	}
	return sum;
}

void rfl_attain_count(const struct rfl_attained_roof *base, const struct rfl_count *count,
		      struct rfl_attained *times)
{
	const struct rfl_attain_roof *roof = (const struct rfl_attain_roof *)base;
	int passes = count->options.training ? RFL_PASS_COUNT : RFL_PASS_FORWARD + 1;
	int64_t update;

	for (int i = 0; i < count->nnodes; i++)
		times[i] = attain_cost(roof, &count->nodes[i], passes);
	if (!count->options.training)
		return;
	times[count->nnodes] = attain_cost(roof, &count->loss, passes);
	update = rfl_count_bytes(count, base->fusion, RFL_SCOPE_STEP) -
		 rfl_count_bytes(count, base->fusion, RFL_SCOPE_FORWARD_BACKWARD);
	times[count->nnodes + 1] = rfl_attain(
		roof, 0, (double)rfl_elementwise_sum(&count->optimizer_flops), (double)update);
}

/* Append the problem with an environment or one of its cells, if any, and its fix. */
static void check(const struct rfl_peaks *peaks, const char *env, const char *key,
		  const struct rfl_peak *peak, struct rfl_buf *text)
{
	RFL_AUTO(buf) fix = { .len = 0 };
	RFL_AUTO(buf) fact = { .len = 0 };

	rfl_missing_ceiling(peaks, env, key, peak, NULL, "choose another --precision", &fact, &fix);
	if (fact.len)
		rfl_buf_printf(text, "%s%s; fix: %s", text->len ? "; " : "", rfl_buf_str(&fact),
			       rfl_buf_str(&fix));
	text->failed = text->failed || fact.failed || fix.failed;
}

/* The name of a ceiling in messages. The short form has one for all keys. */
static const char *name_of(const struct rfl_peaks_env *env, const char *key, char cell[48])
{
	return env->short_form ? rfl_peaks_cell(env, key, cell, 48) : key;
}

enum rfl_rc rfl_attain_find(const struct rfl_peaks *peaks, const char *env, const char *precision,
			    enum rfl_fusion fusion, struct rfl_attain_roof *ret,
			    struct rfl_err *err)
{
	const struct rfl_peaks_env *e = rfl_peaks_find(peaks, env);
	const struct rfl_ceiling *ceiling = NULL;
	const struct rfl_peak *compute = NULL, *elementwise = NULL, *dram = NULL;
	char rate[RFL_NUM_MAX], vector[RFL_NUM_MAX], bandwidth[RFL_NUM_MAX];
	char cell[48], vector_cell[48];
	const char *compute_key = NULL, *backend = "cuda";
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc;

	if (e) {
		/* For the short form any backend is suitable: it has one value for all keys. */
		if (e->kind && strcmp(e->kind, "cpu") == 0)
			backend = "cpu";
		else if (e->device && strstr(e->device, "Apple"))
			backend = "mps";
		if ((rc = rfl_ceiling_find(backend, precision, &ceiling, err)))
			return rc;
		compute_key = rfl_ceiling_key(ceiling, e);
		compute = rfl_peaks_compute(e, compute_key);
		elementwise = rfl_peaks_compute(e, ceiling->elementwise);
		dram = rfl_peaks_dram(e);
	}
	check(peaks, env, compute_key, compute, &text);
	if (e)
		check(peaks, env, "DRAM", dram, &text);
	rc = rfl_buf_check(&text, env, err);
	if (rc == RFL_OK && text.len)
		rc = rfl_fail(err, RFL_EMISSING, 0, "%s: %s",
			      peaks->path ? peaks->path : "peaks.json", rfl_buf_str(&text));
	if (rc != RFL_OK)
		return rc;
	*ret = (struct rfl_attain_roof){
		.base = { .attain = rfl_attain_count,
			  .about = ret->about,
			  .env = e->name,
			  .fusion = fusion },
		.compute_flop_per_s = compute->value,
		.vector_flop_per_s =
			elementwise && rfl_peak_usable(elementwise) ? elementwise->value : NAN,
		.bandwidth_byte_per_s = dram->value,
		.compute_key = compute_key,
		.vector_key = ceiling->elementwise,
	};
	rfl_num_si(ret->compute_flop_per_s, "FLOP/s", 4, rate, sizeof(rate));
	rfl_num_si(ret->bandwidth_byte_per_s, "B/s", 4, bandwidth, sizeof(bandwidth));
	rfl_num_si(ret->vector_flop_per_s, "FLOP/s", 4, vector, sizeof(vector));
	const char *const name = name_of(e, compute_key, cell);
	const char *const vector_name = name_of(e, ret->vector_key, vector_cell);

	if (isnan(ret->vector_flop_per_s))
		(void)snprintf(ret->about, sizeof(ret->about),
			       "Ceilings of %s: %s (%s) for multiply-adds, %s of DRAM; the ceiling "
			       "for elementwise operations (%s) is unknown, so they take no time.",
			       e->name, rate, name, bandwidth, vector_name);
	else
		(void)snprintf(ret->about, sizeof(ret->about),
			       "Ceilings of %s: %s (%s) for multiply-adds, %s (%s) for elementwise "
			       "operations, %s of DRAM.",
			       e->name, rate, name, vector, vector_name, bandwidth);
	return RFL_OK;
}
