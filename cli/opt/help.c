/* help.c - print the help pages. Those in docs/ and the manual pages: help_pages.c. */

#include <ctype.h>
#include <string.h>

#include "cli/opt/opt.h"

#define PAGE_WIDTH  92 /* number of columns */
#define NAME_COLUMN 28 /* first column of the help text of an option */
#define CMD_COLUMN  20 /* first column of the summary of a command */
#define FEW         10 /* options that the short page shows in any case */

const char *const rfl_help_environment[][2] = {
	{ "ROOFLINE_PLUGIN_PATH",
	  "directories that are searched first for engine plugins, separated by colons" },
	{ "ROOFLINE_LOCK_DIR", "directory for the locks that prevent matrix runs from being timed "
			       "simultaneously (default /tmp)" },
	{ "RFL_CUPTI_PATH", "path of libcupti or of its directory; default: CUDA_HOME or CUDA_PATH "
			    "is searched first" },
	{ "SOURCE_DATE_EPOCH",
	  "time to record in results instead of the current time, in seconds since 1970" },
	{ "COLUMNS, LINES", "size of figures printed by 'roofline plot --format terminal'; "
			    "default: as the terminal, or 100 x 32" },
	{ "NO_COLOR", "if not empty, figures are printed without colours" },
	{ NULL, NULL },
};

const char rfl_help_about[] =
	"Trains a network for a short, measured burst, counts its FLOPs and bytes, measures the "
	"limits of the machine, and draws the results as a roofline.";

const char rfl_help_exit_codes[] = "0 success, 1 failure, 2 incorrect usage, 3 missing value, 77 "
				   "not available on this machine.";

/* Wrap text at PAGE_WIDTH. The first line begins in column `at`, the others are indented. Line
 * breaks in the text are kept. */
static void put_wrapped(FILE *out, const char *text, size_t at, size_t indent)
{
	size_t column = at;

	while (*text != '\0') {
		size_t blanks = strspn(text, " "), len = strcspn(text + blanks, " \n");

		if (text[blanks] == '\n') {
			fputc('\n', out);
			text += blanks + 1;
			if (*text != '\0' && *text != '\n')
				fprintf(out, "%*s", (int)indent, "");
			column = indent;
			continue;
		}
		if (column > indent && column + blanks + len > PAGE_WIDTH) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
			blanks = 0;
		}
		if (column == indent)
			blanks = 0;
		fprintf(out, "%*s%.*s", (int)blanks, "", (int)len, text + strspn(text, " "));
		column += blanks + len;
		text += strspn(text, " ") + len;
	}
	fputc('\n', out);
}

/* Print "  name" and the text next to it, or below it if the name is long. */
static void put_entry(FILE *out, const char *name, size_t column, const char *text)
{
	size_t width = strlen(name) + 2;

	fprintf(out, "  %s", name);
	if (width + 2 > column) {
		fputc('\n', out);
		width = 0;
	}
	fprintf(out, "%*s", (int)(column - width), "");
	put_wrapped(out, text, column, column);
}

void rfl_help_meta(const struct rfl_opt *row, struct rfl_buf *out)
{
	bool list = row->kind == RFL_OPT_LIST || row->kind == RFL_OPT_INT_LIST;

	if (row->kind == RFL_OPT_FLAG)
		return;
	rfl_buf_printf(out, " %s", row->meta ? row->meta : "VALUE");
	if (list && !(row->meta && strstr(row->meta, "...")))
		rfl_buf_puts(out, "...");
}

void rfl_help_text(const struct rfl_opt *row, struct rfl_buf *out)
{
	const char *def = rfl_opt_default(row), *sep = " (";
	char range[128];

	rfl_buf_puts(out, row->help ? row->help : "");
	if (row->choices) {
		rfl_buf_puts(out, sep);
		for (size_t i = 0; row->choices[i]; i++)
			rfl_buf_printf(out, "%s%s", i > 0 ? ", " : "", row->choices[i]);
		sep = "; ";
	}
	rfl_opt_range(row, range, sizeof(range)); /* such as "number from 1 to 9" */
	if (strlen(range) > strlen("number")) {
		const char *bounds = range + strlen("number ");

		rfl_buf_printf(out, "%s%s", sep, bounds + strcspn(bounds, " ") + 1);
		sep = "; ";
	}
	if (row->required)
		rfl_buf_printf(out, "%srequired", sep);
	else if (def && row->kind != RFL_OPT_FLAG)
		rfl_buf_printf(out, "%sdefault %s", sep, def);
	else if (def && strcmp(def, "on") == 0)
		rfl_buf_printf(out, "%son by default", sep);
	else if (row->found)
		rfl_buf_printf(out, "%sdefault %s if it exists", sep,
			       rfl_project_usual(row->project));
	if (row->required || def || row->found || strcmp(sep, "; ") == 0)
		rfl_buf_putc(out, ')');
}

/* @param often  only the rows that are used often, without their headings
 * @return the number of other rows */
static size_t put_options(FILE *out, const char *title, const struct rfl_opt *rows, bool often)
{
	size_t others = 0;

	for (const struct rfl_opt *row = rows; row && row->name; row++) {
		RFL_AUTO(buf) name = { .len = 0 };
		RFL_AUTO(buf) text = { .len = 0 };
		const bool shown = !row->hidden && (!often || row->often || row->required);

		others += !row->hidden && !shown;
		if (!shown)
			continue;
		if ((row->group && !often) || title)
			fprintf(out, "\n%s:\n", row->group && !often ? row->group : title);
		title = NULL; /* print it only once, and not if all rows are hidden */
		rfl_buf_printf(&name, row->letter ? "-%c, " : "    ", row->letter);
		rfl_buf_printf(&name, "--%s%s", row->negatable ? "[no-]" : "", row->name);
		rfl_help_meta(row, &name);
		rfl_help_text(row, &text);
		put_entry(out, rfl_buf_str(&name), NAME_COLUMN, rfl_buf_str(&text));
	}
	return others;
}

void rfl_help_usage(const struct rfl_cmd *cmd, struct rfl_buf *out)
{
	const char *operands = cmd->operands ? cmd->operands : "";
	/* "[-- X]" follows the options */
	const bool is_command = strncmp(operands, "-- ", 3) == 0;
	const char *last = is_command ? operands : strstr(operands, " [--");
	bool optional = false;

	rfl_buf_printf(out, "%s%s%.*s", cmd->name, *operands && !is_command ? " " : "",
		       (int)(last ? (size_t)(last - operands) : strlen(operands)), operands);
	for (const struct rfl_opt *row = cmd->opts; row && row->name; row++) {
		optional = optional || (!row->required && !row->hidden);
		if (!row->required)
			continue;
		rfl_buf_printf(out, " --%s", row->name);
		rfl_help_meta(row, out);
	}
	if (optional)
		rfl_buf_puts(out, " [options]");
	rfl_buf_printf(out, "%s%s", is_command ? " " : "", last ? last : "");
}

static void put_examples(FILE *out, const struct rfl_cmd *cmd)
{
	for (const char *line = cmd->example; line && *line != '\0'; line += strcspn(line, "\n")) {
		line += line != cmd->example; /* skip the line break */
		fprintf(out, "%s  %.*s\n", line == cmd->example ? "\nExamples:\n" : "",
			(int)strcspn(line, "\n"), line);
	}
}

void rfl_cmd_help(FILE *out, const struct rfl_cmd *cmd, bool all)
{
	RFL_AUTO(buf) usage = { .len = 0 };
	RFL_AUTO(buf) man = { .len = 0 };
	size_t n = 0, others;

	fprintf(out, "%c%s.\n\nUsage: ", toupper((unsigned char)cmd->summary[0]), cmd->summary + 1);
	rfl_buf_puts(&usage, "roofline ");
	rfl_help_usage(cmd, &usage);
	put_wrapped(out, rfl_buf_str(&usage), 7, 7);
	put_examples(out, cmd);
	if (all && cmd->description) {
		fputc('\n', out);
		put_wrapped(out, cmd->description, 0, 0);
	}
	for (const struct rfl_opt *row = cmd->opts; row && row->name; row++)
		n += !row->hidden;
	others = put_options(out, "Options", cmd->opts, n > FEW && !all);
	if (all) {
		(void)put_options(out, "Common options", rfl_opt_global_rows, false);
		return;
	}
	rfl_help_man_name(cmd, &man);
	if (others)
		fprintf(out, "\n%zu more options: roofline %s --help all, or man %s\n", others,
			cmd->name, rfl_buf_str(&man));
	else
		fprintf(out, "\nMore: roofline %s --help all, or man %s\n", cmd->name,
			rfl_buf_str(&man));
}

/* @param group  NULL: all commands */
static void put_commands(FILE *out, const char *group)
{
	const struct rfl_cmd *cmd;

	for (size_t i = 0; (cmd = rfl_cmd_at(i)) && !cmd->hidden; i++)
		if (!group || rfl_cmd_in_group(cmd, group))
			put_entry(out, cmd->name, CMD_COLUMN, cmd->summary);
}

void rfl_help_overview(FILE *out)
{
	fputs("Usage: roofline COMMAND [options]\n\n", out);
	put_wrapped(out, rfl_help_about, 0, 0);
	fputs("\nCommands:\n", out);
	put_commands(out, NULL);
	(void)put_options(out, "Common options", rfl_opt_global_rows, false);
	fputs("\nEnvironment:\n", out);
	for (size_t i = 0; rfl_help_environment[i][0]; i++)
		put_entry(out, rfl_help_environment[i][0], NAME_COLUMN, rfl_help_environment[i][1]);
	fprintf(out,
		"\nExit codes: %s\nFor help on a command, run 'roofline COMMAND --help'. To check "
		"what works on this machine, run 'roofline doctor'.\n",
		rfl_help_exit_codes);
}

void rfl_help_group(FILE *out, const char *group)
{
	fprintf(out, "Usage: roofline %s COMMAND [options]\n\nCommands:\n", group);
	put_commands(out, group);
}
