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
};

const struct rfl_op_info rfl_op_square = {
	.name = "square",
	.module = "Square",
	.autograd = "PowBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.autocast = RFL_AUTOCAST_F32,
	.saved = rfl_op_saves_input,
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
