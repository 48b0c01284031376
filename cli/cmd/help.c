/* help.c - roofline help: print help pages. */
#include "cli/cmd.h"

#include <string.h>

#include "cli/opt/opt.h"

struct help_args {
	struct rfl_opt_list words;
	bool markdown;
	const char *man;
};

#define OPT(kind, member, ...) RFL_OPT(struct help_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(FLAG, markdown, .name = "markdown", .hidden = true,
	    .help = "print docs/reference/commands.md, the reference of all commands"),
	OPT(TEXT, man, .name = "man", .meta = "DIR", .hidden = true,
	    .help = "directory to which the manual pages are written"),
	{ .name = NULL },
};

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct help_args *a = args;
	const struct rfl_cmd *cmd;
	RFL_AUTO(buf) text = { .len = 0 };
	const char *name;

	if (a->man)
		return rfl_help_man(a->man, err);
	if (a->markdown) {
		rfl_help_markdown(&text);
		return rfl_cli_put(cli, &text, "reference", err);
	}
	for (size_t i = 0; i < a->words.n; i++)
		rfl_buf_printf(&text, "%s%s", i > 0 ? " " : "", a->words.items[i]);
	name = rfl_buf_str(&text);
	cmd = rfl_cmd_find(name);
	if (a->words.n == 0)
		rfl_help_overview(cli->out);
	else if (cmd)
		rfl_cmd_help(cli->out, cmd, true);
	else if (rfl_cmd_is_group(name))
		rfl_help_group(cli->out, name);
	else
		return rfl_cli_unknown_command(name, err);
	return RFL_OK;
}

const struct rfl_cmd rfl_cmd_help_page = {
	.name = "help",
	.summary = "explain the program or a command",
	.operands = "[COMMAND...]",
	.example = "roofline help peaks measure",
	.opts = opts,
	.args_size = sizeof(struct help_args),
	.run = run,
};
