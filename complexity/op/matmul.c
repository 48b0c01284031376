/*
 * matmul.c - products of two tensors, batched over their leading dimensions: those of attention.
 *
 * {m, k} times {k, n} in B batches (samples, heads): forward B m n k multiply-adds. The gradient of
 * each factor is a product of the same three dimensions, dA = dY B^T and dB = A^T dY, so dgrad is
 * once or twice the forward pass (PyTorch's FlopCounterMode counts two bmm). The gradient of a
 * factor that is a learned tensor is wgrad.
 *
 * Under a causal mask query i sees the first i + 1 keys: of the square of T queries and T keys
 * T (T + 1) / 2 products matter, exactly (T + 1) / 2 T of it. A product that is marked causal
 * counts them alone where the options ask for it: the square is the result of q k^T, and the first
 * factor of the product with v.
 *
 * Traffic, unfused and fused: forward R A, R B, W Y; backward for each factor R dY, R the other
 * factor, W its gradient.
 */
#include "complexity/op/parts.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	int rows = in[0].ndim - 2, last = in[0].ndim - 1;
	bool transpose = node->attr.matmul.transpose_b;
	char a[96], b[96];

	if (!rfl_shape_same_leading(&in[0], &in[1]) ||
	    in[0].dim[last] != in[1].dim[transpose ? last : rows])
		return rfl_fail(err, RFL_EINVAL, 0, "cannot multiply %s by %s%s",
				rfl_shape_text(&in[0], a, sizeof(a)),
				rfl_shape_text(&in[1], b, sizeof(b)),
				transpose ? " transposed" : "");
	*out = in[0];
	out->dim[last] = in[1].dim[transpose ? rows : last];
	return RFL_OK;
}

/* All multiply-adds of one product, or those that the causal mask leaves. */
static int64_t macs_of(struct rfl_cost_context *c)
{
	const struct rfl_matmul *a = &c->node->attr.matmul;
	const struct rfl_shape *out = &c->node->shape;
	int64_t m = out->dim[out->ndim - 2], n = out->dim[out->ndim - 1];
	int64_t k = c->in_shape.dim[c->in_shape.ndim - 1];
	bool scores = m == n || (m != k && a->transpose_b);
	int64_t planes, pairs;

	if (!a->causal || !c->options->causal_half)
		return rfl_cost_mul(c, c->out, k);
	planes = c->out / m / n;
	pairs = rfl_causal_pairs(c, m, scores ? n : k);
	return rfl_cost_mul(c, rfl_cost_mul(c, planes, pairs), scores ? k : n);
}

static void cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	int64_t macs = macs_of(c);
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];

	cost->macs[RFL_PASS_FORWARD] = macs;
	cost->macs_excl_padding = macs;
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->out, c->value_bytes);
	for (int k = 0; k < 2; k++) {
		enum rfl_pass pass = rfl_op_operand_pass(c, k);

		rfl_op_operand_read(c, k, &u[RFL_PASS_FORWARD]);
		if (!c->inputs[k].grad)
			continue;
		cost->macs[pass] = rfl_cost_add(c, cost->macs[pass], macs);
		rfl_cost_read(c, &u[pass], c->out, c->value_bytes);
		rfl_op_operand_read(c, 1 - k, &u[pass]);
		rfl_op_operand_write(c, k, &u[pass]);
	}
	rfl_op_ride_not(cost);
}

/* Each factor where the other one needs a gradient. */
static int saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int n = 0;

	if (c->inputs[1].grad)
		n = rfl_op_save_operand(c, 0, out, n);
	if (c->inputs[0].grad)
		n = rfl_op_save_operand(c, 1, out, n);
	return n;
}

static const struct rfl_op_attr attrs[] = {
	RFL_OP_ATTR(BOOL, matmul, transpose_b, .def = 0),
	RFL_OP_ATTR(BOOL, matmul, causal, .def = 0),
};

const struct rfl_op_info rfl_op_matmul = {
	.name = "matmul",
	.arity = 2,
	.module = "MatMul",
	.autograd = "BmmBackward0",
	.autocast = RFL_AUTOCAST_LOWER,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.infer = infer,
	.cost = cost,
	.saved = saved,
};
