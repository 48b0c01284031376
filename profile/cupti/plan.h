/*
 * plan.h - which metrics of a chip are counted together, and in how many passes: a session
 * per set of RFL_SET_* (cupti/sets.h), as far as CUPTI has its metrics for the chip. Needs no GPU.
 */
#ifndef RFL_PROFILE_CUPTI_PLAN_H
#define RFL_PROFILE_CUPTI_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/cupti/host.h"
#include "profile/cupti/lib.h"
#include "profile/cupti/sets.h"
#include "profile/formula.h"
#include "profile/profile.h"

struct rfl_cupti_unit {
	const char *unit; /**< the SI base unit: "s" */
	double factor;    /**< that makes it of CUPTI's: 1e-9 */
};

struct rfl_cupti_planned {
	const char *name;              /**< "core", "flops", "audit", "links" */
	unsigned set;                  /**< RFL_SET_CORE, ... */
	struct rfl_metric_set metrics; /**< none: the chip has none of them */
	struct rfl_cupti_unit units[RFL_METRIC_SET_MAX];
	struct rfl_cupti_host *host; /**< its last configuration is that of this session */
	uint8_t *config;
	size_t config_size;
	size_t passes;
	struct rfl_err why; /**< why it cannot be counted; empty when it can */
};

struct rfl_cupti_plan {
	struct rfl_formulas *formulas;
	size_t n;
	struct rfl_cupti_planned *sessions;
};

/**
 * @param availability  of the device, or NULL; kept by the caller as long as the plan
 * @param sets          RFL_SET_*; those that are no counters are ignored
 * @param precision     of the run: its data type of the matrix units is in the core session
 * @param ret           release with rfl_cupti_plan_free()
 * @return RFL_OK, also when a session cannot be counted: its `why` tells; RFL_ENOTFOUND when there
 *         are no formulas for the chip
 */
enum rfl_rc rfl_cupti_plan_new(struct rfl_cupti *lib, const char *chip, const uint8_t *availability,
			       unsigned sets, const char *precision, struct rfl_cupti_plan **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_plan_free(struct rfl_cupti_plan *p); /* accepts NULL */

/** "9 metrics in 1 pass", and which are left out and why. */
void rfl_cupti_planned_text(const struct rfl_cupti_planned *session, struct rfl_buf *out);

/** The quantities that the values of a session's metrics give (SI base units, NaN where absent). */
enum rfl_rc rfl_cupti_plan_amounts(const struct rfl_cupti_plan *p,
				   const struct rfl_cupti_planned *session, const double *values,
				   double ret[RFL_QUANTITY_COUNT],
				   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
