/*
 * plan.h - which metrics of a chip are counted together, and in how many passes: a session per set
 * of RFL_SET_*, as far as CUPTI has its metrics for the chip. The metrics come from the formulas of
 * the chip's family, so that what is counted is what is evaluated. Needs no GPU.
 */
#ifndef RFL_PROFILE_CUPTI_PLAN_H
#define RFL_PROFILE_CUPTI_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/cupti/host.h"
#include "profile/formula.h"
#include "profile/source.h"

#define RFL_METRIC_SET_MAX 96

/** Names of metrics, each once; borrowed from the formulas. Zero it before use. */
struct rfl_metric_set {
	const char *names[RFL_METRIC_SET_MAX];
	size_t n;
	/** That were taken out, and why. */
	const char *absent[RFL_METRIC_SET_MAX], *why_absent[RFL_METRIC_SET_MAX];
	size_t nabsent;
};

/** The set that a quantity belongs to in a run of this precision, RFL_SET_*; 0: none, it is found
 * in files only. */
unsigned rfl_metric_set_of(enum rfl_quantity q, const char *precision);

/** The first way of a quantity that takes metrics of the chip alone, and only those of `within`
 * when that is not NULL; -1: none. */
int rfl_metric_set_way(const struct rfl_formulas *f, enum rfl_quantity q,
		       const struct rfl_metric_set *within);

/**
 * Add what the sets RFL_SET_CORE, _FLOPS, _AUDIT and _LINKS count, and what is subtracted from it;
 * other bits add nothing.
 * @param precision  of the run: its matrix FLOPs are in the core, all others in the audit; NULL:
 *                   the core has none
 */
void rfl_metric_set_add_sets(struct rfl_metric_set *s, const struct rfl_formulas *f, unsigned sets,
			     const char *precision);

/**
 * The same, but with the best of the ways to count the matrix FLOPs of the precision: one that
 * counts all of them, and of those the one that takes the fewest passes. The audit has them all.
 * @param ret     without what this CUPTI lacks for the chip, or refuses to count on this device
 * @param passes  0 when there is nothing to count
 * @return RFL_EUNSUPPORTED when every metric is refused
 */
enum rfl_rc rfl_metric_set_choose(struct rfl_cupti_host *h, const struct rfl_formulas *f,
				  unsigned sets, const char *precision, struct rfl_metric_set *ret,
				  size_t *passes, struct rfl_err *err) RFL_WARN_UNUSED;

/** The matrix FLOPs of a run in this precision: tf32 for "fp32", where they show whether it is that
 * truly, and are counted when that takes at most one pass more. RFL_QUANTITY_COUNT for a name that
 * is not known. */
enum rfl_quantity rfl_precision_matrix(const char *precision);

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

#define RFL_CUPTI_SESSIONS 4

struct rfl_cupti_plan {
	struct rfl_formulas *formulas;
	size_t n;
	struct rfl_cupti_planned sessions[RFL_CUPTI_SESSIONS];
};

/**
 * @param availability  of the device, or NULL; kept by the caller as long as the plan
 * @param sets          RFL_SET_*; those that are not counters are ignored
 * @param precision     of the run: its data type of the matrix units is in the core session
 * @param ret           release with rfl_cupti_plan_free()
 * @return RFL_OK, also when a session cannot be counted: its `why` says so; RFL_ENOTFOUND when
 * there are no formulas for the chip
 */
enum rfl_rc rfl_cupti_plan_new(struct rfl_cupti *lib, const char *chip, const uint8_t *availability,
			       unsigned sets, const char *precision, struct rfl_cupti_plan **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_plan_free(struct rfl_cupti_plan *p); /* accepts NULL */

/** "9 metrics in 1 pass", and which are left out and why. */
void rfl_cupti_planned_text(const struct rfl_cupti_planned *session, struct rfl_buf *out);

/** The quantities that the values of a session's metrics give (SI base units, NaN where absent). */
void rfl_cupti_plan_amounts(const struct rfl_cupti_plan *p, const struct rfl_cupti_planned *session,
			    const double *values, double ret[RFL_QUANTITY_COUNT]);

#endif
