/*
 * runs.h - the runs of one or more tables for summaries: of metrics.csv by column name; of another
 * program's table by common names of columns, by labels and by a map of rules: NAME=COLUMN,
 * NAME=COLUMN UNIT, NAME=COLUMN*FACTOR, NAME="constant" (docs/matrix.md).
 */
#ifndef RFL_LEDGER_RUNS_H
#define RFL_LEDGER_RUNS_H

#include "ledger/ledger.h"

struct rfl_column_rule {
	size_t column;        /**< of the ledger */
	const char *constant; /**< value of every row; NULL: use `source` */
	const char *source;   /**< column of the table, with unit or factor */
	const char *where;    /**< place of the rule, for messages: "--map", "map.txt:3" */
};

struct rfl_column_map {
	size_t n;
	struct rfl_column_rule rules[RFL_LEDGER_NCOLUMNS];
	struct rfl_arena *arena; /**< owns their texts */
};

/** An empty map; NULL out of memory. */
struct rfl_column_map *rfl_column_map_new(void) RFL_WARN_UNUSED;
void rfl_column_map_free(struct rfl_column_map *map); /* accepts NULL */

/** Add a rule. RFL_EINVAL for an invalid rule, an unknown or repeated name, or an invalid number.
 * @param where  its place, for messages; copied */
enum rfl_rc rfl_column_map_add(struct rfl_column_map *map, const char *rule, const char *where,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Add the rules of a file, one per line; empty lines and lines that begin with '#' are skipped.
 * RFL_EFORMAT with file and line; RFL_EIO. */
enum rfl_rc rfl_column_map_load(struct rfl_column_map *map, const char *path,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Was the table written by `roofline run`? It has columns that no other program writes. */
bool rfl_foreign_is_ours(const struct rfl_csv *csv);

struct rfl_runs_file {
	const char *path; /**< borrowed */
	size_t first;     /**< index of its first run */
};

/** A row. All that repeats share is in one ledger row for all of them. */
struct rfl_run {
	const struct rfl_ledger_row *like; /**< without label, time and repeat */
	const char *label, *time;          /**< NULL: unknown */
	double value;                      /**< of the metric */
	int64_t repeat;
	size_t line;
};

/** Further columns that points under a roof need. */
struct rfl_run_times {
	const char *run_id;
	double step_ms_median, step_ms_p10, step_ms_p90;
	double fwd_ms_mean, bwd_ms_mean, opt_ms_mean, data_wait_ms_mean;
};

/** Data to keep in addition to the runs. */
enum rfl_rows {
	RFL_ROWS_SHORT, /**< none */
	RFL_ROWS_KEPT,  /**< the rows, in runs->ledger */
	/** Their times and the hash of the file, for points under a roof: another program's table
	 * then needs mode and backend as well. */
	RFL_ROWS_TIMES,
};

struct rfl_runs {
	const struct rfl_ledger_metric *metric;
	size_t n, cap;
	struct rfl_run *runs;        /**< in file order */
	struct rfl_run_times *times; /**< one per run; NULL: not requested */
	bool timed;
	struct rfl_row_index likes;
	struct rfl_ledger *ledger; /**< owns the texts; has the rows if requested */
	struct rfl_arena *arena;   /**< of the rows in likes */
	size_t nfiles;
	struct rfl_runs_file *files;
	struct rfl_buf notes; /**< lines: the columns used of foreign tables */
};

/**
 * Read files in order, with the columns needed for a summary by one metric. The environment of a
 * row is completed from its label or backend.
 * @param paths  borrowed
 * @param map    may be NULL
 * @param ret    set on success only; release with rfl_runs_free()
 */
enum rfl_rc rfl_runs_load(const char *const *paths, size_t npaths, const struct rfl_column_map *map,
			  const struct rfl_ledger_metric *metric, enum rfl_rows rows,
			  struct rfl_runs **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_runs_free(struct rfl_runs *runs); /* accepts NULL */

/** The times of a run, if requested. */
const struct rfl_run_times *rfl_runs_times(const struct rfl_runs *runs, const struct rfl_run *run);

/** Append "file:line" of a run. */
void rfl_runs_where(const struct rfl_runs *runs, const struct rfl_run *run, struct rfl_buf *out);

#endif
