/* plot_charts.h - inside cli/: the options of 'roofline plot', and the kinds that gnuplot draws. */
#ifndef RFL_CLI_PLOT_CHARTS_H
#define RFL_CLI_PLOT_CHARTS_H

#include "cli/inputs.h"
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
	bool panel, data;
	int labels, layout;
	struct rfl_figure_data *picture; /**< the file of --from; otherwise NULL */
};

/** The kinds of figures: rooflines, in the order of enum rfl_plot_kind, then charts. */
extern const char *const rfl_plot_kinds[];

/** Whether an item repeats an earlier one. */
bool rfl_plot_is_again(const struct rfl_opt_list *list, size_t i);

/** Draw one chart per environment and format, with its script next to it, and print the paths. */
enum rfl_rc rfl_plot_charts(struct rfl_cli *cli, const struct rfl_plot_args *a,
			    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
