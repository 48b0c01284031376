/*
 * runs_args.h - the options by which commands read runs from a metrics.csv, ours or another
 * program's.
 */
#ifndef RFL_CLI_RUNS_ARGS_H
#define RFL_CLI_RUNS_ARGS_H

#include "base/log.h"
#include "cli/cmd.h"
#include "ledger/repeats.h"
#include "ledger/runs.h"

/** The row of --map. @param at  offset of a struct rfl_opt_list */
#define RFL_OPT_MAP_ROW(at)                                                                      \
	{                                                                                        \
		.name = "map", .meta = "FILE|NAME=COLUMN", .kind = RFL_OPT_LIST, .offset = (at), \
		.help = "map another program's column names to ours"                             \
	}

/** An option that chooses rows by one fact. @param what  plural, for the help */
#define RFL_OPT_ONLY_ROW(fact, what, at)                                              \
	{                                                                             \
		.name = (fact), .meta = "NAME", .kind = RFL_OPT_LIST, .offset = (at), \
		.help = "only these " what                                            \
	}

/** What `summary` and `compare` choose runs by. */
struct rfl_cli_runs_args {
	struct rfl_opt_list metrics, map, env, model, precision;
	int metric; /**< index of rfl_ledger_metrics */
};

/** Read the files, and log how the columns of other programs' tables were read. RFL_EIO names the
 * command that makes a file which is missing. */
enum rfl_rc rfl_cli_load_runs(const char *const *paths, size_t npaths,
			      const struct rfl_opt_list *map,
			      const struct rfl_ledger_metric *metric, enum rfl_rows rows,
			      struct rfl_runs **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The repeats of the chosen runs. @param runs  those of the files; read when NULL
 * @param envs  only these environments; none: all */
enum rfl_rc rfl_cli_load_repeats(const char *const *paths, size_t npaths,
				 const struct rfl_cli_runs_args *a, const char *const *envs,
				 size_t nenvs, enum rfl_rows rows, struct rfl_runs **runs,
				 struct rfl_repeats **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Log lines, one by one. */
void rfl_cli_log_lines(enum rfl_log_level level, const char *lines);

#endif
