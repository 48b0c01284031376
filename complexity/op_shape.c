/*
 * op_shape.c - operations that compute nothing: the input of the network and flatten, a view.
 */
#include "complexity/op.h"

static enum rfl_rc input_infer(const struct rfl_node *node, const struct rfl_shape *in,
			       struct rfl_shape *out, struct rfl_err *err)
{
	(void)in;
	for (int i = 0; i < node->shape.ndim; i++)
		if (node->shape.dim[i] < 1)
			return rfl_fail(err, RFL_EINVAL, 0, "dimension %d is %lld, not 1 or more",
					i, (long long)node->shape.dim[i]);
	*out = node->shape;
	return RFL_OK;
}

static enum rfl_rc flatten_infer(const struct rfl_node *node, const struct rfl_shape *in,
				 struct rfl_shape *out, struct rfl_err *err)
{
	(void)node;
	(void)err;
	*out = (struct rfl_shape){ .ndim = 1, .dim = { rfl_shape_numel(in) } };
	return RFL_OK;
}

const struct rfl_op_info rfl_op_input = {
	.name = "input",
	.module = "Input",
	.infer = input_infer,
};

const struct rfl_op_info rfl_op_flatten = {
	.name = "flatten",
	.module = "Flatten",
	.rides = true,
	.infer = flatten_infer,
};
