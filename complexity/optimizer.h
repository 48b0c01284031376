/*
 * optimizer.h - what one update of all parameters costs.
 */
#ifndef RFL_COMPLEXITY_OPTIMIZER_H
#define RFL_COMPLEXITY_OPTIMIZER_H

#include "base/err.h"
#include "complexity/count.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Fill the optimizer's members of a count and its step_compulsory; the passes are there already.
 * @param unread  elements of trained parameters that the passes did not read
 */
enum rfl_rc rfl_optimizer_count(struct rfl_count *count, int64_t unread,
				struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
