/* opt.h - inside cli/: the options that every command has, and the help pages. */
#ifndef RFL_CLI_OPT_H
#define RFL_CLI_OPT_H

#include <stdio.h>

#include "cli/cmd.h"

/** Values of the options of every command. */
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

/** Set the member of a row to its default, if it has one. */
enum rfl_rc rfl_opt_set_default(const struct rfl_opt *row, void *base,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** The allowed values, for messages and help: "number from 1 to 2400", "number of at least 1",
 * "number"; "" if not a number. @return out */
char *rfl_opt_range(const struct rfl_opt *row, char *out, size_t out_size);

/** Environment variables that the program reads, name and meaning; NULL, NULL after the last. */
extern const char *const rfl_help_environment[][2];

/** One sentence about the program; the meaning of its exit codes. */
extern const char rfl_help_about[], rfl_help_exit_codes[];

/** The help page of the program: every command with its summary. */
void rfl_help_overview(FILE *out);

/** The commands whose name begins with the word `group` ("peaks"). */
void rfl_help_group(FILE *out, const char *group);

/** docs/commands.md: every command and option that is not hidden. */
void rfl_help_markdown(struct rfl_buf *out);

/** Write roofline.1 and roofline-COMMAND.1 of every command that is not hidden into a folder. */
enum rfl_rc rfl_help_man(const char *dir, struct rfl_err *err) RFL_WARN_UNUSED;

/** One command's usage line without its first word: "complexity --models NAME... [options]". */
void rfl_help_usage(const struct rfl_cmd *cmd, struct rfl_buf *out);

/** What follows an option's name: " N", " NAME..." for a list, "" for a flag. */
void rfl_help_meta(const struct rfl_opt *row, struct rfl_buf *out);

/** The help line of an option with its range and default: "steps to measure (at least 1; default
 * 100)". */
void rfl_help_text(const struct rfl_opt *row, struct rfl_buf *out);

#endif
