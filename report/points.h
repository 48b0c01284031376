/*
 * points.h - points as a table: every column for machines, a line per point for people.
 */
#ifndef RFL_REPORT_POINTS_H
#define RFL_REPORT_POINTS_H

#include "base/buf.h"
#include "base/err.h"
#include "report/table.h"
#include "roofline/points.h"

/**
 * Append the points to a buffer. CSV is exactly the file of rfl_points_save(), JSON an array with
 * the same columns; text and Markdown show what matters, with the verdicts below.
 */
enum rfl_rc rfl_points_table(const struct rfl_points *points, enum rfl_format format,
			     struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
