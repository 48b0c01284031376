/* plot_data.h - inside cli/: the options of `plot` that a picture carries, --from, and the size of
 * the terminal. */
#ifndef RFL_CLI_CMD_PLOT_DATA_H
#define RFL_CLI_CMD_PLOT_DATA_H

#include <jansson.h>

#include "base/alloc.h"
#include "cli/cmd.h"
#include "plot/surface.h"

/** The options that differ from their defaults, as {name: text or list of texts}. Options about
 * files and output formats are omitted.
 * @param ret  a new reference */
enum rfl_rc rfl_plot_options(const struct rfl_cmd *cmd, const void *args, json_t **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** Parse the command line again, using the options of a picture as defaults.
 * @param path  the picture, for messages
 * @param args  as for rfl_opt_parse(); texts may point into `options` and the arena */
enum rfl_rc rfl_plot_reparse(const struct rfl_cli *cli, const struct rfl_cmd *cmd,
			     const json_t *options, const char *path, struct rfl_arena *arena,
			     void *args, struct rfl_err *err) RFL_WARN_UNUSED;

/** Set the size and colours of the terminal, from COLUMNS, LINES, the terminal and NO_COLOR, and
 * the size in points of a figure with texts that fit its cells. */
void rfl_cli_terminal(const struct rfl_cli *cli, struct rfl_surface_spec *spec, double *width,
		      double *height);

#endif
