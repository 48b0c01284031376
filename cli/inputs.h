/* inputs.h - inside cli/: load inputs for several commands, and locate libcupti. */
#ifndef RFL_CLI_INPUTS_H
#define RFL_CLI_INPUTS_H

#include "base/log.h"
#include "cli/cmd.h"
#include "complexity/peer.h"
#include "ledger/repeats.h"
#include "ledger/runs.h"
#include "peaks/peaks.h"
#include "profile/cupti/lib.h"
#include "roofline/points.h"

/** The option row of --map; its kind is LIST. */
#define RFL_OPT_MAP                                \
	.name = "map", .meta = "FILE|NAME=COLUMN", \
	.help = "column mappings for tables of other programs, or files with such mappings"

/** The option row of a LIST that selects runs by one column. @param what a plural, for the help
 * text */
#define RFL_OPT_ONLY(fact, what) \
	.name = (fact), .meta = "NAME", .help = what " to select; default: all"

/** Check that a file exists. @return RFL_OK; RFL_EIO with the command that creates it */
enum rfl_rc rfl_cli_need_file(const char *path, const char *made_by,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** The command that creates a file with the project's "peaks" or "points". */
const char *rfl_cli_made_by(const char *value, const char *path);

/** Options with which `summary` and `compare` select runs. */
struct rfl_cli_runs_args {
	struct rfl_opt_list metrics, map, env, model, precision;
	int metric;  /**< index of rfl_ledger_metrics */
	bool losses; /**< see struct rfl_repeats_options */
};

/** Read the words of --map. @param ret  NULL without any; release with rfl_column_map_free() */
enum rfl_rc rfl_cli_read_map(const struct rfl_opt_list *words, struct rfl_column_map **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** Load the runs, and log how the columns of tables of other programs were interpreted. */
enum rfl_rc rfl_cli_load_runs(const char *const *paths, size_t npaths,
			      const struct rfl_opt_list *map,
			      const struct rfl_ledger_metric *metric, enum rfl_rows rows,
			      struct rfl_runs **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Load the repeats of the selected runs. @param runs the runs in the files; loaded if NULL
 * @param envs  environments to select; none: all */
enum rfl_rc rfl_cli_load_repeats(const char *const *paths, size_t npaths,
				 const struct rfl_cli_runs_args *a, const char *const *envs,
				 size_t nenvs, enum rfl_rows rows, struct rfl_runs **runs,
				 struct rfl_repeats **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Log the lines of a text one by one. */
void rfl_cli_log_lines(enum rfl_log_level level, const char *lines);

/** rfl_peaks_load(), but for a missing file the error message has the command that creates it. */
enum rfl_rc rfl_cli_load_peaks(const char *path, struct rfl_peaks **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** The same, but a file of another tool (rfl_peaks_import_load()) has the ceilings of `env`.
 * @param env        NULL: the environment is named after the file
 * @param precision  of roofs in files that do not name it; may be NULL */
enum rfl_rc rfl_cli_load_roofs(const char *path, const char *env, const char *precision,
			       struct rfl_peaks **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Load another program's table with intensities and rates (rfl_foreign_numbers()) and the
 * ceilings for its points. All stay as they are if the file is something else, or a pipe, which can
 * only be read once.
 * @param env    the names of --env
 * @param roofs  the peaks file; NULL: `path` if it has roofs, else `usual`; set to what was read */
enum rfl_rc rfl_cli_load_table(const char *path, const struct rfl_opt_list *map,
			       const struct rfl_opt_list *env, const char *usual,
			       const char **roofs, struct rfl_peaks **peaks,
			       struct rfl_points **points, struct rfl_err *err) RFL_WARN_UNUSED;

/** The environment of points that name none; NULL: it must be given. */
const char *rfl_cli_only_env(const struct rfl_opt_list *env, const struct rfl_peaks *peaks);

/** The same for points. */
enum rfl_rc rfl_cli_load_points(const char *path, struct rfl_points **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Find the counter of --as; NULL: not given. @return RFL_OK; RFL_EUSAGE */
enum rfl_rc rfl_cli_find_peer(const char *as, const struct rfl_peer **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** List the records of environments in a log directory: env.json, and the records of other machines
 * in env/.
 * @param arena  owns the list */
enum rfl_rc rfl_cli_records(const char *log_dir, struct rfl_arena *arena, const char ***ret,
			    size_t *n, struct rfl_err *err) RFL_WARN_UNUSED;

/** The directories in which to look for NVIDIA's libraries. The strings are borrowed from the
 * environment variables and from `cli`. */
struct rfl_cupti_places rfl_cli_places(const struct rfl_cli *cli);

#endif
