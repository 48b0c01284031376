/*
 * roofline.c - the formulas of the model.
 */
#include "roofline/roofline.h"

#include <assert.h>
#include <math.h>

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
