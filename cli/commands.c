/*
 * commands.c - the table of commands, in the order of the help page. A command is one file
 * cli/cmd_<name>.c that defines `const struct rfl_cmd rfl_cmd_<name>`, and one line here.
 */
#include "cli/cmd.h"

/* clang-format off */
#define COMMANDS(X) \
	X(run) \
	X(complexity) \
	X(peaks_measure) \
	X(peaks_show) \
	X(peaks_check) \
	X(peaks_set) \
	X(points) \
	X(plot) \
	X(list) \
	X(verify) \
	X(doctor) \
	X(help_page) \
	X(completion) \
	X(version) \
	X(probe) \
	X(run_child)
/* clang-format on */

#define DECLARE(name) extern const struct rfl_cmd rfl_cmd_##name;
#define ROW(name)     &rfl_cmd_##name,

COMMANDS(DECLARE)

static const struct rfl_cmd *const commands[] = { COMMANDS(ROW) };

const struct rfl_cmd *rfl_cmd_at(size_t i)
{
	return i < RFL_ARRAY_LEN(commands) ? commands[i] : NULL;
}
