/*
 * op_attention.c - the products of attention: batched matrix products, fused attention, and rotary
 * position embedding.
 */
#include "complexity/op.h"
#include "complexity/op_saved.h"

static bool same_leading(const struct rfl_shape *a, const struct rfl_shape *b)
{
	if (a->ndim != b->ndim || a->ndim < 2)
		return false;
	for (int i = 0; i < a->ndim - 2; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	return true;
}

static enum rfl_rc matmul_infer(const struct rfl_node *node, const struct rfl_shape *in,
				struct rfl_shape *out, struct rfl_err *err)
{
	int rows = in[0].ndim - 2, last = in[0].ndim - 1;
	bool transpose = node->attr.matmul.transpose_b;
	char a[96], b[96];

	if (!same_leading(&in[0], &in[1]) || in[0].dim[last] != in[1].dim[transpose ? last : rows])
		return rfl_fail(err, RFL_EINVAL, 0, "cannot multiply %s by %s%s",
				rfl_shape_text(&in[0], a, sizeof(a)),
				rfl_shape_text(&in[1], b, sizeof(b)),
				transpose ? " transposed" : "");
	*out = in[0];
	out->dim[last] = in[1].dim[transpose ? rows : last];
	return RFL_OK;
}

static enum rfl_rc sdpa_infer(const struct rfl_node *node, const struct rfl_shape *in,
			      struct rfl_shape *out, struct rfl_err *err)
{
	int rows = in[0].ndim - 2, last = in[0].ndim - 1;
	char q[96], k[96], v[96];

	(void)node;
	if (!same_leading(&in[0], &in[1]) || !same_leading(&in[1], &in[2]) ||
	    in[0].dim[last] != in[1].dim[last] || in[1].dim[rows] != in[2].dim[rows])
		return rfl_fail(err, RFL_EINVAL, 0, "q %s, k %s and v %s do not fit together",
				rfl_shape_text(&in[0], q, sizeof(q)),
				rfl_shape_text(&in[1], k, sizeof(k)),
				rfl_shape_text(&in[2], v, sizeof(v)));
	*out = in[0];
	out->dim[last] = in[2].dim[last];
	return RFL_OK;
}

static enum rfl_rc rope_infer(const struct rfl_node *node, const struct rfl_shape *in,
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

/* The scores of a fused attention: a row for each query, in all heads and samples. */
struct scores {
	int64_t rows, keys;
};

static struct scores scores_of(struct rfl_cost_context *c)
{
	const struct rfl_shape *k = c->inputs[1].shape, *q = &c->in_shape;

	return (struct scores){
		.rows = c->in / q->dim[q->ndim - 1],
		.keys = k->dim[k->ndim - 2],
	};
}

/* Each factor where the other one needs a gradient. */
static int matmul_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int n = 0;

	if (c->inputs[1].grad)
		n = rfl_op_save_operand(c, 0, out, n);
	if (c->inputs[0].grad)
		n = rfl_op_save_operand(c, 1, out, n);
	return n;
}

/* The kernels keep q, k, v, the result and one logarithm of a sum per row. PyTorch's CPU kernel
 * knows no dropout: then it runs the products one by one, on scaled copies of q and k. */
static int sdpa_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	bool steps = c->on_cpu && c->options->training && c->node->attr.sdpa.dropout > 0.0;
	struct scores s = scores_of(c);
	int64_t scores = rfl_cost_mul(c, rfl_cost_mul(c, s.rows, s.keys), c->value_bytes);
	int n = 0;

	if (!c->needs_dgrad)
		return 0;
	if (!steps) {
		for (int k = 0; k < 3; k++)
			n = rfl_op_save_operand(c, k, out, n);
		out[n++] = (struct rfl_op_saved){ .kind = RFL_SAVED_OUTPUT };
		return rfl_op_save_bytes(RFL_SAVED_STATISTICS,
					 rfl_cost_mul(c, s.rows, rfl_dtype_bytes(RFL_DTYPE_F32)),
					 out, n);
	}
	n = rfl_op_save_bytes(RFL_SAVED_INTERNAL,
			      rfl_cost_mul(c, rfl_cost_add(c, rfl_cost_in(c, 0), rfl_cost_in(c, 1)),
					   c->value_bytes),
			      out, n);
	n = rfl_op_save_operand(c, 2, out, n);
	n = rfl_op_save_bytes(RFL_SAVED_INTERNAL, scores, out, n); /* softmax */
	n = rfl_op_save_bytes(RFL_SAVED_INTERNAL, scores, out, n); /* what dropout left of it */
	return rfl_op_save_bytes(RFL_SAVED_MASK, scores, out, n);
}

static const struct rfl_op_attr matmul_attrs[] = {
	RFL_OP_ATTR(BOOL, matmul, transpose_b, .def = 0),
	RFL_OP_ATTR(BOOL, matmul, causal, .def = 0),
};

static const struct rfl_op_attr sdpa_attrs[] = {
	RFL_OP_ATTR(BOOL, sdpa, causal, .def = 0),
	RFL_OP_ATTR(REAL, sdpa, dropout, .def = 0),
};

static const struct rfl_op_attr rope_attrs[] = {
	RFL_OP_ATTR(REAL, rope, theta, .def = 10000),
};

const struct rfl_op_info rfl_op_matmul = {
	.name = "matmul",
	.arity = 2,
	.module = "MatMul",
	.autograd = "BmmBackward0",
	.infer = matmul_infer,
	.autocast = RFL_AUTOCAST_LOWER,
	.attrs = matmul_attrs,
	.nattrs = RFL_ARRAY_LEN(matmul_attrs),
	.saved = matmul_saved,
};

const struct rfl_op_info rfl_op_sdpa = {
	.name = "sdpa",
	.arity = 3,
	.module = "ScaledDotProductAttention",
	.autograd = "ScaledDotProductFlashAttentionBackward0",
	.infer = sdpa_infer,
	.autocast = RFL_AUTOCAST_LOWER,
	.attrs = sdpa_attrs,
	.nattrs = RFL_ARRAY_LEN(sdpa_attrs),
	.saved = sdpa_saved,
};

const struct rfl_op_info rfl_op_rope = {
	.name = "rope",
	.module = "RotaryEmbedding",
	.autograd = "StackBackward0",
	.rides = true,
	.infer = rope_infer,
	.attrs = rope_attrs,
	.nattrs = RFL_ARRAY_LEN(rope_attrs),
};
