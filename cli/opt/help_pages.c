/*
 * help_pages.c - pages for readers outside a terminal, made from the same rows as the help pages:
 * docs/commands.md, which a test compares with this one, and the manual pages, in the macros of
 * man(7).
 */
#include "cli/opt/help.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/opt/opt.h"
#include "rfl_config.h"

/* ---- docs/commands.md ---- */

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

static void put_md_rows(struct rfl_buf *out, const struct rfl_opt *rows)
{
	struct rfl_buf text;
	bool first = true;

	rfl_buf_init(&text, 0);
	for (const struct rfl_opt *row = rows; row && row->name; row++) {
		if (row->hidden)
			continue;
		rfl_buf_puts(out, first ? "\n| option | meaning |\n|---|---|\n" : "");
		first = false;
		if (row->group)
			rfl_buf_printf(out, "| **%s** | |\n", row->group);
		rfl_buf_puts(out, "| `");
		if (row->letter)
			rfl_buf_printf(out, "-%c`, `", row->letter);
		rfl_buf_printf(out, "--%s", row->name);
		if (row->negatable)
			rfl_buf_printf(out, "`, `--no-%s", row->name);
		rfl_buf_reset(&text);
		rfl_help_meta(row, &text);
		put_cell(out, rfl_buf_str(&text));
		rfl_buf_puts(out, "` | ");
		rfl_buf_reset(&text);
		rfl_help_text(row, &text);
		put_cell(out, rfl_buf_str(&text));
		rfl_buf_puts(out, " |\n");
	}
	rfl_buf_fini(&text);
}

static void put_md_command(struct rfl_buf *out, const struct rfl_cmd *cmd)
{
	rfl_buf_printf(out, "\n## roofline %s\n\n%c%s.\n\n    roofline ", cmd->name,
		       toupper((unsigned char)cmd->summary[0]), cmd->summary + 1);
	rfl_help_usage(cmd, out);
	rfl_buf_putc(out, '\n');
	if (cmd->description)
		rfl_buf_printf(out, "\n%s\n", cmd->description);
	put_md_rows(out, cmd->opts);
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
	put_md_rows(out, rfl_opt_global_rows);
	rfl_buf_puts(out, "\n## Environment\n\n| variable | meaning |\n|---|---|\n");
	for (size_t i = 0; rfl_help_environment[i][0]; i++)
		rfl_buf_printf(out, "| `%s` | %s |\n", rfl_help_environment[i][0],
			       rfl_help_environment[i][1]);
	for (size_t i = 0; rfl_cmd_at(i); i++)
		if (!rfl_cmd_at(i)->hidden)
			put_md_command(out, rfl_cmd_at(i));
}

/* ---- manual pages ---- */

/* Text of a page. A hyphen that users type is a minus; a line must not begin with a control
 * character of roff. */
static void put_text(struct rfl_buf *out, const char *text)
{
	bool first = true;

	for (; *text != '\0'; text++) {
		if (first && (*text == '.' || *text == '\''))
			rfl_buf_puts(out, "\\&");
		first = *text == '\n';
		if (*text == '\\')
			rfl_buf_puts(out, "\\e");
		else if (*text == '-')
			rfl_buf_puts(out, "\\-");
		else
			rfl_buf_putc(out, *text);
	}
}

static void put_section(struct rfl_buf *out, const char *macro, const char *title)
{
	rfl_buf_printf(out, ".%s \"", macro);
	put_text(out, title);
	rfl_buf_puts(out, "\"\n");
}

static void put_lines(struct rfl_buf *out, const char *text)
{
	put_text(out, text);
	rfl_buf_putc(out, '\n');
}

/* Line breaks are kept, as on the help page; an empty line begins a paragraph. */
static void put_paragraphs(struct rfl_buf *out, const char *text)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");
		char *line = strndup(text, len);

		put_lines(out, line ? line : "");
		free(line);
		text += len + (text[len] == '\n');
		if (*text != '\0')
			rfl_buf_puts(out, *text == '\n' ? ".PP\n" : ".br\n");
		text += *text == '\n';
	}
}

static void put_entry(struct rfl_buf *out, const char *name, const char *text)
{
	rfl_buf_puts(out, ".TP\n\\fB");
	put_text(out, name);
	rfl_buf_puts(out, "\\fR\n");
	put_lines(out, text);
}

static void put_options(struct rfl_buf *out, const struct rfl_opt *rows)
{
	struct rfl_buf meta, text;

	rfl_buf_init(&meta, 0);
	rfl_buf_init(&text, 0);
	for (const struct rfl_opt *row = rows; row && row->name; row++) {
		if (row->hidden)
			continue;
		if (row->group)
			put_section(out, "SS", row->group);
		rfl_buf_puts(out, ".TP\n\\fB");
		if (row->letter)
			rfl_buf_printf(out, "\\-%c\\fR, \\fB", row->letter);
		rfl_buf_puts(out, "\\-\\-");
		put_text(out, row->name);
		if (row->negatable) {
			rfl_buf_puts(out, "\\fR, \\fB\\-\\-no\\-");
			put_text(out, row->name);
		}
		rfl_buf_puts(out, "\\fR\\fI");
		rfl_buf_reset(&meta);
		rfl_help_meta(row, &meta);
		put_text(out, rfl_buf_str(&meta));
		rfl_buf_puts(out, "\\fR\n");
		rfl_buf_reset(&text);
		rfl_help_text(row, &text);
		put_lines(out, rfl_buf_str(&text));
	}
	rfl_buf_fini(&meta);
	rfl_buf_fini(&text);
}

/* "peaks measure" is roofline-peaks-measure(1); NULL is roofline(1). */
static void put_page_name(struct rfl_buf *out, const struct rfl_cmd *cmd)
{
	rfl_buf_puts(out, "roofline");
	for (const char *c = cmd ? cmd->name : ""; *c != '\0'; c++)
		rfl_buf_printf(out, "%s%c", c == cmd->name ? "-" : "", *c == ' ' ? '-' : *c);
}

static void put_head(struct rfl_buf *out, const struct rfl_cmd *cmd, const char *summary)
{
	struct rfl_buf name;

	rfl_buf_init(&name, 0);
	put_page_name(&name, cmd);
	rfl_buf_puts(out, ".TH \"");
	put_text(out, rfl_buf_str(&name));
	rfl_buf_printf(out, "\" 1 \"\" \"roofline %s\" \"User commands\"\n.SH NAME\n", RFL_VERSION);
	put_text(out, rfl_buf_str(&name));
	rfl_buf_puts(out, " \\- ");
	put_lines(out, summary);
	rfl_buf_puts(out, ".SH SYNOPSIS\n\\fBroofline\\fR ");
	rfl_buf_fini(&name);
}

static void put_command_page(struct rfl_buf *out, const struct rfl_cmd *cmd)
{
	struct rfl_buf usage;

	rfl_buf_init(&usage, 0);
	rfl_help_usage(cmd, &usage);
	put_head(out, cmd, cmd->summary);
	put_lines(out, rfl_buf_str(&usage));
	if (cmd->description) {
		put_section(out, "SH", "DESCRIPTION");
		put_paragraphs(out, cmd->description);
	}
	put_section(out, "SH", "OPTIONS");
	put_options(out, cmd->opts);
	put_section(out, "SS", "Options of every command");
	put_options(out, rfl_opt_global_rows);
	if (cmd->example) {
		put_section(out, "SH", "EXAMPLES");
		rfl_buf_puts(out, ".nf\n");
		put_lines(out, cmd->example);
		rfl_buf_puts(out, ".fi\n");
	}
	put_section(out, "SH", "SEE ALSO");
	rfl_buf_puts(out, "\\fBroofline\\fR(1)\n");
	rfl_buf_fini(&usage);
}

static void put_program_page(struct rfl_buf *out)
{
	put_head(out, NULL, "measure, count and draw what limits the training of a network");
	rfl_buf_puts(out, "\\fICOMMAND\\fR [options]\n.SH DESCRIPTION\n");
	put_lines(out, rfl_help_about);
	put_section(out, "SH", "COMMANDS");
	for (size_t i = 0; rfl_cmd_at(i); i++)
		if (!rfl_cmd_at(i)->hidden)
			put_entry(out, rfl_cmd_at(i)->name, rfl_cmd_at(i)->summary);
	put_section(out, "SH", "OPTIONS OF EVERY COMMAND");
	put_options(out, rfl_opt_global_rows);
	put_section(out, "SH", "ENVIRONMENT");
	for (size_t i = 0; rfl_help_environment[i][0]; i++)
		put_entry(out, rfl_help_environment[i][0], rfl_help_environment[i][1]);
	put_section(out, "SH", "EXIT STATUS");
	put_lines(out, rfl_help_exit_codes);
	put_section(out, "SH", "SEE ALSO");
	for (size_t i = 0, n = 0; rfl_cmd_at(i); i++) {
		struct rfl_buf name;

		if (rfl_cmd_at(i)->hidden)
			continue;
		rfl_buf_init(&name, 0);
		put_page_name(&name, rfl_cmd_at(i));
		rfl_buf_puts(out, n++ > 0 ? "(1),\n\\fB" : "\\fB");
		put_text(out, rfl_buf_str(&name));
		rfl_buf_puts(out, "\\fR");
		rfl_buf_fini(&name);
	}
	rfl_buf_puts(out, "(1)\n");
}

enum rfl_rc rfl_help_man(const char *dir, struct rfl_err *err)
{
	struct rfl_buf page, path;
	enum rfl_rc rc = rfl_file_mkdirs(dir, err);
	size_t i = 0;

	rfl_buf_init(&page, 0);
	rfl_buf_init(&path, 0);
	for (const struct rfl_cmd *cmd = NULL; rc == RFL_OK; cmd = rfl_cmd_at(i++)) {
		if (i > 0 && !cmd)
			break;
		if (cmd && cmd->hidden)
			continue;
		rfl_buf_reset(&page);
		rfl_buf_reset(&path);
		if (cmd)
			put_command_page(&page, cmd);
		else
			put_program_page(&page);
		rfl_buf_printf(&path, "%s/", dir);
		put_page_name(&path, cmd);
		rfl_buf_puts(&path, ".1");
		rc = rfl_buf_check(&page, "manual page", err);
		if (rc == RFL_OK)
			rc = rfl_file_write(rfl_buf_str(&path), rfl_buf_str(&page), page.len, err);
	}
	rfl_buf_fini(&page);
	rfl_buf_fini(&path);
	return rc;
}
