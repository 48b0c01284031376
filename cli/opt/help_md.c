/*
 * help_md.c - the reference page of all commands (docs/commands.md), made from the same rows as the
 * help pages. A test compares the committed page with this one.
 */
#include "cli/opt/help.h"

#include <ctype.h>
#include <string.h>

#include "cli/opt/opt.h"

/* A cell of a Markdown table: a bar would end it, an angle bracket would be HTML. */
static void put_cell(struct rfl_buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '|')
			rfl_buf_puts(out, "\\|");
		else if (*text == '<')
			rfl_buf_puts(out, "&lt;");
		else
			rfl_buf_putc(out, *text);
	}
}

static void put_row(struct rfl_buf *out, const struct rfl_opt *row)
{
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	if (row->group)
		rfl_buf_printf(out, "| **%s** | |\n", row->group);
	rfl_buf_puts(out, "| `");
	if (row->letter)
		rfl_buf_printf(out, "-%c`, `", row->letter);
	rfl_buf_printf(out, "--%s", row->name);
	if (row->negatable)
		rfl_buf_printf(out, "`, `--no-%s", row->name);
	rfl_help_meta(row, &text);
	put_cell(out, rfl_buf_str(&text));
	rfl_buf_puts(out, "` | ");
	rfl_buf_reset(&text);
	rfl_help_text(row, &text);
	put_cell(out, rfl_buf_str(&text));
	rfl_buf_puts(out, " |\n");
	rfl_buf_fini(&text);
}

static void put_rows(struct rfl_buf *out, const struct rfl_opt *rows)
{
	rfl_buf_puts(out, "\n| option | meaning |\n|---|---|\n");
	for (const struct rfl_opt *row = rows; row->name; row++)
		if (!row->hidden)
			put_row(out, row);
}

static bool has_rows(const struct rfl_cmd *cmd)
{
	for (const struct rfl_opt *row = cmd->opts; row && row->name; row++)
		if (!row->hidden)
			return true;
	return false;
}

static void put_command(struct rfl_buf *out, const struct rfl_cmd *cmd)
{
	rfl_buf_printf(out, "\n## roofline %s\n\n%c%s.\n\n    roofline ", cmd->name,
		       toupper((unsigned char)cmd->summary[0]), cmd->summary + 1);
	rfl_help_usage(cmd, out);
	rfl_buf_putc(out, '\n');
	if (cmd->description)
		rfl_buf_printf(out, "\n%s\n", cmd->description);
	if (has_rows(cmd))
		put_rows(out, cmd->opts);
	if (cmd->example)
		rfl_buf_printf(out, "\n```sh\n%s\n```\n", cmd->example);
}

void rfl_help_markdown(struct rfl_buf *out)
{
	rfl_buf_puts(
		out,
		"# Commands\n\n"
		"This page is made from the option rows of the program by `roofline help "
		"--markdown`; a test compares the two.\n\n"
		"    roofline COMMAND [options]\n\n"
		"The result goes to standard output and nothing else does; progress and messages "
		"go "
		"to standard error. Control characters of files are shown as `?`; CSV keeps them, "
		"except on a terminal. A list option takes one or more values: `--models resnet50 "
		"vgg16`, `--models resnet50,vgg16`, or repeated. `--arch`, `--model` and "
		"`--models` are one option wherever one of them is listed; so are `--batch-size` "
		"and `--batch-sizes`. `--` ends the options. The exit code "
		"is 0 (done), 1 (failed, or the answer is no), 2 (wrong usage), 3 (a fact that the "
		"result needs is missing) or 77 (the device or library is not here).\n\n"
		"| command | |\n|---|---|\n");
	for (size_t i = 0; rfl_cmd_at(i); i++) {
		const struct rfl_cmd *cmd = rfl_cmd_at(i);

		if (!cmd->hidden)
			rfl_buf_printf(out, "| `roofline %s` | %s |\n", cmd->name, cmd->summary);
	}
	rfl_buf_puts(out, "\n## Options of every command\n");
	put_rows(out, rfl_opt_global_rows);
	rfl_buf_puts(out, "\n## Environment\n\n| variable | meaning |\n|---|---|\n");
	for (size_t i = 0; rfl_help_environment[i][0]; i++)
		rfl_buf_printf(out, "| `%s` | %s |\n", rfl_help_environment[i][0],
			       rfl_help_environment[i][1]);
	for (size_t i = 0; rfl_cmd_at(i); i++)
		if (!rfl_cmd_at(i)->hidden)
			put_command(out, rfl_cmd_at(i));
}
