/*
 * op_ride.h - the fused level of operations that need one bit per element in the backward pass.
 */
#ifndef RFL_COMPLEXITY_OP_RIDE_H
#define RFL_COMPLEXITY_OP_RIDE_H

#include "complexity/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Fill the fused level: a mask of one bit per element in training when the operation rides on the
 * one before it (and its output, when the input must survive), else as unfused. */
void rfl_op_ride_with_mask(struct rfl_cost_context *c, struct rfl_cost *cost);

#ifdef __cplusplus
}
#endif
#endif
