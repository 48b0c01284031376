/*
 * matrix_loop.h - inside cli/: the runs of a matrix one after the other, each in its process. What
 * is chosen and what is said at the end is cmd/matrix_run.c's.
 */
#ifndef RFL_CLI_MATRIX_RUN_H
#define RFL_CLI_MATRIX_RUN_H

#include "cli/cmd/matrix.h"
#include "cli/cmd/matrix_left.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_matrix_job {
	struct rfl_cli *cli;
	const struct rfl_matrix *m;
	const char *log_dir;
	const char *done_in; /**< another log folder whose ok rows count as well; NULL: none */
	bool retry_failed;
	bool share_device; /**< do not wait for other timed runs */
	size_t n;          /**< runs to be done */
	size_t *runs;      /**< in the order in which they are done */

	/* what became of it */
	size_t finished; /**< of n, by us or by another process */
	bool stopped;    /**< a signal came */
	char **refusals; /**< per run of the matrix: why it could not begin and has no row, or NULL
			  */

	/* of the loop */
	int claims;
	size_t *failures; /**< per run: failed rows when the job was planned */
	char *told;       /**< the reason of a run that is not ok that was logged last */
	struct rfl_matrix_left left;
	char prefix[160];
};

/**
 * Find out which of the chosen runs are to be done: those that are missing, those that were
 * interrupted, and with retry_failed those that failed.
 * @param job  its first members are filled; release with rfl_matrix_job_fini() in any case
 */
enum rfl_rc rfl_matrix_job_plan(struct rfl_matrix_job *job, const struct rfl_matrix_pick *pick,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Another order within each repeat, by a seed. */
void rfl_matrix_job_shuffle(struct rfl_matrix_job *job, uint64_t seed);

/**
 * Look at the folders of data that the planned runs read, before the first begins: runs that would
 * find theirs wanting are refused together, and are not among those to be done any more.
 */
enum rfl_rc rfl_matrix_job_check(struct rfl_matrix_job *job, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Do them. A run that fails does not keep the others back.
 * @return RFL_OK, whatever became of the runs; RFL_EIO when a row could not be written
 */
enum rfl_rc rfl_matrix_job_run(struct rfl_matrix_job *job, struct rfl_err *err) RFL_WARN_UNUSED;

void rfl_matrix_job_fini(struct rfl_matrix_job *job);

#ifdef __cplusplus
}
#endif
#endif
