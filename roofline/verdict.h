/* verdict.h - describes a point in one sentence; above the roof, with the likely causes. */
#ifndef RFL_ROOFLINE_VERDICT_H
#define RFL_ROOFLINE_VERDICT_H

#include "peaks/peaks.h"
#include "roofline/points.h"

/** The minimum spread, also used if none is recorded: rounding and clocks. */
#define RFL_VERDICT_LEAST_SPREAD 0.01

/** From this excess over the roof on, the rounded percentage is at least 101. */
#define RFL_VERDICT_VISIBLE 0.005

struct rfl_verdict_facts {
	const struct rfl_point *point; /**< with all numbers set */
	const struct rfl_peaks_env *env;
	const struct rfl_peak *compute, *dram;
	bool factor;                  /**< FLOPs by factor 2 or 3, not counted */
	bool unstable;                /**< a run has the flag unstable */
	double step_compulsory_bytes; /**< NaN: unknown */
};

/** Does the point visibly exceed its roof, whatever the uncertainty? */
bool rfl_verdict_exceeds(const struct rfl_point *p);

/** Is the point above its roof by more than both spreads together (root of the sum of squares)? */
bool rfl_verdict_above(const struct rfl_verdict_facts *f);

/** Append the sentence. */
void rfl_verdict_write(const struct rfl_verdict_facts *f, struct rfl_buf *out);

#endif
