/*
 * doubts.h - inside cli/: doubts about ceilings, reported where they are used.
 */
#ifndef RFL_CLI_DOUBTS_H
#define RFL_CLI_DOUBTS_H

#include "cli/cmd.h"
#include "peaks/peaks.h"
#include "roofline/points.h"

/** Warn of all that 'roofline peaks check' doubts in the environments of the points.
 * @param envs  only these; an empty list: all */
void rfl_cli_warn_doubts(const struct rfl_peaks *peaks, const struct rfl_points *points,
			 const struct rfl_opt_list *envs);

#endif
