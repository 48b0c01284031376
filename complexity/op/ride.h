/*
 * ride.h - the fused level of operations that a fusing library makes part of a neighbour.
 *
 * Of a chain that rides on one operation a single tensor lies in memory: the operation before it
 * writes it, the one after it reads it. The operations of the chain add only what their backward
 * passes need, and a tensor of their own where somebody else reads their input as well.
 */
#ifndef RFL_COMPLEXITY_OP_RIDE_H
#define RFL_COMPLEXITY_OP_RIDE_H

#include <stdint.h>

#include "complexity/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Fill the fused level: a mask of one bit per element in training when the operation rides on the
 * one before it (and its output, when the input must survive), else as unfused. */
void rfl_op_ride_with_mask(struct rfl_cost_context *c, struct rfl_cost *cost);

/** The same of an operation whose gradient reads `kept` elements again: of its input, or of its
 * result. 0: nothing is needed. */
void rfl_op_ride(struct rfl_cost_context *c, int64_t kept, struct rfl_cost *cost);

/** Fill the fused level with the unfused one. */
void rfl_op_ride_not(struct rfl_cost *cost);

#ifdef __cplusplus
}
#endif
#endif
