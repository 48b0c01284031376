/* project.h - where a project has its files: roofline.json in the current directory or one above it
 * names the directories; without it, the usual names in the current directory are used. */
#ifndef RFL_CLI_PROJECT_H
#define RFL_CLI_PROJECT_H

#include <stdbool.h>

#include "base/err.h"

#define RFL_PROJECT_VALUES 11

/** Initialise with zeros and the arena. */
struct rfl_project {
	bool looked;             /**< the search for the file is done */
	bool announced;          /**< the path was logged */
	const char *path;        /**< NULL: no file */
	struct rfl_arena *arena; /**< owns the texts */
	struct {
		const char *text; /**< NULL: none */
		bool given;       /**< the file has the key */
	} values[RFL_PROJECT_VALUES];
};

/**
 * Return a value of the project: "env", or a path, whether or not it exists: "log_dir", "metrics",
 * "counters", "records" (the log directory), "summary" (of 'roofline complexity'), "peaks",
 * "output_dir", "points", "figures" (a directory) or "report". The file is read at the first call.
 * @param ret  owned by `p`; NULL only for "env"
 * @return RFL_OK; RFL_EFORMAT with file, key and fix
 */
enum rfl_rc rfl_project_path(struct rfl_project *p, const char *value, const char **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** The same, but NULL unless the file has the key. */
enum rfl_rc rfl_project_given(struct rfl_project *p, const char *value, const char **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** The path without a project file: "logs/metrics.csv"; NULL for "env". */
const char *rfl_project_usual(const char *value);

/** The path of a value if `key`, "log_dir" or "output_dir", is another directory; NULL: it is not
 * in the directory of this key. Owned by `arena`. */
const char *rfl_project_below(const char *key, const char *dir, const char *value,
			      struct rfl_arena *arena);

/** Whether the file exists; for "records", whether the directory has any. */
bool rfl_project_has(const char *value, const char *path, struct rfl_arena *arena);

/** The log directory that a study names (cmd/study.c). Owned by `arena`; NULL: none. */
const char *rfl_study_logs(const char *path, struct rfl_arena *arena);

#endif
