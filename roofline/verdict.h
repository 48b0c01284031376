/*
 * verdict.h - what a point shows, in one sentence; above the roof, why that can be.
 */
#ifndef RFL_ROOFLINE_VERDICT_H
#define RFL_ROOFLINE_VERDICT_H

#include "peaks/peaks.h"
#include "roofline/points.h"

/** A spread that is not recorded, or smaller than this, counts as this: rounding and clocks. */
#define RFL_VERDICT_LEAST_SPREAD 0.01

/** A point that exceeds its roof by more than this share is seen to: a rounded percent says 101. */
#define RFL_VERDICT_VISIBLE 0.005

struct rfl_verdict_facts {
	const struct rfl_point *point; /**< all numbers filled */
	const struct rfl_peaks_env *env;
	const struct rfl_peak *compute, *dram;
	bool factor;                  /**< FLOPs by factor 2 or 3, not counted */
	bool unstable;                /**< the runner flagged one of the runs as unstable */
	double step_compulsory_bytes; /**< NaN when not known */
};

/** Does the point exceed its roof visibly, whatever the uncertainty? Then words must say so. */
bool rfl_verdict_exceeds(const struct rfl_point *p);

/** Is the point above its roof by more than both spreads together (root of the sum of squares)? */
bool rfl_verdict_above(const struct rfl_verdict_facts *f);

/** Append the sentence. */
void rfl_verdict_write(const struct rfl_verdict_facts *f, struct rfl_buf *out);

#endif
