/*
 * sets.h - which metrics of a chip are asked for together. They come from the formulas of its
 * family, so that what is counted is what is evaluated.
 */
#ifndef RFL_PROFILE_CUPTI_SETS_H
#define RFL_PROFILE_CUPTI_SETS_H

#include <stdbool.h>
#include <stddef.h>

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

/** Take the i-th name out; `why` is kept as it is. */
void rfl_metric_set_take_out(struct rfl_metric_set *s, size_t i, const char *why);

/** The set that a quantity belongs to in a run of this precision, RFL_SET_*; 0: none, it is found
 * in files only. */
unsigned rfl_metric_set_of(enum rfl_quantity q, const char *precision);

/** The first way of a quantity that takes metrics of the chip alone, and only those of `within`
 * when that is not NULL; -1: none. */
int rfl_metric_set_way(const struct rfl_formulas *f, enum rfl_quantity q,
		       const struct rfl_metric_set *within);

/**
 * Add what the sets RFL_SET_CORE, _FLOPS, _AUDIT and _LINKS count, and what has to be taken off it;
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

#endif
