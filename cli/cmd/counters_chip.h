/*
 * counters_chip.h - inside cli/: a chip as the user names it, its formulas, and CUPTI's word on it
 * where there is a libcupti.
 */
#ifndef RFL_CLI_COUNTERS_CHIP_H
#define RFL_CLI_COUNTERS_CHIP_H

#include "base/err.h"
#include "profile/cupti/plan.h"
#include "profile/formula.h"

struct rfl_asked_chip {
	char name[32];               /**< "GH100" */
	struct rfl_formulas *f;      /**< NULL: only with `any_chip`: we have none for it */
	struct rfl_cupti *lib;       /**< NULL: none here */
	struct rfl_cupti_host *host; /**< NULL: none here, or it does not describe the chip */
	struct rfl_err why;          /**< why there is no host */
};

/**
 * @param text  a chip ("GH100", in any case), or a product of which the chip is known ("H100")
 * @param ret   release with rfl_asked_chip_fini() in any case
 * @return RFL_OK, also without libcupti; RFL_ENOTFOUND naming what is near
 */
enum rfl_rc rfl_asked_chip_init(struct rfl_asked_chip *ret, const char *text,
				struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_asked_chip_fini(struct rfl_asked_chip *c);

#endif
