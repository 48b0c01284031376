/*
 * runs.h - the runs of one or more metrics.csv together, for summaries over them: our own by their
 * columns' names; another program's by names that other programs use, by what labels say, and by a
 * map of rules: NAME=COLUMN, NAME=COLUMN UNIT, NAME=COLUMN*FACTOR, NAME="constant"
 * (docs/matrix.md).
 */
#ifndef RFL_LEDGER_RUNS_H
#define RFL_LEDGER_RUNS_H

#include "ledger/ledger.h"

struct rfl_column_rule {
	size_t column;        /**< of the ledger */
	const char *constant; /**< what every row has; NULL: `source` */
	const char *source;   /**< a column of the table, with what follows its name */
	const char *where;    /**< of the rule, for messages: "--map", "map.txt:3" */
};

struct rfl_column_map {
	size_t n;
	struct rfl_column_rule rules[RFL_LEDGER_NCOLUMNS];
	struct rfl_arena *arena; /**< owns their texts */
};

/** An empty map; NULL out of memory. */
struct rfl_column_map *rfl_column_map_new(void) RFL_WARN_UNUSED;
void rfl_column_map_free(struct rfl_column_map *map); /* accepts NULL */

/** Add a rule. RFL_EINVAL for what is no rule, a name that the ledger does not have, a number that
 * is none, or a name that has a rule already. @param where  its place, for messages; copied */
enum rfl_rc rfl_column_map_add(struct rfl_column_map *map, const char *rule, const char *where,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Add the rules of a file: one a line; empty lines and those that begin with '#' are skipped.
 * RFL_EFORMAT with file and line; RFL_EIO. */
enum rfl_rc rfl_column_map_load(struct rfl_column_map *map, const char *path,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** A table that came from `roofline run`: it has the columns that only this program writes. */
bool rfl_foreign_is_ours(const struct rfl_csv *csv);

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
	struct rfl_ledger *ledger; /**< owns the texts; has the rows that were asked for */
	struct rfl_arena *arena;   /**< of the rows in likes */
	size_t nfiles;
	struct rfl_runs_file *files;
	struct rfl_buf notes; /**< lines: what was taken for what in tables of others */
};

/**
 * Read files, in their order, as far as a summary by one metric needs them. Every row has an
 * environment afterwards, if anything names it.
 * @param paths  must stay
 * @param map    NULL: none
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
