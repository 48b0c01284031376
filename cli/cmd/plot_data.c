/* plot_data.c - the options of `plot` that a picture carries, converted to text and back; the size
 * of the terminal. */
#include "cli/cmd/plot_charts.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/opt/opt.h"
#include "plot/plot.h"

/* Whether the option describes the figure. A picture must not decide which files are read or
 * written, and it contains only the points of its own environments. */
static bool is_carried(const struct rfl_opt *row)
{
	static const char *const others[] = { "env", "format", "data" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++)
		if (strcmp(row->name, others[i]) == 0)
			return false;
	return !row->meta || (!strstr(row->meta, "FILE") && !strstr(row->meta, "DIR"));
}

/* The value of an option as text, or as a list of texts; JSON null for a text that was not given.
 * New reference. */
static json_t *value_of(const struct rfl_opt *row, const void *args)
{
	const struct rfl_opt_list *texts = (const void *)((const char *)args + row->offset);
	char number[RFL_NUM_MAX], *copy = rfl_strdup(rfl_opt_text(row, args, number));
	json_t *value = copy ? NULL : json_null();

	assert(row->kind != RFL_OPT_INT_LIST);
	if (row->kind == RFL_OPT_LIST)
		value = json_array();
	for (size_t i = 0; row->kind == RFL_OPT_LIST && i < texts->n; i++)
		(void)json_array_append_new(value, json_string(texts->items[i]));
	if (copy) {
		rfl_text_one_line(copy); /* as drawn in the figure */
		value = json_string(copy);
		free(copy);
	}
	return value;
}

enum rfl_rc rfl_plot_options(struct rfl_cli *cli, const struct rfl_cmd *cmd, const void *args,
			     json_t **ret, struct rfl_err *err)
{
	void *defaults = rfl_arena_array(cli->arena, 1, cmd->args_size);
	enum rfl_rc rc = RFL_OK;

	*ret = json_object();
	for (const struct rfl_opt *row = cmd->opts; rc == RFL_OK && row->name; row++) {
		json_auto_t *value = NULL, *usual = NULL;

		if (!is_carried(row))
			continue;
		rc = rfl_opt_set_default(row, defaults, err);
		value = value_of(row, args);
		usual = value_of(row, defaults);
		if (!json_equal(value, usual))
			(void)json_object_set(*ret, row->name, value);
	}
	rfl_opt_free(cmd, defaults);
	return rc;
}

/* A carried value as the default of a row. */
static const char *default_of(const json_t *value, struct rfl_arena *arena)
{
	const char *text = json_string_value(value);
	RFL_AUTO(buf) list = { .len = 0 };

	for (size_t i = 0; i < json_array_size(value); i++)
		rfl_buf_printf(&list, "\n%s", json_string_value(json_array_get(value, i)));
	return text ? text : rfl_arena_strdup(arena, rfl_buf_str(&list));
}

enum rfl_rc rfl_plot_reparse(struct rfl_cli *cli, const struct rfl_cmd *cmd, const json_t *options,
			     const char *path, void *args, struct rfl_err *err)
{
	json_t *object = (json_t *)(uintptr_t)options, *value;
	struct rfl_project project = { .arena = cli->arena };
	struct rfl_opt_globals globals = { .project = &project };
	struct rfl_cmd with = *cmd;
	struct rfl_opt *rows;
	const char *name;
	size_t n = 0;
	int next;
	enum rfl_rc rc;

	while (cmd->opts[n].name)
		n++;
	rows = rfl_arena_array(cli->arena, n + 1, sizeof(*rows));
	memcpy(rows, cmd->opts, (n + 1) * sizeof(*rows));
	with.opts = rows;
	json_object_foreach(object, name, value)
	{
		struct rfl_opt *row = rows;

		while (row->name && strcmp(row->name, name) != 0)
			row++;
		if (!row->name)
			rfl_log(RFL_LOG_WARN,
				"%s: ignored option --%s, which this version does not have", path,
				name);
		if (row->name && is_carried(row))
			row->def = default_of(value, cli->arena);
	}
	rc = rfl_opt_parse_front(cli->argc, cli->argv, &globals, &next, err);
	if (rc == RFL_OK)
		rc = rfl_opt_parse(&with, cli->argc - next, cli->argv + next, args, &globals, err);
	if (rc != RFL_OK) /* the same command line was valid without the picture's defaults */
		rfl_err_prefix(err, "%s", path);
	return rc;
}

#define MOST_CELLS 1000 /* of a row or column of the terminal */

/* A number of cells from a variable; 0 if it is unset or not a sensible number. */
static int cells_of(const char *variable)
{
	const char *text = getenv(variable);
	int64_t value = 0;

	if (!text || rfl_num_parse_int(text, variable, &value, NULL) != RFL_OK)
		return 0;
	return value >= 20 && value <= MOST_CELLS ? (int)value : 0;
}

void rfl_cli_terminal(const struct rfl_cli *cli, struct rfl_surface_spec *spec, double *width,
		      double *height)
{
	const char *no_color = getenv("NO_COLOR");
	struct winsize size = { .ws_col = 0 };

	if (cli->terminal)
		(void)ioctl(fileno(cli->out), TIOCGWINSZ, &size);
	size.ws_col = size.ws_col > MOST_CELLS ? MOST_CELLS : size.ws_col;
	size.ws_row = size.ws_row > MOST_CELLS ? MOST_CELLS : size.ws_row;
	spec->columns = cells_of("COLUMNS");
	spec->rows = cells_of("LINES");
	if (spec->columns == 0)
		spec->columns = size.ws_col >= 20 ? size.ws_col : RFL_TERMINAL_COLUMNS;
	if (spec->rows == 0) /* keep one row for the prompt */
		spec->rows = size.ws_row > 20 ? size.ws_row - 1 : RFL_TERMINAL_ROWS;
	spec->ansi = cli->terminal && !(no_color && *no_color);
	/* the smallest type of a figure has a height of 7.5 points and half the width */
	*width = fmin(fmax(3.75 * spec->columns, RFL_PLOT_MIN_WIDTH), RFL_PLOT_MAX_SIDE);
	*height = fmin(fmax(7.5 * spec->rows, RFL_PLOT_MIN_HEIGHT), RFL_PLOT_MAX_SIDE);
}
