/*
 * rope.c - rotary position embedding: neighbouring features (a, b) of token t become
 * (a cos - b sin, a sin + b cos), the angle depending on t and on the pair.
 *
 * n elements: forward 2 n mul and n add; dgrad turns the other way, as much. The sines and cosines
 * are tables of T d F32 numbers together, the same for all samples and heads, and not counted.
 *
 * Traffic, unfused: forward R X, R tables, W Y; dgrad R dY, R tables, W dX: one kernel each. Fused:
 * it rides and the tables stay on chip.
 */
#include "complexity/op/parts.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	char text[96];

	(void)node;
	if (in->ndim < 2 || in->dim[in->ndim - 1] % 2 != 0)
		return rfl_fail(err, RFL_EINVAL, 0, "rotates pairs of features of tokens, got %s",
				rfl_shape_text(in, text, sizeof(text)));
	*out = *in;
	return RFL_OK;
}

static void turn(struct rfl_cost_context *c, enum rfl_pass pass, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];
	const struct rfl_shape *s = &c->in_shape;

	cost->elementwise[pass].add = c->in;
	cost->elementwise[pass].mul = rfl_cost_mul(c, 2, c->in);
	rfl_cost_read(c, u, c->in, c->value_bytes);
	rfl_cost_read(c, u, rfl_cost_mul(c, s->dim[s->ndim - 2], s->dim[s->ndim - 1]),
		      rfl_dtype_bytes(RFL_DTYPE_F32));
	rfl_cost_write(c, u, c->out, c->value_bytes);
}

static void cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	turn(c, RFL_PASS_FORWARD, cost);
	if (c->needs_dgrad)
		turn(c, RFL_PASS_DGRAD, cost);
	rfl_op_ride(c, 0, cost);
}

static const struct rfl_op_attr attrs[] = {
	RFL_OP_ATTR(REAL, rope, theta, .def = 10000),
};

const struct rfl_op_info rfl_op_rope = {
	.name = "rope",
	.module = "RotaryEmbedding",
	.autograd = "StackBackward0",
	.rides = true,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.infer = infer,
	.cost = cost,
};
