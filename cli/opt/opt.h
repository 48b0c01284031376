/* opt.h - inside cli/: the common options of all commands, and the help pages. */
#ifndef RFL_CLI_OPT_H
#define RFL_CLI_OPT_H

#include <stdio.h>

#include "base/num.h"
#include "cli/cmd.h"
#include "cli/project.h"

/** The page of --help. */
enum rfl_help { RFL_HELP_NONE, RFL_HELP_SHORT, RFL_HELP_ALL };

/** Values of the common options. */
struct rfl_opt_globals {
	int help; /**< enum rfl_help */
	bool version, quiet, verbose;
	struct rfl_project *project; /**< defaults of --env, --log-dir, ...; NULL: none */
};

/** The rows of the common options, terminated by a row with name NULL. */
extern const struct rfl_opt rfl_opt_global_rows[];

/**
 * Parse the options before the name of the command.
 * @param next  set to the index of the name; argc if there is none
 */
enum rfl_rc rfl_opt_parse_front(int argc, char *const *argv, struct rfl_opt_globals *globals,
				int *next, struct rfl_err *err) RFL_WARN_UNUSED;

/** The default of an option outside a project, as typed; NULL: none, or only if it exists. */
const char *rfl_opt_default(const struct rfl_opt *row);

/** Set the member of an option to this default, if any. */
enum rfl_rc rfl_opt_set_default(const struct rfl_opt *row, void *base,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** The value of an option as typed, also "on" and "off"; NULL: none, or a list. */
const char *rfl_opt_text(const struct rfl_opt *row, const void *args, char number[RFL_NUM_MAX]);

/** Return true if two names belong to one option: "model" and "arch". */
bool rfl_opt_same_name(const char *a, const char *b);

/** Describe the allowed numbers: "number from 1 to 2400", "number of at least 1" or "number"; "" if
 * the option is not a number. @return out */
char *rfl_opt_range(const struct rfl_opt *row, char *out, size_t out_size);

/** Names and meanings of the environment variables that the program reads, terminated by NULL. */
extern const char *const rfl_help_environment[][2];

/** A summary of the program; the meaning of its exit codes. */
extern const char rfl_help_about[], rfl_help_exit_codes[];

/** Print the help page of the program, with a list of commands. */
void rfl_help_overview(FILE *out);

/** Append the name of a manual page, such as roofline-peaks-measure; cmd NULL: roofline. */
void rfl_help_man_name(const struct rfl_cmd *cmd, struct rfl_buf *out);

/** Print the help page of a group of commands, such as "peaks". */
void rfl_help_group(FILE *out, const char *group);

/** Append the text of docs/reference/commands.md. */
void rfl_help_markdown(struct rfl_buf *out);

/** Write roofline.1 and a roofline-COMMAND.1 for every command to a directory. */
enum rfl_rc rfl_help_man(const char *dir, struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the usage line without "roofline": "complexity --models NAME... [options]". */
void rfl_help_usage(const struct rfl_cmd *cmd, struct rfl_buf *out);

/** Append the placeholder of the value: " N"; " NAME..." for a list; "" for a flag. */
void rfl_help_meta(const struct rfl_opt *row, struct rfl_buf *out);

/** Append the help text with range and default: "steps to measure (at least 1; default 100)". */
void rfl_help_text(const struct rfl_opt *row, struct rfl_buf *out);

#endif
