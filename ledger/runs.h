/*
 * runs.h - the runs of one or more metrics.csv together, for summaries over them.
 */
#ifndef RFL_LEDGER_RUNS_H
#define RFL_LEDGER_RUNS_H

#include "ledger/foreign.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_runs_file {
	const char *path; /**< borrowed from who gave it */
	size_t first;     /**< its first row */
};

struct rfl_runs {
	struct rfl_ledger *ledger;
	size_t nfiles;
	struct rfl_runs_file *files;
	struct rfl_buf notes; /**< lines: what was taken for what in tables of others */
};

/**
 * Read files, in their order, as far as a summary by one metric needs them. Every row has an
 * environment afterwards, if anything tells it.
 * @param paths  must stay
 * @param map    NULL: none
 * @param whole  every column, for points under a roof: then a table of another program must tell
 *               mode and backend as well
 * @param ret    set on success only; release with rfl_runs_free()
 */
enum rfl_rc rfl_runs_load(const char *const *paths, size_t npaths, const struct rfl_column_map *map,
			  const struct rfl_ledger_metric *metric, bool whole, struct rfl_runs **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_runs_free(struct rfl_runs *runs); /* accepts NULL */

/** Append "file:line" of a row. */
void rfl_runs_where(const struct rfl_runs *runs, const struct rfl_ledger_row *row,
		    struct rfl_buf *out);

#ifdef __cplusplus
}
#endif
#endif
