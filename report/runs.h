/* runs.h - the output of `roofline summary`, `compare` and `points`. */
#ifndef RFL_REPORT_RUNS_H
#define RFL_REPORT_RUNS_H

#include "ledger/repeats.h"
#include "report/table.h"
#include "roofline/points.h"

/** Append a summary. CSV and JSON have every fact; tables for people have the facts that name a
 * configuration and those that vary, followed by the notes and the lines of `more`. */
enum rfl_rc rfl_repeats_table(const struct rfl_repeats *r, enum rfl_format format, const char *more,
			      struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** Append a summary as Markdown tables "Batch Size | Run 1 | Run 2 | Run 3 | Mean | Std Dev", one
 * for each environment, model and precision. */
enum rfl_rc rfl_repeats_markdown(const struct rfl_repeats *r, const char *more, struct rfl_buf *out,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Append a comparison. @param names  names of A and B for the notes @param lines  more notes */
enum rfl_rc rfl_comparison_table(const struct rfl_comparison *c, enum rfl_format format,
				 const char *const names[2], const char *lines, struct rfl_buf *out,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the points to a buffer. CSV is the content of a file of rfl_points_save(), and JSON an
 * array with the same columns. Text and Markdown have the main columns, followed by the
 * verdicts. */
enum rfl_rc rfl_points_table(const struct rfl_points *points, enum rfl_format format,
			     struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the main columns of whole steps: rate with its spread, GFLOP/s, FLOP/byte, share of the
 * roof, bound. Points of parts are left out. */
enum rfl_rc rfl_points_summary(const struct rfl_points *points, enum rfl_format format,
			       struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
