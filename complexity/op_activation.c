/*
 * op_activation.c - ReLU and ReLU6.
 *
 * n elements. Forward: one compare per bound, so n for ReLU (max(x, 0)) and 2 n for ReLU6
 * (min(max(x, 0), 6)); dgrad: the same compares select dY or 0.
 *
 * Traffic, unfused: forward R X, W Y; dgrad R dY, R Y (or X, which is as large), W dX. Fused: both
 * ride on their neighbour; training keeps one bit per element for the backward pass.
 */
#include "complexity/op.h"
#include "complexity/op_saved.h"
#include "complexity/op_ride.h"

static void activation_cost(struct rfl_cost_context *c, int64_t bounds, struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];

	cost->elementwise[RFL_PASS_FORWARD].compare = rfl_cost_mul(c, bounds, c->in);
	rfl_cost_read(c, &u[RFL_PASS_FORWARD], c->in, c->value_bytes);
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->needs_dgrad) {
		cost->elementwise[RFL_PASS_DGRAD].compare = rfl_cost_mul(c, bounds, c->in);
		rfl_cost_read(c, &u[RFL_PASS_DGRAD], c->out, 2 * c->value_bytes);
		rfl_cost_write(c, &u[RFL_PASS_DGRAD], c->in, c->value_bytes);
	}
	rfl_op_ride_with_mask(c, cost);
}

static void relu_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	activation_cost(c, 1, cost);
}

static void relu6_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	activation_cost(c, 2, cost);
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
	.cost = relu_cost,
	.saved = rfl_op_saves_output,
};

const struct rfl_op_info rfl_op_relu6 = {
	.name = "relu6",
	.module = "ReLU6",
	.autograd = "HardtanhBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.cost = relu6_cost,
	.saved = rfl_op_saves_input,
};

const struct rfl_op_info rfl_op_sigmoid = {
	.name = "sigmoid",
	.module = "Sigmoid",
	.autograd = "SigmoidBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.saved = rfl_op_saves_output,
};

const struct rfl_op_info rfl_op_silu = {
	.name = "silu",
	.module = "SiLU",
	.autograd = "SiluBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.saved = rfl_op_saves_input,
};

const struct rfl_op_info rfl_op_gelu = {
	.name = "gelu",
	.module = "GELU",
	.autograd = "GeluBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.attrs = gelu_attrs,
	.nattrs = RFL_ARRAY_LEN(gelu_attrs),
	.saved = rfl_op_saves_input,
};

const struct rfl_op_info rfl_op_hard_sigmoid = {
	.name = "hard_sigmoid",
	.module = "Hardsigmoid",
	.autograd = "HardsigmoidBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.saved = rfl_op_saves_input,
};

const struct rfl_op_info rfl_op_hard_swish = {
	.name = "hard_swish",
	.module = "Hardswish",
	.autograd = "HardswishBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.saved = rfl_op_saves_input,
};
