/*
 * op_softmax.c - softmax over the last dimension, and the causal mask before it.
 */
#include "complexity/op.h"

static enum rfl_rc mask_infer(const struct rfl_node *node, const struct rfl_shape *in,
			      struct rfl_shape *out, struct rfl_err *err)
{
	char text[96];

	(void)node;
	if (in->ndim < 2)
		return rfl_fail(err, RFL_EINVAL, 0, "needs rows and columns, got %s",
				rfl_shape_text(in, text, sizeof(text)));
	*out = *in;
	return RFL_OK;
}

const struct rfl_op_info rfl_op_causal_mask = {
	.name = "causal_mask",
	.module = "MaskedFill",
	.autograd = "MaskedFillBackward0",
	.rides = true,
	.infer = mask_infer,
};

const struct rfl_op_info rfl_op_softmax = {
	.name = "softmax",
	.module = "Softmax",
	.autograd = "SoftmaxBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.autocast = RFL_AUTOCAST_F32,
};
