/*
 * weights.h - what convolution and matrix product have in common: a weight and perhaps a bias.
 */
#ifndef RFL_COMPLEXITY_OP_WEIGHTS_H
#define RFL_COMPLEXITY_OP_WEIGHTS_H

#include <stdint.h>

#include "complexity/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_op_weights {
	int64_t macs;    /**< forward, over the batch */
	int64_t weights; /**< elements */
	int64_t biases;  /**< elements, 0 without a bias */
};

/** Fill MACs of all passes, the bias's additions and the traffic of the unfused and fused levels.
 */
void rfl_op_weights_cost(struct rfl_cost_context *c, const struct rfl_op_weights *w,
			 struct rfl_cost *cost);

#ifdef __cplusplus
}
#endif
#endif
