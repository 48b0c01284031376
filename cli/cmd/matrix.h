/*
 * matrix.h - inside cli/: functions for the commands of a run matrix.
 *
 * Runs are numbered as in rfl_matrix_coverage: run i is repeat i / ncells + 1 of cell i % ncells.
 */
#ifndef RFL_CLI_MATRIX_H
#define RFL_CLI_MATRIX_H

#include "cli/cmd/run_config.h"
#include "ledger/matrix.h"

/* Option rows of several commands; their kinds are TEXT, LIST and TEXT. */
#define RFL_MATRIX_LOG_DIR                                      \
	.name = "log-dir", .meta = "DIR", .project = "log_dir", \
	.help = "directory that contains metrics.csv"
#define RFL_MATRIX_ONLY                                                                            \
	.name = "only", .meta = "ENV/MODEL/PRECISION/BATCH",                                       \
	.help = "runs to select: '*' matches any part, and trailing parts may be omitted; labels " \
		"and ids of configurations are also accepted"
#define RFL_MATRIX_SHARD                \
	.name = "shard", .meta = "I/N", \
	.help = "select every N-th run, starting with run I (counted from 0)"

#define RFL_MATRIX_RETRY_FAILED \
	.name = "retry-failed", \
	.help = "also repeat failed runs; interrupted runs are always repeated"
#define RFL_MATRIX_SHARE_DEVICE \
	.name = "share-device", .help = "do not wait for other matrix runs on the same CPU or GPU"
#define RFL_MATRIX_DRY_RUN .name = "dry-run", .help = "print the commands without running them"

/* ---- the file ---- */

/** A matrix and the selected runs. */
struct rfl_matrix_pick {
	struct rfl_matrix *m;
	size_t n;
	size_t *runs;
};

/** Load a matrix and check that 'roofline run' accepts the options of every cell.
 * @return RFL_OK; RFL_EFORMAT with the file, the JSON path and the fix */
enum rfl_rc rfl_cli_matrix_load(const struct rfl_cli *cli, const char *path,
				struct rfl_matrix **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Load a matrix and select runs.
 * @param shard  I/N, the part of the runs that match `only`; NULL: all of them
 * @param ret    release with rfl_matrix_pick_fini() in any case; cli->arena owns the list of runs
 * @return RFL_OK; RFL_EFORMAT for an error in the file; RFL_EUSAGE for one in `only` or `shard`
 */
enum rfl_rc rfl_cli_matrix_pick(struct rfl_cli *cli, const char *path,
				const struct rfl_opt_list *only, const char *shard,
				struct rfl_matrix_pick *ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_matrix_pick_fini(struct rfl_matrix_pick *p);

/** How to execute runs. Strings are borrowed. */
struct rfl_matrix_execution {
	const char *log_dir;
	const char *done_in; /**< log directory of runs that need not be executed; NULL: none */
	int64_t shuffle;     /**< random seed; -1: in the order of the file */
	bool retry_failed, share_device;
	bool dry_run; /**< print the commands only */
	/** Print nothing, and do not fail if a run is not ok: the caller reads the ledger. */
	bool quiet;
};

/** Execute the selected runs that have no row (matrix_run.c).
 * @return RFL_OK; RFL_EINTR: stopped by a signal; RFL_EFAILED: a run is not ok */
enum rfl_rc rfl_cli_matrix_execute(struct rfl_cli *cli, const struct rfl_matrix_pick *pick,
				   const struct rfl_matrix_execution *how,
				   struct rfl_err *err) RFL_WARN_UNUSED;

/** The cell of a run. @param label set to the label of the run; may be NULL */
const struct rfl_matrix_cell *rfl_cli_matrix_cell(const struct rfl_matrix *m, size_t run,
						  char label[RFL_LABEL_MAX + 1]);

/** Parse the options of a cell. Strings of the configuration belong to the cell.
 * @param more  two further arguments; NULL: none */
enum rfl_rc rfl_cli_matrix_config(const struct rfl_cli *cli, const struct rfl_matrix_cell *cell,
				  const char *const more[2], struct rfl_run_config *ret,
				  struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the command line of a run, quoted for a shell. */
void rfl_cli_matrix_command(const struct rfl_matrix *m, size_t run, const char *log_dir,
			    struct rfl_buf *out);

/** Numbers that cells share, in order of appearance. */
struct rfl_matrix_alike {
	size_t table; /**< of the same environment and precision */
	size_t model; /**< and of the same model */
};

/** One element per cell; the caller frees it. */
struct rfl_matrix_alike *rfl_matrix_alike(const struct rfl_matrix *m) RFL_WARN_UNUSED;

/** The runs of a matrix in a log directory. */
struct rfl_matrix_view {
	char path[4096]; /**< path of the ledger */
	size_t size;     /**< its size before it was read; 0: there is none yet */
	bool partial;    /**< only the rows after `since` were read */
	struct rfl_matrix_coverage cover;
	struct rfl_ledger *ledger; /**< owns the rows of `cover`; NULL: they are not kept */
};

/** @param since  read only the rows that were appended since the ledger had this size, if it has
 *                not been replaced; 0: all rows
 * @param ret  release with rfl_matrix_view_fini() in any case */
enum rfl_rc rfl_cli_matrix_view(const struct rfl_matrix *m, const char *log_dir, size_t since,
				struct rfl_matrix_view *ret, struct rfl_err *err) RFL_WARN_UNUSED;
/** As above, with all rows and columns. */
enum rfl_rc rfl_cli_matrix_view_rows(const struct rfl_matrix *m, const char *log_dir,
				     struct rfl_matrix_view *ret,
				     struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_matrix_view_fini(struct rfl_matrix_view *v);

/* ---- tables (matrix_status.c) ---- */

/** Counts of the selected runs of a cell; `surplus` is the number of ok rows beyond one per run. */
struct rfl_matrix_share {
	size_t asked, done, failed, surplus;
};

/** Render a table for each environment and precision: a row per model, a column per batch size.
 * @param shares  one element per cell; cells without selected runs are omitted */
void rfl_matrix_grid_render(const struct rfl_matrix *m, const struct rfl_matrix_share *shares,
			    enum rfl_format format, struct rfl_buf *out);

/** A run that is not done. Strings are borrowed. */
struct rfl_matrix_gap {
	size_t run;
	const char *status, *reason; /**< NULL: unknown */
};

/** Render a table with a row for each status and reason, in order of appearance: the first labels
 * and the number of runs. @param n  number of gaps; if 0, nothing is written */
void rfl_matrix_gaps_render(const struct rfl_matrix *m, const struct rfl_matrix_gap *gaps, size_t n,
			    enum rfl_format format, struct rfl_buf *out);

/* ---- remaining time ---- */

/** Sums of known times. */
struct rfl_matrix_left {
	const struct rfl_matrix *m;
	struct rfl_matrix_alike *alike;
	struct rfl_matrix_known {
		double seconds, amount; /**< amount: number of runs or samples */
	} * known;
};

/** @param ret  release with rfl_matrix_left_fini() in any case */
void rfl_matrix_left_init(const struct rfl_matrix *m, struct rfl_matrix_left *ret);
void rfl_matrix_left_fini(struct rfl_matrix_left *l);

/** Add the time that a run of a cell took; NaN is ignored. */
void rfl_matrix_left_add(struct rfl_matrix_left *l, size_t cell, double seconds);

/** Expected time of a run of a cell in seconds: the average over the runs of the cell, else over
 * the samples of its model (per sample), else over all runs. NaN: unknown. */
double rfl_matrix_left_cell(const struct rfl_matrix_left *l, size_t cell);

#endif
