/*
 * dropout.c - dropout of elements and of samples: nothing in inference. In training a random
 * number per element is compared with the probability p and the element multiplied by 0 or
 * 1 / (1 - p): n compare, n mul; dgrad multiplies by the same. Stochastic depth draws one number
 * per sample: B compare, n mul. Drawing the random numbers is not counted.
 *
 * Traffic, unfused: forward R X, W Y, W mask (1 byte); dgrad R dY, R mask, W dX. Fused: it rides,
 * and keeps one bit per element. Stochastic depth's mask is a number per sample: written and read
 * forward, read by dgrad, and at both levels alike.
 */
#include "complexity/op/parts.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	double p = node->attr.dropout.probability;

	if (!(p >= 0.0 && p < 1.0))
		return rfl_fail(err, RFL_EINVAL, 0, "probability %g is not in [0, 1)", p);
	return rfl_op_same_shape(node, in, out, err);
}

/* Whether anything happens at all. */
static bool drops(const struct rfl_cost_context *c)
{
	return c->options->training && c->node->attr.dropout.probability > 0.0;
}

static void cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];

	if (!drops(c))
		return;
	cost->elementwise[RFL_PASS_FORWARD].compare = c->in;
	cost->elementwise[RFL_PASS_FORWARD].mul = c->in;
	rfl_cost_read(c, &u[RFL_PASS_FORWARD], c->in, c->value_bytes);
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->out, c->value_bytes + 1);
	if (c->needs_dgrad) {
		cost->elementwise[RFL_PASS_DGRAD].mul = c->in;
		rfl_cost_read(c, &u[RFL_PASS_DGRAD], c->out, c->value_bytes + 1);
		rfl_cost_write(c, &u[RFL_PASS_DGRAD], c->in, c->value_bytes);
	}
	rfl_op_ride_with_mask(c, cost);
}

/* One byte per element on a GPU. On a CPU, and where the input is overwritten, the noise is a
 * tensor of the input's type. */
static int saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int64_t size = c->on_cpu || c->node->inplace ? c->value_bytes : 1;

	if (!drops(c) || !c->needs_dgrad)
		return 0;
	return rfl_op_save_bytes(RFL_SAVED_MASK, rfl_cost_mul(c, c->in, size), out, 0);
}

static void depth_noise(struct rfl_cost_context *c, struct rfl_traffic *t)
{
	rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->batch, c->value_bytes);
	rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->batch, c->value_bytes);
	if (c->needs_dgrad)
		rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->batch, c->value_bytes);
}

static void depth_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	static const struct rfl_op_unary op = {
		.forward = { .mul = 1 },
		.dgrad = { .mul = 1 },
		.needs = RFL_OP_NEEDS_NOTHING,
	};

	if (!drops(c))
		return;
	rfl_op_unary_cost(c, &op, cost);
	cost->elementwise[RFL_PASS_FORWARD].compare = c->batch;
	depth_noise(c, cost->traffic[RFL_FUSION_UNFUSED]);
	depth_noise(c, cost->traffic[RFL_FUSION_FUSED]);
}

/* A number per sample. */
static int depth_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	if (!drops(c) || !c->needs_dgrad)
		return 0;
	return rfl_op_save_bytes(RFL_SAVED_MASK, rfl_cost_mul(c, c->batch, c->value_bytes), out, 0);
}

static const struct rfl_op_attr attrs[] = {
	RFL_OP_ATTR(REAL, dropout, probability, .required = true),
};

const struct rfl_op_info rfl_op_dropout = {
	.name = "dropout",
	.module = "Dropout",
	.autograd = "NativeDropoutBackward0",
	.rides = true,
	.infer = infer,
	.cost = cost,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.saved = saved,
};

const struct rfl_op_info rfl_op_stochastic_depth = {
	.name = "stochastic_depth",
	.module = "StochasticDepth",
	.autograd = "MulBackward0",
	.rides = true,
	.infer = infer,
	.cost = depth_cost,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.saved = depth_saved,
};
