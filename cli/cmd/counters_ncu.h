/*
 * counters_ncu.h - inside cli/: the metrics of a chip as an argument of ncu.
 */
#ifndef RFL_CLI_COUNTERS_NCU_H
#define RFL_CLI_COUNTERS_NCU_H

#include "cli/cmd.h"
#include "cli/cmd/counters_chip.h"

/**
 * Print "--metrics a,b,c" with names that exist on the chip, and on standard error in how many
 * passes they are counted.
 * @param precision  whose matrix FLOPs are asked for; NULL: those of all data types
 */
enum rfl_rc rfl_counters_print_ncu(struct rfl_cli *cli, const struct rfl_asked_chip *chip,
				   const char *precision, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
