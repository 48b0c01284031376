/*
 * commands.c - the table of commands, in the order of the help page. A command is one file
 * cli/cmd/<name>.c that defines `const struct rfl_cmd rfl_cmd_<name>`, and one line here.
 */
#include <string.h>

#include "cli/cmd.h"

/* clang-format off */
#define COMMANDS(X) \
	X(run) \
	X(env) \
	X(matrix_expand) \
	X(matrix_run) \
	X(matrix_status) \
	X(matrix_slurm) \
	X(matrix_merge) \
	X(bench_loader) \
	X(complexity) \
	X(peaks_measure) \
	X(peaks_show) \
	X(peaks_check) \
	X(peaks_set) \
	X(peaks_devices) \
	X(counters_show) \
	X(counters_import) \
	X(counters_list) \
	X(counters_check) \
	X(summary) \
	X(compare) \
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

const struct rfl_cmd *rfl_cmd_find(const char *name)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(commands); i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

bool rfl_cmd_in_group(const struct rfl_cmd *cmd, const char *group)
{
	size_t len = strlen(group);

	return strncmp(cmd->name, group, len) == 0 && cmd->name[len] == ' ';
}

bool rfl_cmd_is_group(const char *word)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(commands); i++)
		if (rfl_cmd_in_group(commands[i], word))
			return true;
	return false;
}
