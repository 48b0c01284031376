/*
 * run_stats.h - statistics of the steps of one run: location, spread, drift, and flags that warn of
 * an unrepresentative window. All values are included, in the unit of the caller (ms in the
 * ledger).
 */
#ifndef RFL_LEDGER_RUN_STATS_H
#define RFL_LEDGER_RUN_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/stats.h"

/* Limits for flags and statistics, explained in docs/reference/run.md. */
#define RFL_RUN_UNSTABLE_IQR 0.05 /* share of the median */
#define RFL_RUN_DRIFT_LIMIT  0.03
#define RFL_RUN_LOADER_BOUND 0.05 /* share of the mean step */
#define RFL_RUN_FEW_STEPS    10
#define RFL_RUN_OUTLIER \
	(5 * 1.4826)             /* in MADs; 1.4826 MAD is the standard deviation of normal noise */
#define RFL_RUN_WARM_STEPS  20   /* first steps, in which a change of level is detected */
#define RFL_RUN_WARM_CHANGE 0.01 /* share of the level; smaller changes are ignored */

/** Statistics of the step times of a window. NaN: too few steps, or no spread. */
struct rfl_run_stats {
	struct rfl_stats time;
	double relative_iqr; /**< (p75 - p25) / median */
	double drift;        /**< median of the last third / median of the first third - 1 */
	double lag1; /**< autocorrelation of successive steps: sum of (x[i] - mean) (x[i+1] - mean)
			/ sum of (x[i] - mean)^2 */
	int64_t outliers;   /**< steps with |x - median| > RFL_RUN_OUTLIER * MAD */
	int64_t cold_steps; /**< steps before a change of level in the first steps; 0: no change, a
			       later one (drift), or one below RFL_RUN_WARM_CHANGE */
};

/** Compute the statistics of a window of at least one step. */
struct rfl_run_stats rfl_run_stats_of(const double *times, size_t n);

/** Further input for the flags. */
struct rfl_run_signs {
	double data_wait_mean; /**< in the unit of the step times; NaN: unknown */
	bool throttled;        /**< the GPU reported throttling */
	bool busy;             /**< other programs used the CPUs during the window */
	bool until_missed;     /**< the time limit was reached before --until was satisfied */
};

#define RFL_RUN_FLAGS_MAX 96

/** Write the flags, separated by spaces; "" if there are none. @return out */
char *rfl_run_flags(const struct rfl_run_stats *stats, const struct rfl_run_signs *signs,
		    char out[RFL_RUN_FLAGS_MAX]);

#endif
