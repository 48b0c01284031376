/*
 * roofline.c - the formulas of the model, and which ceiling of peaks.json an operation stands
 * under.
 */
#include "roofline/roofline.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *const rfl_bound_names[] = { "memory", "compute", "knee", NULL };

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

	/* a ratio, so that the band is as wide on both sides of a logarithmic axis */
	if (ai <= knee * (1 + RFL_ROOF_KNEE_BAND) && ai * (1 + RFL_ROOF_KNEE_BAND) >= knee)
		return RFL_BOUND_KNEE;
	if (ai_lo <= knee && knee <= ai_hi) /* false when either is NaN */
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

/* --- ceilings -------------------------------------------------------------------------------- */

/*
 * A ceiling is never replaced by one of another precision or accumulator: fp16.matrix accumulates
 * in fp32 and is not served by fp16.matrix.fp16acc, fp32 is not served by tf32.
 */
#define M RFL_CLASS_MATRIX
#define E RFL_CLASS_ELEMENTWISE

/* amp is the device's usual 16-bit autocast: fp16 on CUDA and MPS, bf16 on a CPU. Its elementwise
 * part runs in fp32. */
static const struct rfl_ceiling ceilings[] = {
	/* backend, precision, class, key, faster */
	{ "cpu", "fp32", M, "fp32.vector", "fp32.matrix" },
	{ "cpu", "fp32", E, "fp32.vector", NULL },
	{ "cpu", "amp", M, "bf16.vector", "bf16.matrix" },
	{ "cpu", "amp", E, "fp32.vector", NULL },
	{ "cpu", "bf16", M, "bf16.vector", "bf16.matrix" },
	{ "cpu", "bf16", E, "bf16.vector", NULL },
	{ "cpu", "fp16", M, "fp16.vector", "fp16.matrix" },
	{ "cpu", "fp16", E, "fp16.vector", NULL },
	{ "cuda", "fp32", M, "fp32.vector", NULL },
	{ "cuda", "fp32", E, "fp32.vector", NULL },
	{ "cuda", "tf32", M, "tf32.matrix", NULL },
	{ "cuda", "tf32", E, "fp32.vector", NULL },
	{ "cuda", "amp", M, "fp16.matrix", NULL },
	{ "cuda", "amp", E, "fp32.vector", NULL },
	{ "cuda", "fp16", M, "fp16.matrix", NULL },
	{ "cuda", "fp16", E, "fp16.vector", NULL },
	{ "cuda", "bf16", M, "bf16.matrix", NULL },
	{ "cuda", "bf16", E, "bf16.vector", NULL },
	{ "mps", "fp32", M, "fp32.vector", "fp32.matrix" },
	{ "mps", "fp32", E, "fp32.vector", NULL },
	{ "mps", "amp", M, "fp16.vector", "fp16.matrix" },
	{ "mps", "amp", E, "fp32.vector", NULL },
	{ "mps", "fp16", M, "fp16.vector", "fp16.matrix" },
	{ "mps", "fp16", E, "fp16.vector", NULL },
	{ "mps", "bf16", M, "bf16.vector", "bf16.matrix" },
	{ "mps", "bf16", E, "bf16.vector", NULL },
};

#undef M
#undef E

const struct rfl_ceiling *rfl_ceiling_at(size_t i)
{
	return i < RFL_ARRAY_LEN(ceilings) ? &ceilings[i] : NULL;
}

enum rfl_rc rfl_ceiling_find(const char *backend, const char *precision, enum rfl_op_class op_class,
			     const struct rfl_ceiling **ret, struct rfl_err *err)
{
	const struct rfl_ceiling *c;

	for (size_t i = 0; (c = rfl_ceiling_at(i)); i++) {
		if (c->op_class == op_class && strcmp(c->backend, backend) == 0 &&
		    strcmp(c->precision, precision) == 0) {
			*ret = c;
			return RFL_OK;
		}
	}
	return rfl_fail(
		err, RFL_ENOTFOUND, 0,
		"no ceiling is defined for precision '%s' on backend '%s' (docs/roofline.md lists "
		"the pairs)",
		precision, backend);
}

const char *rfl_ceiling_key(const struct rfl_ceiling *ceiling, const struct rfl_peaks_env *env)
{
	const struct rfl_peak *p;

	/* one value of the short form serves every key: ask for the plain one */
	if (!ceiling->faster || env->short_form)
		return ceiling->key;
	p = rfl_peaks_compute(env, ceiling->faster);
	if (p && rfl_peak_usable(p))
		return ceiling->faster;
	/* an environment that lists the fast unit alone is asked for that one */
	if (p && p->status != RFL_PEAK_UNSUPPORTED && !rfl_peaks_compute(env, ceiling->key))
		return ceiling->faster;
	return ceiling->key;
}
