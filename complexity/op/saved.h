/*
 * saved.h - the rules of what autograd keeps that several operations share.
 */
#ifndef RFL_COMPLEXITY_OP_SAVED_H
#define RFL_COMPLEXITY_OP_SAVED_H

#include <stdint.h>

#include "complexity/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rows for `saved` of operations whose gradient needs their input; one that overwrites it keeps a
 * copy. */
int rfl_op_saves_input(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED]);

/** The same of operations whose gradient needs their result, which is as good overwritten. */
int rfl_op_saves_output(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED]);

/** Append input k as the n-th, unless it is a parameter or a constant. @return n, or n + 1 */
int rfl_op_save_operand(const struct rfl_cost_context *c, int k,
			struct rfl_op_saved out[RFL_OP_MAX_SAVED], int n);

/** Append something that is no tensor of the net. @return n + 1 */
int rfl_op_save_bytes(enum rfl_saved_kind kind, int64_t bytes,
		      struct rfl_op_saved out[RFL_OP_MAX_SAVED], int n);

/** Bytes of a mean or a deviation: F32 on a GPU whatever the tensor is, the type of the parameters
 * on a CPU. */
int64_t rfl_op_statistic_bytes(const struct rfl_cost_context *c);

#ifdef __cplusplus
}
#endif
#endif
