/*
 * runs.h - the runs of one or more metrics.csv together, for summaries over them.
 */
#ifndef RFL_LEDGER_RUNS_H
#define RFL_LEDGER_RUNS_H

#include "ledger/foreign.h"
#include "ledger/repeats/row_index.h"

struct rfl_runs_file {
	const char *path; /**< borrowed from who gave it */
	size_t first;     /**< its first row */
};

/** What is kept of a row. All that repeats share is in one row for all of them. */
struct rfl_run {
	const struct rfl_ledger_row *like; /**< without label, time and repeat; also the status */
	const char *label, *time;          /**< NULL: not known */
	double value;                      /**< of the metric */
	int64_t repeat;
	size_t line;
};

/** What points under a roof need of a run besides: columns of the ledger. */
struct rfl_run_times {
	const char *run_id;
	double step_ms_median, step_ms_p10, step_ms_p90;
	double fwd_ms_mean, bwd_ms_mean, opt_ms_mean, data_wait_ms_mean;
};

/** What is kept of the rows besides the runs. */
enum rfl_rows {
	RFL_ROWS_SHORT, /**< nothing */
	RFL_ROWS_KEPT,  /**< the columns that the runs need, in runs->ledger */
	/** Their times, and the fingerprint of the file, for points under a roof: then a table of
	 * another program must have mode and backend as well. */
	RFL_ROWS_TIMES,
};

struct rfl_runs {
	const struct rfl_ledger_metric *metric;
	size_t n, cap;
	struct rfl_run *runs;        /**< in the order of the files */
	struct rfl_run_times *times; /**< one for each; NULL: not asked for */
	bool timed;
	struct rfl_row_index likes;
	struct rfl_ledger
		*ledger; /**< owns the texts; its rows are there where they were asked for */
	struct rfl_arena *arena; /**< of the rows in likes */
	size_t nfiles;
	struct rfl_runs_file *files;
	struct rfl_buf notes; /**< lines: what was taken for what in tables of others */
};

/**
 * Read files, in their order, as far as a summary by one metric needs them. Every row has an
 * environment afterwards, if anything names it.
 * @param paths  must stay
 * @param map    NULL: none
 * @param rows   whether runs->ledger keeps them
 * @param ret    set on success only; release with rfl_runs_free()
 */
enum rfl_rc rfl_runs_load(const char *const *paths, size_t npaths, const struct rfl_column_map *map,
			  const struct rfl_ledger_metric *metric, enum rfl_rows rows,
			  struct rfl_runs **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_runs_free(struct rfl_runs *runs); /* accepts NULL */

/** The times of a run, where they were asked for. */
const struct rfl_run_times *rfl_runs_times(const struct rfl_runs *runs, const struct rfl_run *run);

/** Append "file:line" of a run. */
void rfl_runs_where(const struct rfl_runs *runs, const struct rfl_run *run, struct rfl_buf *out);

#endif
