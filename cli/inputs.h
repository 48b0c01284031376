/*
 * inputs.h - inside cli/: inputs that several commands share: runs of a metrics.csv, ours or
 * another program's, ceilings, and the location of libcupti.
 */
#ifndef RFL_CLI_INPUTS_H
#define RFL_CLI_INPUTS_H

#include "base/log.h"
#include "cli/cmd.h"
#include "ledger/repeats.h"
#include "ledger/runs.h"
#include "peaks/peaks.h"
#include "profile/cupti/lib.h"
#include "roofline/points.h"

/** The row of --map, a LIST. */
#define RFL_OPT_MAP                                \
	.name = "map", .meta = "FILE|NAME=COLUMN", \
	.help = "map another program's column names to ours"

/** A LIST that chooses rows by one fact. @param what  plural, for the help */
#define RFL_OPT_ONLY(fact, what) .name = (fact), .meta = "NAME", .help = "only these " what

/** Check that a file exists. @return RFL_EIO with the command that creates it */
enum rfl_rc rfl_cli_need_file(const char *path, const char *made_by,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Options by which `summary` and `compare` choose runs. */
struct rfl_cli_runs_args {
	struct rfl_opt_list metrics, map, env, model, precision;
	int metric; /**< index of rfl_ledger_metrics */
};

/** Read the files, and log how the columns of other programs' tables were read. */
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

/** rfl_peaks_load(); a missing file is reported with the command that makes it. */
enum rfl_rc rfl_cli_load_peaks(const char *path, struct rfl_peaks **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Log the doubts of 'roofline peaks check' about the environments of the points.
 * @param envs  only these; an empty list: all */
void rfl_cli_warn_doubts(const struct rfl_peaks *peaks, const struct rfl_points *points,
			 const struct rfl_opt_list *envs);

/** RFL_CUPTI_PATH; CUDA_HOME or CUDA_PATH; the PyTorch of the engine. The texts belong to the
 * environment and the program. */
struct rfl_cupti_places rfl_cli_places(void);

#endif
