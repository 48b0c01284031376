/* plan_impl.h - private to the files of plan/. */
#ifndef RFL_COMPLEXITY_PLAN_IMPL_H
#define RFL_COMPLEXITY_PLAN_IMPL_H

#include "complexity/plan/plan.h"

/** Append a buffer. @return its index */
int rfl_plan__buffer(struct rfl_plan *plan, int64_t bytes);

/** Make a buffer the step's operand, alive at that step. */
void rfl_plan__use(struct rfl_plan *plan, int step, enum rfl_plan_slot slot, int buffer);

#endif
