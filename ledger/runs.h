/*
 * runs.h - reads the runs of one or more tables for summaries. The columns of metrics.csv are found
 * by name; columns of another program's table by common column names, labels and a map of rules:
 * NAME=COLUMN, NAME=COLUMN UNIT, NAME=COLUMN*FACTOR, NAME="constant", NAME="text {COLUMN}"
 * (docs/reference/summary.md).
 */
#ifndef RFL_LEDGER_RUNS_H
#define RFL_LEDGER_RUNS_H

#include "ledger/ledger.h"

struct rfl_column_rule {
	size_t column;        /**< index of the ledger column */
	const char *constant; /**< value of every row; NULL: use `source` */
	const char *source;   /**< column of the table, with optional unit or factor */
	const char *where;    /**< position of the rule for messages: "--map", "map.txt:3" */
};

struct rfl_column_map {
	size_t n;
	struct rfl_column_rule rules[RFL_LEDGER_NREAD];
	struct rfl_arena *arena; /**< owns the texts of the rules */
};

/** Create an empty map. */
struct rfl_column_map *rfl_column_map_new(void) RFL_WARN_UNUSED;
void rfl_column_map_free(struct rfl_column_map *map); /* accepts NULL */
RFL_AUTOPTR_TYPE(column_map, free);

/** Add a rule. RFL_EINVAL: invalid rule, unknown or repeated name, or invalid number.
 * @param where  position of the rule for messages; copied */
enum rfl_rc rfl_column_map_add(struct rfl_column_map *map, const char *rule, const char *where,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Add the rules of a file, one per line. Empty lines and lines that begin with '#' are skipped.
 * RFL_EFORMAT: the message names file and line. */
enum rfl_rc rfl_column_map_load(struct rfl_column_map *map, const char *path,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Return true if the table was written by `roofline run`: it has columns that no other program
 * writes. */
bool rfl_foreign_is_ours(const struct rfl_csv *csv);

struct rfl_runs_file {
	const char *path; /**< borrowed */
	size_t first;     /**< index of its first run */
};

/** A run. All data that repeats share is in one ledger row. */
struct rfl_run {
	const struct rfl_ledger_row *like; /**< without label, time and repeat */
	const char *label, *time;          /**< NULL: unknown */
	double value;                      /**< value of the metric */
	int64_t n;  /**< number of runs in the row, if it has a deviation of several; else -1 */
	double std; /**< its sample standard deviation, if the row is for several runs; else NaN */
	int64_t repeat;
	size_t line;
	bool profiled;  /**< the memory of a step was recorded as well */
	const char *id; /**< run_id; NULL: another program wrote the row */
};

/** The phases of a step. */
enum rfl_timed {
	RFL_TIMED_FORWARD,
	RFL_TIMED_BACKWARD,
	RFL_TIMED_OPTIMIZER,
	RFL_TIMED_DATA_WAIT,
	RFL_TIMED_UPLOAD,
	RFL_TIMED_PHASES
};

/** The times of a run. NaN: unknown. */
struct rfl_run_step {
	double samples_per_s;
	double median_ms, p10_ms, p90_ms; /**< over its steps */
	double phase_ms[RFL_TIMED_PHASES];
};
struct rfl_run_step rfl_run_step_of_row(const struct rfl_ledger_row *row);

/** Data to keep in addition to the runs. */
enum rfl_rows {
	RFL_ROWS_SHORT, /**< none */
	RFL_ROWS_KEPT,  /**< all rows, in runs->ledger; runs[i] is its row i */
	RFL_ROWS_WHOLE, /**< all rows with every column, for reports */
	/** Step times and the hash of the file, for roofline points. Tables of other programs then
	 * require mode and backend as well. */
	RFL_ROWS_TIMES,
};

struct rfl_runs {
	const struct rfl_ledger_metric *metric;
	size_t n, cap;
	struct rfl_run *runs;       /**< in file order */
	struct rfl_run_step *times; /**< one per run; NULL: not requested */
	bool timed;
	struct rfl_row_index likes;
	struct rfl_ledger *ledger; /**< owns the texts and, if requested, the rows */
	struct rfl_arena *arena;   /**< owns the list of files and the rows in likes */
	size_t nfiles;
	struct rfl_runs_file *files;
	struct rfl_buf notes; /**< lines naming the columns used in tables of other programs */
};

/**
 * Read files in order, with the columns needed to summarise one metric. A missing environment is
 * taken from the label or backend.
 * @param paths  borrowed
 * @param map  may be NULL
 * @param ret  set on success only; release with rfl_runs_free()
 */
enum rfl_rc rfl_runs_load(const char *const *paths, size_t npaths, const struct rfl_column_map *map,
			  const struct rfl_ledger_metric *metric, enum rfl_rows rows,
			  struct rfl_runs **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_runs_free(struct rfl_runs *runs); /* accepts NULL */
RFL_AUTOPTR_TYPE(runs, free);

/** Return the times of a run, if they were requested. */
const struct rfl_run_step *rfl_runs_times(const struct rfl_runs *runs, const struct rfl_run *run);

/** Return the whole row of a run, if the rows were kept (RFL_ROWS_KEPT or RFL_ROWS_WHOLE). */
const struct rfl_ledger_row *rfl_runs_row(const struct rfl_runs *runs, const struct rfl_run *run);

/** Append the position of a run as "file:line". */
void rfl_runs_where(const struct rfl_runs *runs, const struct rfl_run *run, struct rfl_buf *out);

/** Read another program's table with arithmetic intensities and rates of programs or kernels.
 * @param map  may be NULL
 * @param ret  NULL without such columns, or if it is a ledger; release with rfl_ledger_free() */
enum rfl_rc rfl_foreign_numbers(const char *path, const struct rfl_column_map *map,
				struct rfl_ledger **ret, struct rfl_buf *notes,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Keep only the runs i for which `keep` returns true. */
void rfl_runs_select(struct rfl_runs *runs,
		     bool (*keep)(const struct rfl_runs *runs, size_t i, void *ctx), void *ctx);

/** Drop the training runs that a later run continued from their checkpoint, with a note: the
 * epochs of the later run include theirs. Called by rfl_runs_load(). */
void rfl_runs_drop_continued(struct rfl_runs *runs);

/** Append the path of a file about a run: dir/<run_id>.csv or, if dir is NULL, folder/<run_id>.csv
 * next to its table. @return false if the row has no run_id, because another program wrote it */
bool rfl_runs_beside(const struct rfl_runs *runs, const struct rfl_run *run, const char *dir,
		     const char *folder, struct rfl_buf *out);

/** Append the path of the network of a run, networks/<net_digest>.json next to its table.
 * @return false if its model is not of a network file */
bool rfl_runs_network(const struct rfl_runs *runs, const struct rfl_run *run, struct rfl_buf *out);

/**
 * Check at the end of a table of steps that it has all of them.
 * @param n      number of rows that were read
 * @param iters  steps of the run; -1: unknown
 * @return RFL_OK; RFL_EFORMAT with file and line: the file was cut short or edited
 */
enum rfl_rc rfl_runs_check_steps(const struct rfl_csv *csv, size_t n, int64_t iters,
				 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
