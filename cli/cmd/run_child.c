/*
 * run/child.c - the child behind `roofline run`: configuration on standard input, reports on
 * descriptor 3. Not shown in the help.
 */
#include "cli/cmd.h"

#include <unistd.h>

#include "base/log.h"
#include "runner/run.h"

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	struct rfl_err told = RFL_ERR_INIT;

	(void)cli, (void)args, (void)err;
	if (rfl_run_child(STDIN_FILENO, RFL_RUN_REPORT_FD, &told) == RFL_OK)
		return RFL_OK;
	rfl_log(RFL_LOG_DEBUG, "%s", told.msg);
	return RFL_EFAILED; /* without a message: the parent has it, and says it once */
}

const struct rfl_cmd rfl_cmd_run_child = {
	.name = "run-child",
	.summary = "measure one run for 'roofline run', which starts it",
	.operands_offset = -1,
	.hidden = true,
	.run = run,
};
