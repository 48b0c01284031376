/*
 * completion.c - roofline completion: a bash script made from the rows of commands and options:
 * commands, options, and the values of those that have choices; everywhere else file names.
 */
#include "cli/cmd.h"

#include <string.h>

#include "cli/opt/opt.h"
#include "cli/put.h"

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

/* "command:--option" pairs, then their choices. */
static void put_choices(struct rfl_buf *out, const struct rfl_cmd *cmd)
{
	for (const struct rfl_opt *row = cmd->opts; row && row->name; row++) {
		if (row->hidden || !row->choices)
			continue;
		rfl_buf_printf(out, "\t'%s:--%s') words='", cmd->name, row->name);
		for (size_t i = 0; row->choices[i]; i++)
			rfl_buf_printf(out, "%s%s", i > 0 ? " " : "", row->choices[i]);
		rfl_buf_puts(out, "' ;;\n");
	}
}

static void put_function(struct rfl_buf *out, const char *name,
			 void (*put)(struct rfl_buf *out, const struct rfl_cmd *cmd))
{
	rfl_buf_printf(out, "%s()\n{\n\tcase $1 in\n", name);
	for (size_t i = 0; rfl_cmd_at(i); i++)
		if (!rfl_cmd_at(i)->hidden)
			put(out, rfl_cmd_at(i));
	rfl_buf_puts(out, "\tesac\n}\n\n");
}

static void put_command_options(struct rfl_buf *out, const struct rfl_cmd *cmd)
{
	rfl_buf_printf(out, "\t'%s') words='", cmd->name);
	put_options(out, cmd->opts);
	put_options(out, rfl_opt_global_rows);
	rfl_buf_puts(out, "' ;;\n");
}

/* The words that may follow "roofline" or the first word of a nested command. */
static void put_command_words(struct rfl_buf *out)
{
	struct rfl_buf first;

	rfl_buf_init(&first, 0);
	rfl_buf_puts(out, "_roofline_commands()\n{\n\tcase $1 in\n");
	for (size_t i = 0; rfl_cmd_at(i); i++) {
		const char *name = rfl_cmd_at(i)->name, *blank = strchr(name, ' ');

		if (rfl_cmd_at(i)->hidden)
			continue;
		rfl_buf_printf(&first, " %.*s", blank ? (int)(blank - name) : (int)strlen(name),
			       name);
		if (blank)
			rfl_buf_printf(out, "\t'%.*s') words+=' %s' ;;&\n", (int)(blank - name),
				       name, blank + 1);
	}
	rfl_buf_printf(out, "\t'') words='%s' ;;\n\tesac\n}\n\n", rfl_buf_str(&first));
	rfl_buf_fini(&first);
}

static void put_script(struct rfl_buf *out)
{
	rfl_buf_puts(out, "# bash completion for roofline; made by `roofline completion bash`\n\n");
	put_command_words(out);
	put_function(out, "_roofline_options", put_command_options);
	put_function(out, "_roofline_choices", put_choices);
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

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct completion_args *a = args;
	struct rfl_buf script;
	enum rfl_rc rc;

	if (strcmp(a->shell.items[0], "bash") != 0)
		return rfl_fail(err, RFL_EUSAGE, 0, "'%s' is not one of bash", a->shell.items[0]);
	rfl_buf_init(&script, 0);
	put_script(&script);
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
