/* project.h - defaults of a project: the file roofline.json in the current folder or one above it.
 */
#ifndef RFL_CLI_PROJECT_H
#define RFL_CLI_PROJECT_H

#include <stdbool.h>

#include "base/err.h"

#define RFL_PROJECT_VALUES 5

/** Initialise with zeros. */
struct rfl_project {
	bool looked;             /**< the search for the file is done */
	bool announced;          /**< the path was logged */
	const char *path;        /**< NULL: no file */
	struct rfl_arena *arena; /**< owns the texts */
	struct {
		const char *option, *text; /**< text NULL: not given */
	} values[RFL_PROJECT_VALUES];
};

/**
 * Return the project's value of --env, --log-dir, --peaks, --metrics (metrics.csv in the log
 * folder) or "env FILE" (env.json in the log folder, if it exists). The file is read at the first
 * call.
 * @param ret  owned by `p`; NULL if there is no project or it has no such value
 * @return RFL_OK; RFL_EFORMAT with file, key and fix
 */
enum rfl_rc rfl_project_value(struct rfl_project *p, const char *option, const char **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_project_fini(struct rfl_project *p);

#endif
