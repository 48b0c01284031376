/*
 * op_softmax.c - softmax over the last dimension, and the causal mask before it.
 */
#include "complexity/op.h"
#include "complexity/op_saved.h"

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

/* One mask for all heads and samples. */
static int mask_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	const struct rfl_shape *s = &c->in_shape;

	if (!c->needs_dgrad)
		return 0;
	return rfl_op_save_bytes(RFL_SAVED_MASK,
				 rfl_cost_mul(c, s->dim[s->ndim - 2], s->dim[s->ndim - 1]), out, 0);
}

const struct rfl_op_info rfl_op_causal_mask = {
	.name = "causal_mask",
	.module = "MaskedFill",
	.autograd = "MaskedFillBackward0",
	.rides = true,
	.infer = mask_infer,
	.saved = mask_saved,
};

/* On a GPU dY * y is made first. */
static void softmax_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	if (c->needs_dgrad && !c->on_cpu)
		out->backward = rfl_cost_mul(c, c->out, c->value_bytes);
}

const struct rfl_op_info rfl_op_softmax = {
	.name = "softmax",
	.module = "Softmax",
	.autograd = "SoftmaxBackward0",
	.rides = true,
	.infer = rfl_op_same_shape,
	.autocast = RFL_AUTOCAST_F32,
	.saved = rfl_op_saves_output,
	.scratch = softmax_scratch,
};
