/*
 * captures.h - the output of `roofline counters`: kernels sorted by time with work, traffic and
 * arithmetic intensity, ranges, totals, and the reasons why quantities are unknown.
 */
#ifndef RFL_REPORT_CAPTURES_H
#define RFL_REPORT_CAPTURES_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/capture.h"
#include "report/table.h"

enum rfl_capture_by {
	RFL_CAPTURE_BY_KERNEL, /**< kernels, each summed over all blocks and grids */
	RFL_CAPTURE_BY_RANGE,  /**< every range: kernels by block and grid, phases, layers, ... */
	RFL_CAPTURE_BY_METRIC, /**< every metric of every range */
};
/** "kernel", "range", "metric", NULL; used for an option. */
extern const char *const rfl_capture_by_names[];

struct rfl_capture_view {
	enum rfl_format format; /**< CSV has the rows of counters.csv; JSON follows
				   docs/counters.schema.json */
	enum rfl_capture_by by; /**< kind of rows in a table */
	size_t most;            /**< maximum number of table rows, longest time first; 0: all */
	bool explain;           /**< show the rule and the inputs of each figure of a table */
};

/** Append captures in the requested format. */
void rfl_captures_render(const struct rfl_captures *captures, const struct rfl_capture_view *view,
			 struct rfl_buf *out);

/** Append a table of the times of two captures, largest difference first. `view->by` is unused. */
void rfl_captures_compare(const struct rfl_captures *captures, const struct rfl_capture_view *view,
			  struct rfl_buf *out);

#endif
