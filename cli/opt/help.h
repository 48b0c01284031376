/*
 * help.h - inside cli/: pages made from the rows of commands and options.
 */
#ifndef RFL_CLI_HELP_H
#define RFL_CLI_HELP_H

#include <stdio.h>

#include "base/buf.h"
#include "cli/cmd.h"

/** Environment variables that the program reads, name and meaning; NULL, NULL after the last. */
extern const char *const rfl_help_environment[][2];

/** What the program is, in a sentence, and what its exit codes mean. */
extern const char rfl_help_about[], rfl_help_exit_codes[];

/** The page of the program: every command with its line. */
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
