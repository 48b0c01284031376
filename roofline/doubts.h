/* doubts.h - doubts about the ceilings that points use: one line for each environment and cause. */
#ifndef RFL_ROOFLINE_DOUBTS_H
#define RFL_ROOFLINE_DOUBTS_H

#include "peaks/peaks.h"
#include "roofline/points.h"

/**
 * Append the lines, each with a newline: "lab_cpu: fp32.vector, DRAM: measured on a busy machine".
 * @param today  the current time, as for rfl_peaks_check()
 * @return their number
 */
size_t rfl_points_doubts(const struct rfl_points *points, const struct rfl_peaks *peaks,
			 const char *today, struct rfl_buf *lines);

/** Append a line for each environment with points of another device than its ceilings. */
size_t rfl_points_other_devices(const struct rfl_points *points, const struct rfl_peaks *peaks,
				struct rfl_buf *lines);

/** The smallest relative difference between the clocks of a profile and of its ceilings that is
 * reported. */
#define RFL_POINTS_CLOCK 0.05

/** Append a line if kernels of an environment were profiled at another clock than their
 * ceilings, one if runs had fewer threads than their ceilings, and one if there is no roof for
 * their traffic through L1 or L2. */
void rfl_points_caveats(const struct rfl_points *points, const struct rfl_peaks_env *env,
			const char *peaks_name, struct rfl_buf *lines);

#endif
