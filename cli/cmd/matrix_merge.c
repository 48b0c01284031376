/*
 * matrix_merge.c - roofline matrix merge: the rows that tasks wrote apart, in one log folder.
 */
#include "cli/cmd/matrix.h"

#include <stdlib.h>

#include "base/file.h"
#include "ledger/matrix/merge.h"

struct merge_args {
	struct rfl_opt_list operands;
	const char *log_dir;
};

#define AT(member) offsetof(struct merge_args, member)

static const struct rfl_opt opts[] = {
	RFL_MATRIX_LOG_DIR_ROW(AT(log_dir)),
	{ .name = NULL },
};

/* The folders that are named, or all of LOG-DIR/tasks. */
static enum rfl_rc merge(const struct merge_args *a, struct rfl_merge *sum, struct rfl_err *err)
{
	char *tasks = NULL, **folders = NULL;
	size_t n = 0;
	enum rfl_rc rc;

	for (size_t i = 1; i < a->operands.n; i++)
		if (!rfl_dir_exists(a->operands.items[i]))
			return rfl_fail(err, RFL_EIO, 0, "%s: there is no such folder",
					a->operands.items[i]);
	if (a->operands.n > 1)
		return rfl_ledger_merge(a->operands.items + 1, a->operands.n - 1, a->log_dir, sum,
					err);
	tasks = rfl_path_join(a->log_dir, "tasks");
	if (!tasks)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", a->log_dir);
	rc = rfl_merge_folders(tasks, &folders, &n, err);
	if (rc == RFL_OK && n == 0)
		rc = rfl_fail(err, RFL_EIO, 0,
			      "%s: there are no folders of tasks; the script of 'roofline matrix "
			      "slurm' makes them, or name folders after the matrix",
			      tasks);
	if (rc == RFL_OK)
		rc = rfl_ledger_merge((const char *const *)folders, n, a->log_dir, sum, err);
	rfl_merge_folders_free(folders);
	free(tasks);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct merge_args *a = args;
	struct rfl_matrix_view view = { .ledger = NULL };
	struct rfl_matrix *m = NULL;
	struct rfl_merge sum;
	enum rfl_rc rc = rfl_cli_matrix_load(cli, a->operands.items[0], &m, err);

	if (rc == RFL_OK)
		rc = merge(a, &sum, err);
	if (rc == RFL_OK)
		rc = rfl_cli_matrix_view(m, a->log_dir, &view, err);
	if (rc)
		goto done;
	rfl_cli_printf(cli,
		       "%zu rows added, %zu were there; %zu files added, %zu were there; from %zu "
		       "%s\n",
		       sum.rows, sum.rows_there, sum.files, sum.files_there, sum.folders,
		       sum.folders == 1 ? "folder" : "folders");
	if (sum.empty)
		rfl_cli_printf(cli, "without a ledger yet: %zu\n", sum.empty);
	if (view.cover.surplus)
		rfl_cli_printf(cli,
			       "%zu ok rows more than asked for; 'roofline matrix status %s "
			       "--log-dir %s' names them\n",
			       view.cover.surplus, m->path, a->log_dir);
	rfl_cli_printf(cli, "%s: %zu of %zu runs ok\n", m->name, view.cover.done, view.cover.nruns);
done:
	rfl_matrix_view_fini(&view);
	rfl_matrix_free(m);
	return rc;
}

const struct rfl_cmd rfl_cmd_matrix_merge = {
	.name = "matrix merge",
	.summary = "merge the rows of tasks into one log folder",
	.operands = "FILE [DIR...]",
	.description =
		"Copies metrics.csv, counters.csv, steps/, time/ and the records of machines from "
		"the folders DIR, or from all folders in tasks/ of the log folder, into the log "
		"folder. What is there already stays as it is: repeat the command as tasks end. "
		"The folders do not change.",
	.example = "roofline matrix merge matrix.json\n"
		   "roofline matrix merge matrix.json logs-0 logs-1 --log-dir logs",
	.opts = opts,
	.args_size = sizeof(struct merge_args),
	.operands_offset = AT(operands),
	.run = run,
};
