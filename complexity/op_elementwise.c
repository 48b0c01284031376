/*
 * op_elementwise.c - exponential, logarithm, root, square and scaling: the steps that composed
 * operations are made of.
 */
#include "complexity/op.h"
#include "complexity/op_saved.h"

static const struct rfl_op_attr affine_attrs[] = {
	RFL_OP_ATTR(REAL, affine, scale, .def = 1),
	RFL_OP_ATTR(REAL, affine, shift, .def = 0),
};

/* dX = dY * (2 * x^1) and dY * -1/2 * y^3: the power and what is multiplied by it. */
static void power_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	if (c->needs_dgrad)
		out->backward = rfl_cost_mul(c, c->in, 2 * c->value_bytes);
}

const struct rfl_op_info rfl_op_exp = {
	.name = "exp",
	.module = "Exp",
	.autograd = "ExpBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.autocast = RFL_AUTOCAST_F32,
	.saved = rfl_op_saves_output,
};

const struct rfl_op_info rfl_op_log = {
	.name = "log",
	.module = "Log",
	.autograd = "LogBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.autocast = RFL_AUTOCAST_F32,
	.saved = rfl_op_saves_input,
};

const struct rfl_op_info rfl_op_rsqrt = {
	.name = "rsqrt",
	.module = "Rsqrt",
	.autograd = "RsqrtBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.autocast = RFL_AUTOCAST_F32,
	.saved = rfl_op_saves_output,
	.scratch = power_scratch,
};

const struct rfl_op_info rfl_op_square = {
	.name = "square",
	.module = "Square",
	.autograd = "PowBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.autocast = RFL_AUTOCAST_F32,
	.saved = rfl_op_saves_input,
	.scratch = power_scratch,
};

const struct rfl_op_info rfl_op_affine = {
	.name = "affine",
	.module = "Affine",
	.autograd = "MulBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.attrs = affine_attrs,
	.nattrs = RFL_ARRAY_LEN(affine_attrs),
};
