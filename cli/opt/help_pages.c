/*
 * help_pages.c - docs/commands.md and the manual pages (man(7) macros), from the same rows as the
 * help pages.
 */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/opt/opt.h"
#include "rfl_config.h"

/* Markup around the parts of an option. */
struct style {
	const char *before;   /* all options */
	const char *group[2]; /* around a heading */
	const char *name, *next_name, *meta, *text, *end;
	void (*put)(struct rfl_buf *out, const char *text); /* escapes */
};

static void put_rows(struct rfl_buf *out, const struct rfl_opt *rows, const struct style *s)
{
	const char *before = s->before;
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	for (const struct rfl_opt *row = rows; row && row->name; row++) {
		if (row->hidden)
			continue;
		rfl_buf_puts(out, before);
		before = "";
		if (row->group) {
			rfl_buf_puts(out, s->group[0]);
			s->put(out, row->group);
			rfl_buf_puts(out, s->group[1]);
		}
		rfl_buf_puts(out, s->name);
		if (row->letter) {
			s->put(out, (const char[]){ '-', row->letter, '\0' });
			rfl_buf_puts(out, s->next_name);
		}
		s->put(out, "--");
		s->put(out, row->name);
		if (row->negatable) {
			rfl_buf_puts(out, s->next_name);
			s->put(out, "--no-");
			s->put(out, row->name);
		}
		rfl_buf_puts(out, s->meta);
		rfl_buf_reset(&text);
		rfl_help_meta(row, &text);
		s->put(out, rfl_buf_str(&text));
		rfl_buf_puts(out, s->text);
		rfl_buf_reset(&text);
		rfl_help_text(row, &text);
		s->put(out, rfl_buf_str(&text));
		rfl_buf_puts(out, s->end);
	}
	rfl_buf_fini(&text);
}

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

static const struct style markdown = {
	.before = "\n| option | meaning |\n|---|---|\n",
	.group = { "| **", "** | |\n" },
	.name = "| `",
	.next_name = "`, `",
	.meta = "",
	.text = "` | ",
	.end = " |\n",
	.put = put_cell,
};

void rfl_help_markdown(struct rfl_buf *out)
{
	const struct rfl_cmd *cmd;

	rfl_buf_puts(out,
		     "# Commands\n\nThis page is made from the option rows of the program by "
		     "`roofline help --markdown`; a test compares the two.\n\n    roofline COMMAND "
		     "[options]\n\nThe result goes to standard output and nothing else does; "
		     "progress and messages go to standard error. Control characters from files "
		     "are shown as `?`; CSV keeps them, except on a terminal. A list option takes "
		     "one or more values: `--models resnet50 vgg16`, `--models resnet50,vgg16`, or "
		     "repeated. `--arch`, `--model` and `--models` are interchangeable wherever "
		     "one of them is listed, and so are `--batch-size` and `--batch-sizes`. `--` "
		     "ends the options. The exit code is 0 (done), 1 (failed, or the answer is "
		     "no), 2 (wrong usage), 3 (a fact that the result needs is missing) or 77 (the "
		     "device or library is not available).\n\n| command | |\n|---|---|\n");
	for (size_t i = 0; (cmd = rfl_cmd_at(i)); i++)
		if (!cmd->hidden)
			rfl_buf_printf(out, "| `roofline %s` | %s |\n", cmd->name, cmd->summary);
	rfl_buf_puts(out, "\n## Options of every command\n");
	put_rows(out, rfl_opt_global_rows, &markdown);
	rfl_buf_puts(out, "\n## Environment\n\n| variable | meaning |\n|---|---|\n");
	for (size_t i = 0; rfl_help_environment[i][0]; i++)
		rfl_buf_printf(out, "| `%s` | %s |\n", rfl_help_environment[i][0],
			       rfl_help_environment[i][1]);
	for (size_t i = 0; (cmd = rfl_cmd_at(i)); i++) {
		if (cmd->hidden)
			continue;
		rfl_buf_printf(out, "\n## roofline %s\n\n%c%s.\n\n    roofline ", cmd->name,
			       toupper((unsigned char)cmd->summary[0]), cmd->summary + 1);
		rfl_help_usage(cmd, out);
		rfl_buf_putc(out, '\n');
		if (cmd->description)
			rfl_buf_printf(out, "\n%s\n", cmd->description);
		put_rows(out, cmd->opts, &markdown);
		if (cmd->example)
			rfl_buf_printf(out, "\n```sh\n%s\n```\n", cmd->example);
	}
}

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

static const struct style man = {
	.before = "",
	.group = { ".SS \"", "\"\n" },
	.name = ".TP\n\\fB",
	.next_name = "\\fR, \\fB",
	.meta = "\\fR\\fI",
	.text = "\\fR\n",
	.end = "\n",
	.put = put_text,
};

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

/* "peaks measure" is roofline-peaks-measure(1); NULL is roofline(1). */
static void put_page_name(struct rfl_buf *out, const struct rfl_cmd *cmd)
{
	rfl_buf_puts(out, "roofline");
	for (const char *c = cmd ? cmd->name : ""; *c != '\0'; c++)
		rfl_buf_printf(out, "%s%c", c == cmd->name ? "-" : "", *c == ' ' ? '-' : *c);
}

/* Title, name and summary, up to the synopsis. @param name  of the page */
static void put_head(struct rfl_buf *out, const char *name, const char *summary)
{
	rfl_buf_puts(out, ".TH \"");
	put_text(out, name);
	rfl_buf_printf(out, "\" 1 \"\" \"roofline %s\" \"User commands\"\n.SH NAME\n", RFL_VERSION);
	put_text(out, name);
	rfl_buf_puts(out, " \\- ");
	put_lines(out, summary);
	rfl_buf_puts(out, ".SH SYNOPSIS\n\\fBroofline\\fR ");
}

static void put_command_page(struct rfl_buf *out, const struct rfl_cmd *cmd)
{
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	put_page_name(&text, cmd);
	put_head(out, rfl_buf_str(&text), cmd->summary);
	rfl_buf_reset(&text);
	rfl_help_usage(cmd, &text);
	put_lines(out, rfl_buf_str(&text));
	rfl_buf_fini(&text);
	if (cmd->description) {
		rfl_buf_puts(out, ".SH \"DESCRIPTION\"\n");
		put_paragraphs(out, cmd->description);
	}
	rfl_buf_puts(out, ".SH \"OPTIONS\"\n");
	put_rows(out, cmd->opts, &man);
	rfl_buf_puts(out, ".SS \"Options of every command\"\n");
	put_rows(out, rfl_opt_global_rows, &man);
	if (cmd->example) {
		rfl_buf_puts(out, ".SH \"EXAMPLES\"\n.nf\n");
		put_lines(out, cmd->example);
		rfl_buf_puts(out, ".fi\n");
	}
	rfl_buf_puts(out, ".SH \"SEE ALSO\"\n\\fBroofline\\fR(1)\n");
}

static void put_program_page(struct rfl_buf *out)
{
	const struct rfl_cmd *cmd;
	struct rfl_buf name;

	rfl_buf_init(&name, 0);
	put_head(out, "roofline", "measure, count and draw what limits the training of a network");
	rfl_buf_puts(out, "\\fICOMMAND\\fR [options]\n.SH DESCRIPTION\n");
	put_lines(out, rfl_help_about);
	rfl_buf_puts(out, ".SH \"COMMANDS\"\n");
	for (size_t i = 0; (cmd = rfl_cmd_at(i)); i++)
		if (!cmd->hidden)
			put_entry(out, cmd->name, cmd->summary);
	rfl_buf_puts(out, ".SH \"OPTIONS OF EVERY COMMAND\"\n");
	put_rows(out, rfl_opt_global_rows, &man);
	rfl_buf_puts(out, ".SH \"ENVIRONMENT\"\n");
	for (size_t i = 0; rfl_help_environment[i][0]; i++)
		put_entry(out, rfl_help_environment[i][0], rfl_help_environment[i][1]);
	rfl_buf_puts(out, ".SH \"EXIT STATUS\"\n");
	put_lines(out, rfl_help_exit_codes);
	rfl_buf_puts(out, ".SH \"SEE ALSO\"\n");
	for (size_t i = 0, n = 0; (cmd = rfl_cmd_at(i)); i++) {
		if (cmd->hidden)
			continue;
		rfl_buf_reset(&name);
		put_page_name(&name, cmd);
		rfl_buf_puts(out, n++ > 0 ? "(1),\n\\fB" : "\\fB");
		put_text(out, rfl_buf_str(&name));
		rfl_buf_puts(out, "\\fR");
	}
	rfl_buf_puts(out, "(1)\n");
	rfl_buf_fini(&name);
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
