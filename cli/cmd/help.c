/*
 * help.c - roofline help: the same pages as --help, the page for docs/, and the manual pages.
 */
#include "cli/cmd.h"

#include "cli/opt/help.h"
#include "cli/put.h"

struct help_args {
	bool markdown;
	const char *man;
	struct rfl_opt_list words;
};

static const struct rfl_opt opts[] = {
	{ .name = "markdown",
	  .kind = RFL_OPT_FLAG,
	  .offset = offsetof(struct help_args, markdown),
	  .hidden = true,
	  .help = "print the reference of all commands as docs/commands.md" },
	{ .name = "man",
	  .meta = "DIR",
	  .kind = RFL_OPT_TEXT,
	  .offset = offsetof(struct help_args, man),
	  .hidden = true,
	  .help = "write the manual pages into a folder" },
	{ .name = NULL },
};

static enum rfl_rc print_markdown(struct rfl_cli *cli, struct rfl_err *err)
{
	struct rfl_buf page;
	enum rfl_rc rc;

	rfl_buf_init(&page, 0);
	rfl_help_markdown(&page);
	rc = rfl_cli_put(cli, &page, "the page of all commands", err);
	rfl_buf_fini(&page);
	return rc;
}

/* A command by its full name, or a group by its first word. */
static enum rfl_rc print_named(struct rfl_cli *cli, const char *name, struct rfl_err *err)
{
	const struct rfl_cmd *cmd = rfl_cmd_find(name);

	if (cmd)
		rfl_cmd_help(cli->out, cmd);
	else if (rfl_cmd_is_group(name))
		rfl_help_group(cli->out, name);
	else
		return rfl_cli_unknown_command(name, err);
	return RFL_OK;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct help_args *a = args;
	struct rfl_buf name;
	enum rfl_rc rc;

	if (a->man)
		return rfl_help_man(a->man, err);
	if (a->markdown)
		return print_markdown(cli, err);
	if (a->words.n == 0) {
		rfl_help_overview(cli->out);
		return RFL_OK;
	}
	rfl_buf_init(&name, 0);
	for (size_t i = 0; i < a->words.n; i++)
		rfl_buf_printf(&name, "%s%s", i > 0 ? " " : "", a->words.items[i]);
	rc = rfl_buf_check(&name, "command line", err);
	if (rc == RFL_OK)
		rc = print_named(cli, rfl_buf_str(&name), err);
	rfl_buf_fini(&name);
	return rc;
}

const struct rfl_cmd rfl_cmd_help_page = {
	.name = "help",
	.summary = "explain the program or one of its commands",
	.operands = "[COMMAND...]",
	.example = "roofline help peaks measure",
	.opts = opts,
	.args_size = sizeof(struct help_args),
	.operands_offset = offsetof(struct help_args, words),
	.run = run,
};
