/* plot_charts.h - inside cli/: the options of 'roofline plot', what it writes, its charts, and the
 * options that a picture carries, for --from. */
#ifndef RFL_CLI_PLOT_CHARTS_H
#define RFL_CLI_PLOT_CHARTS_H

#include <jansson.h>

#include "cli/inputs.h"
#include "plot/surface.h"
#include "plot/surface_data.h"

/** An option that was not given is NULL, or 0 for a number. */
struct rfl_plot_args {
	int kind; /**< index in rfl_plot_kinds */
	/** `env`, `model` and `precision` select points as well as runs; `metric` is not used. */
	struct rfl_cli_runs_args runs;
	struct rfl_opt_list batch, mode, format;
	const char *points, *peaks, *against, *from, *steps, *output_dir, *title, *style;
	const char *xlim, *ylim;
	double width, height, dpi;
	bool panel, data, points_given, peaks_given;
	int labels, layout;
	struct rfl_figure_data *picture; /**< the file of --from; otherwise NULL */
};

/** The kinds of figures: rooflines, in the order of enum rfl_plot_kind, then charts. */
extern const char *const rfl_plot_kinds[];

/** Whether an item repeats an earlier one. */
bool rfl_plot_is_again(const struct rfl_opt_list *list, size_t i);

/* plot_output.c: files and printed figures. */

struct rfl_plot_output {
	const char *path;    /**< NULL: printed */
	const char *caption; /**< printed after the path; NULL: none */
	bool quiet;          /**< the path is not printed */
	struct rfl_buf bytes;
};

/** What a command writes; all of it is complete before the first file is written. */
struct rfl_plot_outputs {
	struct rfl_cli *cli;
	const struct rfl_plot_args *args;
	size_t n;
	struct rfl_plot_output *items;
};

struct rfl_plot_size {
	const char *style;
	double width, height; /**< 0: as in the style */
	bool printed;         /**< with its title on a separate line */
};

/** Draw a figure. The scene belongs to the context and is valid until the next call. */
typedef enum rfl_rc rfl_plot_drawer(void *ctx, const struct rfl_plot_size *size,
				    const struct rfl_scene **ret, struct rfl_err *err);

/** Add a figure in all formats of the command. @param name  of the files, without suffix */
enum rfl_rc rfl_plot_add(struct rfl_plot_outputs *all, rfl_plot_drawer *draw, void *ctx,
			 const char *name, struct rfl_err *err) RFL_WARN_UNUSED;
/** Add another file. @return its contents, until the next call */
struct rfl_buf *rfl_plot_add_file(struct rfl_plot_outputs *all, const char *name,
				  const char *suffix);
/** Write and print everything. */
enum rfl_rc rfl_plot_write(struct rfl_plot_outputs *all, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_plot_outputs_fini(struct rfl_plot_outputs *all);

/** Draw one chart per environment and format, with its script next to it, and print the paths. */
enum rfl_rc rfl_plot_charts(struct rfl_cli *cli, const struct rfl_plot_args *a,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/* plot_data.c: the options that a picture carries, and the terminal. */

/** The options that differ from their defaults, as {name: text or list of texts}. Options about
 * files and output formats are omitted.
 * @param ret  a new reference, also on failure */
enum rfl_rc rfl_plot_options(struct rfl_cli *cli, const struct rfl_cmd *cmd, const void *args,
			     json_t **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Parse the command line again, using the options of a picture as defaults.
 * @param path  the picture, for messages
 * @param args  as for rfl_opt_parse(); texts may point into `options` and cli->arena */
enum rfl_rc rfl_plot_reparse(struct rfl_cli *cli, const struct rfl_cmd *cmd, const json_t *options,
			     const char *path, void *args, struct rfl_err *err) RFL_WARN_UNUSED;

/** Set the size and colours of the terminal, from COLUMNS, LINES, the terminal and NO_COLOR, and
 * the size in points of a figure with texts that fit its cells. */
void rfl_cli_terminal(const struct rfl_cli *cli, struct rfl_surface_spec *spec, double *width,
		      double *height);

#endif
