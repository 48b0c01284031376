/*
 * axis.h - a logarithmic axis: its range, its ticks, and where a value lies.
 */
#ifndef RFL_PLOT_AXIS_H
#define RFL_PLOT_AXIS_H

#include <stdbool.h>
#include <stddef.h>

#define RFL_AXIS_MAX_TICKS 128

struct rfl_tick {
	double value;
	bool major; /**< a decade */
	bool labelled;
};

struct rfl_axis {
	double min, max; /**< data, both positive */
	double from, to; /**< points on the page; `from` is where min lies */
	size_t nticks;
	struct rfl_tick ticks[RFL_AXIS_MAX_TICKS];
};

/**
 * Choose a range with ends of one digit around [lo, hi], and ticks for a length on the page.
 * @param room  the least distance between two labels
 */
void rfl_axis_fit(struct rfl_axis *a, double lo, double hi, double from, double to, double room);

/** Where a value lies on the page; not clamped. */
double rfl_axis_at(const struct rfl_axis *a, double value);

#endif
