/*
 * operand.h - the inputs of operations that take several tensors: some are activations, some
 * learned tensors or constants, some are repeated to fit the others.
 *
 * A learned tensor's gradient belongs to the operation that reads it: what is computed for it
 * counts as wgrad there, the sum over samples and positions included.
 */
#ifndef RFL_COMPLEXITY_OP_OPERAND_H
#define RFL_COMPLEXITY_OP_OPERAND_H

#include <stdint.h>

#include "complexity/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of an element of input k: learned tensors and constants are stored as parameters. */
int64_t rfl_op_operand_bytes(const struct rfl_cost_context *c, int k);

/** Read input k, or write its gradient, at its own size. */
void rfl_op_operand_read(struct rfl_cost_context *c, int k, struct rfl_traffic *t);
void rfl_op_operand_write(struct rfl_cost_context *c, int k, struct rfl_traffic *t);

/** The pass that the gradient of input k belongs to. */
enum rfl_pass rfl_op_operand_pass(const struct rfl_cost_context *c, int k);

/** Sum a gradient of c->out elements over what input k was repeated for: the additions, and
 * unfused a kernel that reads the gradient and writes the sum. Free where nothing was repeated. */
void rfl_op_operand_reduce(struct rfl_cost_context *c, int k, struct rfl_cost *cost);

/** The input with the most elements: what an operation with several inputs rides on. */
int rfl_op_operand_largest(struct rfl_cost_context *c);

#ifdef __cplusplus
}
#endif
#endif
