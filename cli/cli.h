/*
 * cli.h - inside cli/: what the dispatcher, the progress line and single commands share.
 */
#ifndef RFL_CLI_CLI_H
#define RFL_CLI_CLI_H

#include "cli/cmd.h"

/** RFL_EUSAGE that names the nearest command, or where they are listed. */
enum rfl_rc rfl_cli_unknown_command(const char *name, struct rfl_err *err);

/** Print a message on stderr, in place of the progress line. From any thread. */
void rfl_cli_say(struct rfl_cli *cli, const char *fmt, ...) RFL_PRINTF(2, 3);

#endif
