/*
 * step.h - the step that a row describes, in the terms of complexity/. The counts and predictions
 * for a row use these options, so that they agree.
 */
#ifndef RFL_LEDGER_STEP_H
#define RFL_LEDGER_STEP_H

#include "complexity/count/memory.h"
#include "ledger/ledger.h"

/** Whether a mode is a language model's with a cache, decode or prefill. NULL: no. */
bool rfl_step_caches(const char *mode);

/** When the engine of a row has a fused kernel for attention on its device. */
enum rfl_fused_attention rfl_step_fused_attention(const struct rfl_ledger_row *row);

/** The optimizer of a row; if it is unknown, the default of 'run'. */
const char *rfl_step_optimizer(const struct rfl_ledger_row *row);

/**
 * The options of counts and memory. The batch is for one forward pass. Fields that are unknown,
 * as before a run, have the values of a run with the default options.
 * @return RFL_OK; RFL_EINVAL: the precision or the optimizer is not valid
 */
enum rfl_rc rfl_step_options(const struct rfl_ledger_row *row, struct rfl_memory_options *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

#endif
