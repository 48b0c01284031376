/* plot_charts.h - inside cli/: the kinds of 'roofline plot' that gnuplot draws. */
#ifndef RFL_CLI_PLOT_CHARTS_H
#define RFL_CLI_PLOT_CHARTS_H

#include "cli/inputs.h"

struct rfl_plot_charts_args {
	const char *kind;
	struct rfl_cli_runs_args in; /**< ledgers, column maps, selection */
	const char *peaks;           /**< for bandwidth; NULL: not given */
	const char *steps;           /**< folder of step files; NULL: steps/ next to the ledger */
	struct rfl_opt_list batch, mode; /**< to select, in addition to those of `in`; none: all */
	struct rfl_opt_list format;
	const char *style;              /**< one of rfl_plot_styles; NULL: the first */
	const char *output_dir, *title; /**< title NULL: from the data */
	double width, height, dpi;      /**< 0: the defaults */
};

/** Draw one chart per environment and format, with its script next to it, and print the paths. */
enum rfl_rc rfl_plot_charts(struct rfl_cli *cli, const struct rfl_plot_charts_args *a,
			    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
