/* help.c - roofline help and completion: print help pages and a completion script for bash. */
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

static void put_options(struct rfl_buf *out, const struct rfl_opt *rows)
{
	for (const struct rfl_opt *row = rows; row && row->name; row++) {
		if (row->hidden)
			continue;
		rfl_buf_printf(out, " --%s", row->name);
		if (row->negatable)
			rfl_buf_printf(out, " --no-%s", row->name);
	}
}

/* The script has a function for the subcommands of a group, one for the options of a command, and
 * one for the choices of "command:--option". All other words complete to file names. */
static void put_script(struct rfl_buf *out)
{
	const struct rfl_cmd *cmd;
	RFL_AUTO(buf) first = { .len = 0 };

	rfl_buf_puts(out, "# bash completion for roofline; made by `roofline completion bash`\n\n"
			  "_roofline_commands()\n{\n\tcase $1 in\n");
	for (size_t i = 0; (cmd = rfl_cmd_at(i)) && !cmd->hidden; i++) {
		const int len = (int)strcspn(cmd->name, " ");

		rfl_buf_printf(&first, " %.*s", len, cmd->name);
		if (cmd->name[len])
			rfl_buf_printf(out, "\t'%.*s') words+=' %s' ;;&\n", len, cmd->name,
				       cmd->name + len + 1);
	}
	rfl_buf_printf(out, "\t'') words='%s' ;;\n\tesac\n}\n\n", rfl_buf_str(&first));

	rfl_buf_puts(out, "_roofline_options()\n{\n\tcase $1 in\n");
	for (size_t i = 0; (cmd = rfl_cmd_at(i)) && !cmd->hidden; i++) {
		rfl_buf_printf(out, "\t'%s') words='", cmd->name);
		put_options(out, cmd->opts);
		put_options(out, rfl_opt_global_rows);
		rfl_buf_puts(out, "' ;;\n");
	}
	rfl_buf_puts(out, "\tesac\n}\n\n_roofline_choices()\n{\n\tcase $1 in\n");
	for (size_t i = 0; (cmd = rfl_cmd_at(i)) && !cmd->hidden; i++)
		for (const struct rfl_opt *row = cmd->opts; row && row->name; row++) {
			if (row->hidden || !row->choices)
				continue;
			rfl_buf_printf(out, "\t'%s:--%s') words='", cmd->name, row->name);
			for (size_t k = 0; row->choices[k]; k++)
				rfl_buf_printf(out, "%s%s", k > 0 ? " " : "", row->choices[k]);
			rfl_buf_puts(out, "' ;;\n");
		}
	rfl_buf_puts(out, "\tesac\n}\n\n");
	rfl_buf_puts(
		out,
		"_roofline()\n"
		"{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} command= words= word i\n"
		"\tCOMPREPLY=()\n"
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		"\t\tword=${COMP_WORDS[i]}\n"
		"\t\t[[ $word == -* ]] && continue\n"
		"\t\twords=; _roofline_options \"${command:+$command }$word\"\n"
		"\t\tif [[ -n $words ]]; then command=${command:+$command }$word; break; fi\n"
		"\t\t[[ -z $command ]] && command=$word\n"
		"\tdone\n"
		"\twords=\n"
		"\t_roofline_choices \"$command:${COMP_WORDS[COMP_CWORD - 1]}\"\n"
		"\tif [[ -z $words && $cur == -* ]]; then _roofline_options \"$command\"; fi\n"
		"\tif [[ -z $words && $cur != -* ]]; then _roofline_commands \"$command\"; fi\n"
		"\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
		"}\n\n"
		"complete -o default -F _roofline roofline\n");
}

struct completion_args {
	struct rfl_opt_list shell;
};

static enum rfl_rc run_completion(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const char *shell = ((const struct completion_args *)args)->shell.items[0];
	RFL_AUTO(buf) script = { .len = 0 };

	if (strcmp(shell, "bash") != 0)
		return rfl_usage(err, "'%s' is not a supported shell; use bash", shell);
	put_script(&script);
	return rfl_cli_put(cli, &script, "completion script", err);
}

const struct rfl_cmd rfl_cmd_completion = {
	.name = "completion",
	.summary = "print a completion script for the shell",
	.operands = "bash",
	.example = "source <(roofline completion bash)",
	.args_size = sizeof(struct completion_args),
	.run = run_completion,
};
