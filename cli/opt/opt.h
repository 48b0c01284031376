/*
 * opt.h - inside cli/: the options that every command has, and the setter of one value.
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

/** How many operands a command takes. */
struct rfl_opt_arity {
	size_t least;
	size_t most; /**< SIZE_MAX: any number */
};

/** Read it from the text of cmd->operands: "FILE... [OUT]" and the like. NULL: none. */
struct rfl_opt_arity rfl_opt_arity(const char *operands);

/** rfl_opt_parse() that also hands out the global options. With --help or --version nothing else is
 * required. */
enum rfl_rc rfl_opt_parse_all(const struct rfl_cmd *cmd, int argc, char *const *argv, void *args,
			      struct rfl_opt_globals *globals, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Parse the options in front of the command.
 * @param next  the index of the command's name; argc when there is none
 */
enum rfl_rc rfl_opt_parse_front(int argc, char *const *argv, struct rfl_opt_globals *globals,
				int *next, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Put one value, as the user wrote it, into the member of a row; a list grows by it.
 * @param base  the argument struct that row->offset counts from
 * @return RFL_OK; RFL_EUSAGE with "--dpi: 'abc' is not a number from 1 to 2400"; RFL_ENOMEM
 */
enum rfl_rc rfl_opt_set(const struct rfl_opt *row, void *base, const char *text,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** Put the default of a row into its member; a row without one is left as it is. */
enum rfl_rc rfl_opt_set_default(const struct rfl_opt *row, void *base,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Append a copy of a text to a list. */
enum rfl_rc rfl_opt_list_add(struct rfl_opt_list *list, const char *text, size_t len,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** Release what a list owns; it is empty afterwards. */
void rfl_opt_list_fini(struct rfl_opt_list *list);

/** What a value must be, for messages and the help page: "number from 1 to 2400", "number of at
 * least 1", "number"; "" when it is none. @return out */
char *rfl_opt_range(const struct rfl_opt *row, char *out, size_t out_size);

#endif
