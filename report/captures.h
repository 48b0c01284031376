/*
 * captures.h - the output of `roofline counters`: kernels by time with work, traffic and intensity,
 * ranges, totals, and why quantities are unknown.
 */
#ifndef RFL_REPORT_CAPTURES_H
#define RFL_REPORT_CAPTURES_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/capture.h"
#include "report/table.h"

enum rfl_capture_by {
	RFL_CAPTURE_BY_KERNEL, /**< kernels over all their blocks and grids */
	RFL_CAPTURE_BY_RANGE,  /**< every range: kernels by block and grid, phases, layers, ... */
	RFL_CAPTURE_BY_METRIC, /**< every metric of every range */
};
/** "kernel", "range", "metric", NULL: for an option row. */
extern const char *const rfl_capture_by_names[];

struct rfl_capture_view {
	enum rfl_format
		format; /**< csv: the rows of counters.csv; json: docs/counters.schema.json */
	enum rfl_capture_by by; /**< of a table */
	size_t most;            /**< rows of a table, those that take the longest; 0: all */
	bool explain;           /**< of a table: the rule and the inputs of each figure */
};

/** Append captures in one of the formats.
 * @return RFL_OK; RFL_ENOMEM */
enum rfl_rc rfl_captures_render(const struct rfl_captures *captures,
				const struct rfl_capture_view *view, struct rfl_buf *out,
				struct rfl_err *err) RFL_WARN_UNUSED;

#endif
