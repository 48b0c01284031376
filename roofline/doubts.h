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

/** Append a line for each environment with points of another device than that of its ceilings. */
size_t rfl_points_other_devices(const struct rfl_points *points, const struct rfl_peaks *peaks,
				struct rfl_buf *lines);

#endif
