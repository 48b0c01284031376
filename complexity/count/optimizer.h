/*
 * optimizer.h - what one update of all parameters costs.
 */
#ifndef RFL_COMPLEXITY_OPTIMIZER_H
#define RFL_COMPLEXITY_OPTIMIZER_H

#include "base/err.h"
#include "complexity/count.h"

/**
 * Fill the optimizer's members of a count and its step_compulsory; the passes are there already.
 * @param unread  elements of trained parameters that the passes did not read
 */
enum rfl_rc rfl_optimizer_count(struct rfl_count *count, int64_t unread,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Words of state per trained parameter: momentum, or both moments of Adam. */
int64_t rfl_optimizer_state_words(enum rfl_optimizer_kind kind);

/** What an update allocates beside weights, gradients and state, at the most. */
struct rfl_optimizer_scratch {
	int lists;   /**< tensors as large as all parameters, when they are updated together */
	int tensors; /**< tensors as large as one parameter, when they are updated in turn */
};
const struct rfl_optimizer_scratch *rfl_optimizer_scratch_of(enum rfl_optimizer_kind kind);

#endif
