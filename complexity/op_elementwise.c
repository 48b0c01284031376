/*
 * op_elementwise.c - exponential, logarithm, root, square and scaling: the steps that composed
 * operations are made of.
 */
#include "complexity/op.h"

const struct rfl_op_info rfl_op_exp = {
	.name = "exp",
	.module = "Exp",
	.rides = true,
	.infer = rfl_op_same_shape,
};

const struct rfl_op_info rfl_op_log = {
	.name = "log",
	.module = "Log",
	.rides = true,
	.infer = rfl_op_same_shape,
};

const struct rfl_op_info rfl_op_rsqrt = {
	.name = "rsqrt",
	.module = "Rsqrt",
	.rides = true,
	.infer = rfl_op_same_shape,
};

const struct rfl_op_info rfl_op_square = {
	.name = "square",
	.module = "Square",
	.rides = true,
	.infer = rfl_op_same_shape,
};

const struct rfl_op_info rfl_op_affine = {
	.name = "affine",
	.module = "Affine",
	.rides = true,
	.infer = rfl_op_same_shape,
};
