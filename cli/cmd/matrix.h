/*
 * matrix.h - inside cli/: shared by the commands of a run matrix.
 *
 * A run is a number in the order of rfl_matrix_coverage: run i is cell i % ncells in repeat
 * i / ncells + 1.
 */
#ifndef RFL_CLI_MATRIX_H
#define RFL_CLI_MATRIX_H

#include "cli/cmd.h"
#include "ledger/matrix.h"

/* Option rows of several commands: a TEXT, a LIST and a TEXT. */
#define RFL_MATRIX_LOG_DIR \
	.name = "log-dir", .meta = "DIR", .def = "logs", .help = "folder of metrics.csv"
#define RFL_MATRIX_ONLY                                                                          \
	.name = "only", .meta = "ENV/MODEL/PRECISION/BATCH",                                     \
	.help = "only these runs: '*' matches any part, trailing parts may be omitted; a label " \
		"or cell id also works"
#define RFL_MATRIX_SHARD                \
	.name = "shard", .meta = "I/N", \
	.help = "take every N-th run, starting with run I (counted from 0)"

/* ---- the file ---- */

static inline enum rfl_rc rfl_matrix_no_memory(const struct rfl_matrix *m, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
}

/** A matrix and the chosen runs. */
struct rfl_matrix_pick {
	struct rfl_matrix *m;
	size_t n;
	size_t *runs;
};

/** Load a matrix and check that 'roofline run' accepts the options of every cell.
 * @return RFL_OK; RFL_EFORMAT naming file, JSON path and the fix */
enum rfl_rc rfl_cli_matrix_load(const struct rfl_cli *cli, const char *path,
				struct rfl_matrix **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Load a matrix and choose runs.
 * @param shard  of the runs that `only` chooses; NULL: all of them
 * @param ret    release with rfl_matrix_pick_fini() in any case
 * @return RFL_OK; RFL_EFORMAT for the file; RFL_EUSAGE for only and shard
 */
enum rfl_rc rfl_cli_matrix_pick(const struct rfl_cli *cli, const char *path,
				const struct rfl_opt_list *only, const char *shard,
				struct rfl_matrix_pick *ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_matrix_pick_fini(struct rfl_matrix_pick *p);

/** The cell of a run. @param label  its label is written there; NULL: not wanted */
const struct rfl_matrix_cell *rfl_cli_matrix_cell(const struct rfl_matrix *m, size_t run,
						  char label[RFL_LABEL_MAX + 1]);

/**
 * The arguments of a cell for rfl_run_config_parse(): argv[0] is NULL, and there is room for `more`
 * arguments at the end.
 * @param argc  number of arguments, with argv[0]
 * @return release with free(), the texts belong to the cell; NULL: out of memory
 */
char **rfl_cli_matrix_argv(const struct rfl_matrix_cell *cell, size_t more,
			   int *argc) RFL_WARN_UNUSED;

/** The whole command line of a run, quoted for a shell. */
void rfl_cli_matrix_command(const struct rfl_matrix *m, size_t run, const char *log_dir,
			    struct rfl_buf *out);

/** Quote a word for a shell, if needed. */
void rfl_cli_shell_word(const char *word, struct rfl_buf *out);

/** Cells are alike when environment and precision are equal, or the model as well. */
enum rfl_matrix_likeness { RFL_ALIKE_TABLE, RFL_ALIKE_MODEL, RFL_ALIKE_COUNT };

struct rfl_matrix_alike {
	size_t first[RFL_ALIKE_COUNT]; /**< index of the first cell that is alike, maybe itself */
};

/** @param ret  one per cell */
enum rfl_rc rfl_matrix_alike(const struct rfl_matrix *m, struct rfl_matrix_alike *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** The rows of a matrix in a log folder. */
struct rfl_matrix_view {
	char path[4096];                  /**< of the ledger */
	struct rfl_ledger *ledger;        /**< NULL: there is none yet */
	struct rfl_matrix_coverage cover; /**< borrows from it */
};

/** @param ret  release with rfl_matrix_view_fini() in any case */
enum rfl_rc rfl_cli_matrix_view(const struct rfl_matrix *m, const char *log_dir,
				struct rfl_matrix_view *ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_matrix_view_fini(struct rfl_matrix_view *v);

/* ---- tables (matrix_status.c) ---- */

/** Counts of the chosen runs of a cell; surplus: ok rows beyond one per run. */
struct rfl_matrix_share {
	size_t asked, done, failed, surplus;
};

/** For each environment and precision a table: models down, batch sizes across.
 * @param shares  one per cell; cells without chosen runs are left out */
enum rfl_rc rfl_matrix_grid_render(const struct rfl_matrix *m,
				   const struct rfl_matrix_share *shares, enum rfl_format format,
				   struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** A run that is not done. Texts are borrowed. */
struct rfl_matrix_gap {
	size_t run;
	const char *status, *reason; /**< NULL: not known */
};

/**
 * A table with a row for each status and reason: the first labels, how many runs. Rows are in the
 * order of the first run of each.
 * @param gaps  are sorted; n 0: nothing is written
 */
enum rfl_rc rfl_matrix_gaps_render(const struct rfl_matrix *m, struct rfl_matrix_gap *gaps,
				   size_t n, enum rfl_format format, struct rfl_buf *out,
				   struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- the time that is left ---- */

/** The sum of known times, and the number of samples or runs that took them. */
struct rfl_matrix_known {
	double seconds, amount;
};

/** Sums of known times. */
struct rfl_matrix_left {
	const struct rfl_matrix *m;
	struct rfl_matrix_alike *alike;
	struct rfl_matrix_known *of_cell;  /**< of the runs of each cell */
	struct rfl_matrix_known *of_model; /**< per sample, at the first cell that is alike */
	struct rfl_matrix_known of_all;    /**< of all runs */
};

/** @param ret  release with rfl_matrix_left_fini() in any case */
enum rfl_rc rfl_matrix_left_init(const struct rfl_matrix *m, struct rfl_matrix_left *ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_matrix_left_fini(struct rfl_matrix_left *l);

/** A run of a cell took this long; NaN is ignored. */
void rfl_matrix_left_add(struct rfl_matrix_left *l, size_t cell, double seconds);

/** Expected seconds of a run of a cell: the average of the cell's runs, else of its model per
 * sample, else of all runs. NaN: no run is known. */
double rfl_matrix_left_cell(const struct rfl_matrix_left *l, size_t cell);

#endif
