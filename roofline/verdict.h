/* verdict.h - describes a point in one sentence. Above the roof, the sentence lists the likely
 * causes. */
#ifndef RFL_ROOFLINE_VERDICT_H
#define RFL_ROOFLINE_VERDICT_H

#include "peaks/peaks.h"
#include "roofline/points.h"

/** The minimum spread, which covers rounding and clock changes. Also used if no spread is
 * recorded. */
#define RFL_VERDICT_LEAST_SPREAD 0.01

/** The smallest excess over the roof at which the rounded percentage is at least 101. */
#define RFL_VERDICT_VISIBLE 0.005

struct rfl_verdict_facts {
	const struct rfl_point *point; /**< point with all numbers set */
	const struct rfl_peaks_env *env;
	const struct rfl_peak *compute, *dram;
	bool factor;   /**< FLOPs are 2 or 3 times those of the forward pass, not counted */
	bool unstable; /**< a run has the flag "unstable" */
	double step_compulsory_bytes; /**< NaN: unknown */
};

/** Return true if the point visibly exceeds its roof, ignoring the uncertainty. */
bool rfl_verdict_exceeds(const struct rfl_point *p);

/** Return true if the point is above its roof by more than both spreads combined (root of the sum
 * of squares). */
bool rfl_verdict_above(const struct rfl_verdict_facts *f);

/** The limit of a point, in one or two words that agree with its verdict: "memory", "compute",
 * "both (knee)"; "neither" if it is far below its roof, "by construction" if its intensity is a
 * lower bound, "above roof". */
const char *rfl_verdict_limit(const struct rfl_point *p);

/** Append the sentence. */
void rfl_verdict_write(const struct rfl_verdict_facts *f, struct rfl_buf *out);

#endif
