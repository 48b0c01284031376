/*
 * completion.c - roofline completion: a script for the shell, made from the option rows.
 */
#include "cli/cmd.h"

#include <string.h>

#include "cli/opt/help.h"
#include "cli/put.h"

struct completion_args {
	struct rfl_opt_list shell;
};

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct completion_args *a = args;
	struct rfl_buf script;
	enum rfl_rc rc;

	if (strcmp(a->shell.items[0], "bash") != 0)
		return rfl_fail(err, RFL_EUSAGE, 0, "'%s' is not one of bash", a->shell.items[0]);
	rfl_buf_init(&script, 0);
	rfl_help_bash(&script);
	rc = rfl_cli_put(cli, &script, "completion script", err);
	rfl_buf_fini(&script);
	return rc;
}

const struct rfl_cmd rfl_cmd_completion = {
	.name = "completion",
	.summary = "print a completion script for the shell",
	.operands = "bash",
	.example = "source <(roofline completion bash)",
	.args_size = sizeof(struct completion_args),
	.operands_offset = offsetof(struct completion_args, shell),
	.run = run,
};
