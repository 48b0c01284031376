/*
 * cli.h - inside cli/: what the dispatcher, the progress line and single commands share.
 */
#ifndef RFL_CLI_CLI_H
#define RFL_CLI_CLI_H

#include "cli/cmd.h"

#ifdef __cplusplus
extern "C" {
#endif

/** RFL_EUSAGE that names the nearest command, or where they are listed. */
enum rfl_rc rfl_cli_unknown_command(const char *name, struct rfl_err *err);

/** Take the progress line off the screen, so that a message can be printed there. */
void rfl_cli_clear_line(struct rfl_cli *cli);

#ifdef __cplusplus
}
#endif
#endif
