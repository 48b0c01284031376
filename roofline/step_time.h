/*
 * step_time.h - the step time of a configuration and the times of its phases.
 *
 *   step time = samples per step / mean of the samples per second of the repeats
 *
 * It is the time at the throughput that is printed beside it. It is also the mean of the repeats'
 * step times, weighted by their rates; phases are means with the same weights, so that they add up
 * to the step as they do in each repeat. Whatever shows another time says which: the median step,
 * the mean of all steps.
 */
#ifndef RFL_ROOFLINE_STEP_TIME_H
#define RFL_ROOFLINE_STEP_TIME_H

#include "ledger/repeats.h"

struct rfl_step_time {
	struct rfl_stats rate;             /**< samples per second, over the repeats */
	double step_s;                     /**< NaN without repeats */
	double lo_s, hi_s;                 /**< NaN: unknown */
	const char *source;                /**< of lo and hi; a literal */
	double median_s;                   /**< the median of the repeats' medians */
	double phase_ms[RFL_TIMED_PHASES]; /**< NaN: no repeat has it */
};

/** @param samples  of a step. @param runs  the repeats, with known and positive rates */
struct rfl_step_time rfl_step_time(double samples, const struct rfl_run_step *runs, size_t n);

/** The same of a configuration. The rows of its runs must have been kept; runs without a positive
 * rate do not count. */
struct rfl_step_time rfl_step_time_of(const struct rfl_runs *runs,
				      const struct rfl_repeats_config *config);

#endif
