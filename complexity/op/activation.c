/*
 * activation.c - activations: ReLU, ReLU6, sigmoid, tanh, SiLU, GELU and the two hard ones.
 *
 * Operations of the formulas per element, a change of sign not counted; s is the sigmoid.
 *
 *	operation     forward                                  dgrad
 *	relu          max(x, 0)                                dY where x > 0
 *	relu6         min(max(x, 0), 6)                        dY where 0 < x < 6
 *	sigmoid       1 / (1 + exp(-x))                        dY y (1 - y)
 *	tanh          tanh(x)                                  dY (1 - y^2)
 *	silu          x / (1 + exp(-x))                        dY s (1 + x (1 - s)), s again
 *	gelu          x / 2 (1 + erf(x / sqrt 2))              dY (cdf + x pdf), both again
 *	gelu, tanh    x / 2 (1 + tanh(k (x + c x^3)))          dY (h (1 + t) + x / 2 (1 - t^2) k
 *	                                                          (1 + 3 c x^2)), t again
 *	hard_sigmoid  min(max(x + 3, 0), 6) / 6                dY / 6 where -3 < x < 3
 *	hard_swish    x min(max(x + 3, 0), 6) / 6              dY, 0 or dY (x / 3 + 1 / 2)
 *
 * Formulas as in PyTorch's kernels (aten/src/ATen/native/cuda/Activation*Kernel.cu). Exponential,
 * division, erf and tanh are special; a division by a constant is a multiplication.
 *
 * Traffic: op/parts.c. ReLU and ReLU6 need one bit per element in the backward pass of a fused
 * operation, the others their input (sigmoid and tanh their result).
 */
#include "complexity/op/parts.h"

static void gelu_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	static const struct rfl_op_unary exact = {
		.forward = { .add = 1, .mul = 3, .special = 1 },
		.dgrad = { .add = 2, .mul = 7, .special = 2 },
	};
	static const struct rfl_op_unary tanh = {
		.forward = { .add = 2, .mul = 6, .special = 1 },
		.dgrad = { .add = 5, .mul = 12, .special = 1 },
	};

	rfl_op_unary_cost(c, c->node->attr.gelu.tanh ? &tanh : &exact, cost);
}

static const struct rfl_op_attr gelu_attrs[] = {
	RFL_OP_ATTR(BOOL, gelu, tanh, .def = 0),
};

const struct rfl_op_info rfl_op_relu = {
	.name = "relu",
	.module = "ReLU",
	.autograd = "ReluBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.unary =
		&(const struct rfl_op_unary){
			.forward = { .compare = 1 },
			.dgrad = { .compare = 1 },
			.needs = RFL_OP_NEEDS_BIT,
		},
	.saved = rfl_op_saves_output,
};

const struct rfl_op_info rfl_op_relu6 = {
	.name = "relu6",
	.module = "ReLU6",
	.autograd = "HardtanhBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.unary =
		&(const struct rfl_op_unary){
			.forward = { .compare = 2 },
			.dgrad = { .compare = 2 },
			.needs = RFL_OP_NEEDS_BIT,
		},
	.saved = rfl_op_saves_input,
};

const struct rfl_op_info rfl_op_sigmoid = {
	.name = "sigmoid",
	.module = "Sigmoid",
	.autograd = "SigmoidBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.unary =
		&(const struct rfl_op_unary){
			.forward = { .add = 1, .special = 2 },
			.dgrad = { .add = 1, .mul = 2 },
		},
	.saved = rfl_op_saves_output,
};

const struct rfl_op_info rfl_op_tanh = {
	.name = "tanh",
	.module = "Tanh",
	.autograd = "TanhBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.unary =
		&(const struct rfl_op_unary){
			.forward = { .special = 1 },
			.dgrad = { .add = 1, .mul = 2 },
		},
	.saved = rfl_op_saves_output,
};

const struct rfl_op_info rfl_op_silu = {
	.name = "silu",
	.module = "SiLU",
	.autograd = "SiluBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.unary =
		&(const struct rfl_op_unary){
			.forward = { .add = 1, .special = 2 },
			.dgrad = { .add = 3, .mul = 3, .special = 2 },
		},
	.saved = rfl_op_saves_input,
};

const struct rfl_op_info rfl_op_gelu = {
	.name = "gelu",
	.module = "GELU",
	.autograd = "GeluBackward0",
	.rides = true,
	.attrs = gelu_attrs,
	.nattrs = RFL_ARRAY_LEN(gelu_attrs),
	.infer = rfl_op_same_shape,
	.cost = gelu_cost,
	.saved = rfl_op_saves_input,
};

const struct rfl_op_info rfl_op_hard_sigmoid = {
	.name = "hard_sigmoid",
	.module = "Hardsigmoid",
	.autograd = "HardsigmoidBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.unary =
		&(const struct rfl_op_unary){
			.forward = { .add = 1, .mul = 1, .compare = 2 },
			.dgrad = { .mul = 1, .compare = 2 },
		},
	.saved = rfl_op_saves_input,
};

const struct rfl_op_info rfl_op_hard_swish = {
	.name = "hard_swish",
	.module = "Hardswish",
	.autograd = "HardswishBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.unary =
		&(const struct rfl_op_unary){
			.forward = { .add = 1, .mul = 2, .compare = 2 },
			.dgrad = { .add = 1, .mul = 2, .compare = 2 },
		},
	.saved = rfl_op_saves_input,
};
