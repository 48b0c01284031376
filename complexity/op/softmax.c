/*
 * softmax.c - softmax over the last dimension, and the causal mask before it.
 *
 * n elements in r rows. Softmax, exp(x - max) / sum. Forward: the maximum n - r compare, x - max
 * n add, exponentials n special, their sum n - r add, the division n special. dgrad,
 * y (dY - sum(dY y)): n mul, n - r add; n add, n mul.
 *
 * Causal mask: one compare per element selects it or minus infinity, dgrad as many select dY or 0.
 * The mask itself, a byte for each pair of a query and a key, is not counted.
 *
 * Traffic, unfused: softmax forward R X, W Y (one kernel that keeps a row on chip), dgrad R y, R
 * dY, W dX; mask forward R X, R mask, W Y, dgrad R dY, R mask, W dX. Fused: both ride; the gradient
 * of the softmax reads y again.
 */
#include "complexity/op/parts.h"

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

static enum rfl_rc softmax_infer(const struct rfl_node *node, const struct rfl_shape *in,
				 struct rfl_shape *out, struct rfl_err *err)
{
	if (in->ndim < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "needs rows, got a single number");
	return rfl_op_same_shape(node, in, out, err);
}

static int64_t mask_bytes(struct rfl_cost_context *c)
{
	const struct rfl_shape *s = &c->in_shape;

	return rfl_cost_mul(c, s->dim[s->ndim - 2], s->dim[s->ndim - 1]);
}

static void select_pass(struct rfl_cost_context *c, enum rfl_pass pass, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];

	cost->elementwise[pass].compare = c->in;
	rfl_cost_read(c, u, c->in, c->value_bytes);
	rfl_cost_read(c, u, mask_bytes(c), 1);
	rfl_cost_write(c, u, c->out, c->value_bytes);
}

static void mask_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	select_pass(c, RFL_PASS_FORWARD, cost);
	if (c->needs_dgrad)
		select_pass(c, RFL_PASS_DGRAD, cost);
	rfl_op_ride(c, 0, cost);
}

static void softmax_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	int64_t n = c->in, rows = n / c->in_shape.dim[c->in_shape.ndim - 1];

	cost->elementwise[RFL_PASS_FORWARD] = (struct rfl_elementwise){
		.add = rfl_cost_mul(c, 2, n) - rows,
		.compare = n - rows,
		.special = rfl_cost_mul(c, 2, n),
	};
	rfl_cost_read(c, &u[RFL_PASS_FORWARD], n, c->value_bytes);
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], n, c->value_bytes);
	if (c->needs_dgrad) {
		cost->elementwise[RFL_PASS_DGRAD] = (struct rfl_elementwise){
			.add = rfl_cost_mul(c, 2, n) - rows,
			.mul = rfl_cost_mul(c, 2, n),
		};
		rfl_cost_read(c, &u[RFL_PASS_DGRAD], n, 2 * c->value_bytes);
		rfl_cost_write(c, &u[RFL_PASS_DGRAD], n, c->value_bytes);
	}
	rfl_op_ride(c, n, cost);
}

/* One mask for all heads and samples. */
static int mask_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	if (!c->needs_dgrad)
		return 0;
	return rfl_op_save_bytes(RFL_SAVED_MASK, mask_bytes(c), out, 0);
}

const struct rfl_op_info rfl_op_causal_mask = {
	.name = "causal_mask",
	.module = "MaskedFill",
	.autograd = "MaskedFillBackward0",
	.rides = true,
	.infer = mask_infer,
	.cost = mask_cost,
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
	.infer = softmax_infer,
	.cost = softmax_cost,
	.autocast = RFL_AUTOCAST_F32,
	.saved = rfl_op_saves_output,
	.scratch = softmax_scratch,
};
