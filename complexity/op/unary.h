/*
 * unary.h - the cost of an operation that maps each element of one tensor by itself.
 */
#ifndef RFL_COMPLEXITY_OP_UNARY_H
#define RFL_COMPLEXITY_OP_UNARY_H

#include "complexity/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the gradient needs beside dY: the input or the result; of it one bit per element, when it
 * is fused; nothing. */
enum rfl_op_needs { RFL_OP_NEEDS_TENSOR, RFL_OP_NEEDS_BIT, RFL_OP_NEEDS_NOTHING };

struct rfl_op_unary {
	struct rfl_elementwise forward, dgrad; /**< per element */
	enum rfl_op_needs needs;
	/** Tensors of a gradient that an eager framework computes in `steps` more kernels: each
	 * reads one and writes one. */
	int64_t steps;
};

void rfl_op_unary_cost(struct rfl_cost_context *c, const struct rfl_op_unary *op,
		       struct rfl_cost *cost);

/** Add counts per element times `elements` to counts. */
void rfl_op_add_elementwise(struct rfl_cost_context *c, struct rfl_elementwise *sum,
			    const struct rfl_elementwise *per_element, int64_t elements);

#ifdef __cplusplus
}
#endif
#endif
