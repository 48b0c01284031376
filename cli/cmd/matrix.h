/*
 * matrix.h - inside cli/: what the commands of a run matrix share: the checked file, the runs that
 * were chosen, and what a log folder has of them.
 */
#ifndef RFL_CLI_MATRIX_H
#define RFL_CLI_MATRIX_H

#include "cli/cmd.h"
#include "ledger/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Option rows that several of them have. `at` is the offset of the member. */
#define RFL_MATRIX_LOG_DIR_ROW(at)                                                      \
	{                                                                               \
		.name = "log-dir", .meta = "DIR", .kind = RFL_OPT_TEXT, .offset = (at), \
		.def = "logs", .help = "where metrics.csv is, or will be"               \
	}
#define RFL_MATRIX_ONLY_ROW(at)                                                                \
	{                                                                                      \
		.name = "only", .meta = "ENV/MODEL/PRECISION/BATCH", .kind = RFL_OPT_LIST,     \
		.offset = (at),                                                                \
		.help = "these runs: parts may be '*' or left out at the end; or a label, or " \
			"the id of a cell"                                                     \
	}
#define RFL_MATRIX_SHARD_ROW(at)                                                      \
	{                                                                             \
		.name = "shard", .meta = "I/N", .kind = RFL_OPT_TEXT, .offset = (at), \
		.help = "every N-th run, from the I-th; I counts from 0"              \
	}

/** The runs that a command is for, as numbers in the order of rfl_matrix_coverage. */
struct rfl_matrix_pick {
	size_t n;
	size_t *runs;
};

/** A matrix beside its ledger. */
struct rfl_matrix_view {
	char path[4096];                  /**< of the ledger */
	struct rfl_ledger *ledger;        /**< NULL: there is none yet */
	struct rfl_matrix_coverage cover; /**< borrows from it */
};

/**
 * Load a matrix and check that every run of it could be asked for: options that exist, with values
 * that they take.
 * @return RFL_OK; RFL_EFORMAT naming file, JSON path and the fix
 */
enum rfl_rc rfl_cli_matrix_load(const struct rfl_cli *cli, const char *path,
				struct rfl_matrix **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The runs that --only and --shard choose; the shard is of what --only leaves.
 * @param ret  release with rfl_matrix_pick_fini() in any case
 * @return RFL_OK; RFL_EUSAGE
 */
enum rfl_rc rfl_cli_matrix_pick(const struct rfl_matrix *m, const struct rfl_opt_list *only,
				const char *shard, struct rfl_matrix_pick *ret,
				struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_matrix_pick_fini(struct rfl_matrix_pick *p);

/** What a log folder has. @param ret  release with rfl_matrix_view_fini() in any case */
enum rfl_rc rfl_cli_matrix_view(const struct rfl_matrix *m, const char *log_dir,
				struct rfl_matrix_view *ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_matrix_view_fini(struct rfl_matrix_view *v);

/**
 * The arguments of a cell for rfl_run_request_parse(): argv[0] is NULL, and behind them there is
 * room for `more`.
 * @param argc  counts argv[0], and not that room
 * @return for free(), the texts are the cell's; NULL: out of memory
 */
char **rfl_cli_matrix_argv(const struct rfl_matrix_cell *cell, size_t more,
			   int *argc) RFL_WARN_UNUSED;

/** The whole command line of a run, quoted for a shell. */
void rfl_cli_matrix_command(const struct rfl_matrix *m, size_t run, const char *log_dir,
			    struct rfl_buf *out);

/** A word as a shell reads it back: as it is, or in quotes. */
void rfl_cli_shell_word(const char *word, struct rfl_buf *out);

#ifdef __cplusplus
}
#endif
#endif
