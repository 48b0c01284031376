/*
 * opt.h - inside cli/: the options that every command has, and what the help pages ask of a row.
 */
#ifndef RFL_CLI_OPT_H
#define RFL_CLI_OPT_H

#include "cli/cmd.h"

/** What the global options set. */
struct rfl_opt_globals {
	bool help, version, quiet, verbose;
};

/** -h, --help; -q, --quiet; -v, --verbose; --version. Ended by a row with name NULL. */
extern const struct rfl_opt rfl_opt_global_rows[];

/**
 * Parse the options in front of the command.
 * @param next  the index of the command's name; argc when there is none
 */
enum rfl_rc rfl_opt_parse_front(int argc, char *const *argv, struct rfl_opt_globals *globals,
				int *next, struct rfl_err *err) RFL_WARN_UNUSED;

/** Put the default of a row into its member; a row without one is left as it is. */
enum rfl_rc rfl_opt_set_default(const struct rfl_opt *row, void *base,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** What a value must be, for messages and the help page: "number from 1 to 2400", "number of at
 * least 1", "number"; "" when it is none. @return out */
char *rfl_opt_range(const struct rfl_opt *row, char *out, size_t out_size);

#endif
