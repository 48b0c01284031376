/*
 * cli.h - inside cli/: what main.c, the dispatcher and the progress line share.
 */
#ifndef RFL_CLI_CLI_H
#define RFL_CLI_CLI_H

#include "cli/cmd.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Take the progress line off the screen, so that a message can be printed there. */
void rfl_cli_clear_line(struct rfl_cli *cli);

#ifdef __cplusplus
}
#endif
#endif
