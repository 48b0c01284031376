/* runs.h - the output of `roofline summary`, `compare` and `points`. */
#ifndef RFL_REPORT_RUNS_H
#define RFL_REPORT_RUNS_H

#include "ledger/repeats.h"
#include "report/page.h"
#include "roofline/points.h"

/* The tables below are the caller's. @param people  false: with every field, as CSV or JSON; true:
 * with the fields that name a configuration and those that vary. */

/** A summary, with the notes and the lines of `more`. */
struct rfl_table *rfl_repeats_table(const struct rfl_repeats *r, bool people,
				    const char *more) RFL_WARN_UNUSED;

/** Append a summary as Markdown tables "Batch Size | Run 1 | Run 2 | Run 3 | Mean | Std Dev", one
 * for each environment, model and precision. */
enum rfl_rc rfl_repeats_markdown(const struct rfl_repeats *r, const char *more, struct rfl_buf *out,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** The values of the single runs of each configuration that has several, up to 12.
 * @param names  of the configurations @param page  owns the titles */
struct rfl_table *rfl_repeats_values(const struct rfl_repeats *r, const char *const *names,
				     struct rfl_page *page) RFL_WARN_UNUSED;

/** A comparison. @param names  names of A and B for the notes @param lines  more notes */
struct rfl_table *rfl_comparison_table(const struct rfl_comparison *c, bool people,
				       const char *const names[2],
				       const char *lines) RFL_WARN_UNUSED;

/** Points, with all columns of their file or, for people, with the main ones and the verdicts. */
struct rfl_table *rfl_points_table(const struct rfl_points *points, bool people) RFL_WARN_UNUSED;

/** The main columns of whole steps: rate with its spread, GFLOP/s, FLOP/byte, share of the roof,
 * bound. Points of parts are omitted. */
struct rfl_table *rfl_points_summary(const struct rfl_points *points, bool people) RFL_WARN_UNUSED;

#endif
