/*
 * counters_csv.h - logs/counters.csv: captures as rows, one metric or quantity of one range of one
 * run in each. The columns are one list, from which writer, reader and documentation test are made.
 */
#ifndef RFL_PROFILE_COUNTERS_CSV_H
#define RFL_PROFILE_COUNTERS_CSV_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/capture.h"

#define RFL_COUNTERS_SCHEMA 1

/* X(KIND, name, meaning). Empty = not known. The first row of a capture is of kind "capture";
 * totals follow, then ranges, refusals and notes. A quantity of a range that has no row is
 * unavailable for the reason that its total gives. */
/* clang-format off */
#define RFL_COUNTER_COLUMNS(X) \
	X(INT, schema_version, "version of this list of columns") \
	X(TEXT, label, "of the run") \
	X(TEXT, run_id, "of the run, as in the ledger") \
	X(TEXT, timestamp_utc, "ISO 8601") \
	X(TEXT, source, "cupti, perf, ncu, nvprof, nsys, time, likwid") \
	X(TEXT, file, "that was read; empty: counted live") \
	X(TEXT, device, "") \
	X(TEXT, chip, "GH100, ...") \
	X(TEXT, family, "formulas that were used") \
	X(INT, steps, "training steps that the values cover") \
	X(INT, passes, "times that the workload was run for them") \
	X(TEXT, range_kind, "kernel, step, phase, layer, process, idle, self-test; total: of all of these") \
	X(TEXT, range, "name of the kernel, the phase, the layer; of a total: the kind of ranges in it") \
	X(TEXT, block, "threads of a block") \
	X(TEXT, grid, "blocks") \
	X(INT, launches, "that the range stands for") \
	X(TEXT, kind, "metric: as it was read; quantity: derived by a formula; capture: begins one; refusal: a set that could not be counted; note") \
	X(TEXT, metric, "name of the metric or quantity; rows_left_out of a capture; the set of a refusal; unused_metrics of a note") \
	X(REAL, value, "in SI base units; empty: unavailable") \
	X(TEXT, unit, "byte, s, FLOP, ...") \
	X(TEXT, rollup, "sum, max, min, mean: over the launches") \
	X(INT, counted_launches, "launches that had it") \
	X(INT, pass, "in which it was counted, from 0") \
	X(TEXT, validity, "ok, partial, scaled, estimate, marked, unavailable") \
	X(TEXT, rule, "how a quantity was derived") \
	X(TEXT, reason, "why it is unavailable, or what to know of it")
/* clang-format on */

/** The name of the i-th column, and what it means; NULL past the end. */
const char *rfl_counters_column(size_t i, const char **meaning);

/** Append the rows of captures as CSV text; `header` for the first line as well. */
void rfl_counters_write(struct rfl_buf *out, const struct rfl_captures *captures, bool header);

/** Add to a file: created with its header when absent, locked, one write, synced; RFL_EFORMAT when
 * its header differs. */
enum rfl_rc rfl_counters_append(const char *path, const struct rfl_captures *captures,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Could rows be added: the file is absent or empty, or has this header? Asked before a run, so
 * that its counts are not refused after it. */
enum rfl_rc rfl_counters_check(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** Read a file, or `text` when that is not NULL, and append its captures. Unknown columns are
 * ignored; messages name file, line and column. */
enum rfl_rc rfl_counters_load(const char *path, const char *text, size_t len,
			      struct rfl_captures *to, struct rfl_err *err) RFL_WARN_UNUSED;

/** Give a capture the identity of a run: label, run_id, time. Texts are copied; what is NULL stays
 * as it is. */
enum rfl_rc rfl_capture_identify(struct rfl_captures *c, size_t i, const char *label,
				 const char *run_id, const char *time_utc,
				 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
