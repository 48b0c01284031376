/*
 * sdpa.c - attention in one fused operation that never writes the scores (FlashAttention).
 *
 * B batches (samples, heads), Tq queries, Tk keys, S = B Tq Tk scores, d features of q and k, dv of
 * v, r = B Tq rows.
 *
 *	forward    S = q k^T and the product with v: S (d + dv) multiply-adds, F
 *	dgrad      dV = P^T dO, dP = dO V^T, dQ = dS K, dK = dS^T Q: 2 F
 *	recompute  the scores once more: S d, half of F when d = dv
 *
 * So the backward pass executes 2.5 F, as PyTorch's FlopCounterMode counts it
 * (torch/utils/flop_counter.py, sdpa_backward_flop_count), of which the model asks for 2 F. Under a
 * causal mask all of S is counted, or, where the options ask for it, the triangle that the mask
 * leaves: T (T + 1) / 2 of the T T scores of a head (op/matmul.c).
 *
 * Elementwise, the softmax of op/softmax.c:
 *	forward    scale S mul; softmax S - r compare, 2 S - r add, 2 S special; a causal mask and a
 *	           dropout S compare each, a dropout S mul
 *	dgrad      row sums of dO O: r dv mul, r (dv - 1) add; dS = P (dP - sum), scaled: S add,
 *	           2 S mul; a dropout S mul
 *	recompute  P = exp(scale s - logsumexp): S mul, S add, S special
 *
 * Traffic, unfused and fused alike: forward R q, k, v, W o, and in training a logsumexp per row in
 * F32; backward R q, k, v, o, dO, R two F32 numbers per row (the logsumexp and the row sums), W dq,
 * dk, dv. A tile that does not fit on chip reads k and v more often; that is not counted.
 */
#include "complexity/op/parts.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	int rows = in[0].ndim - 2, last = in[0].ndim - 1;
	double p = node->attr.sdpa.dropout;
	char q[96], k[96], v[96];

	if (!(p >= 0.0 && p < 1.0))
		return rfl_fail(err, RFL_EINVAL, 0, "dropout %g is not in [0, 1)", p);
	if (!rfl_shape_same_leading(&in[0], &in[1]) || !rfl_shape_same_leading(&in[1], &in[2]) ||
	    in[0].dim[last] != in[1].dim[last] || in[1].dim[rows] != in[2].dim[rows])
		return rfl_fail(err, RFL_EINVAL, 0, "q %s, k %s and v %s do not fit together",
				rfl_shape_text(&in[0], q, sizeof(q)),
				rfl_shape_text(&in[1], k, sizeof(k)),
				rfl_shape_text(&in[2], v, sizeof(v)));
	*out = in[0];
	out->dim[last] = in[2].dim[last];
	return RFL_OK;
}

struct sizes {
	int64_t features, values; /* of q and k; of v */
	int64_t rows;             /* queries of all heads and samples */
	int64_t square;           /* scores of all of them */
	int64_t scores;           /* those that are counted */
};

static struct sizes sizes_of(struct rfl_cost_context *c)
{
	const struct rfl_shape *q = &c->in_shape, *k = c->inputs[1].shape;
	int64_t queries = q->dim[q->ndim - 2], keys = k->dim[k->ndim - 2];
	struct sizes s = {
		.features = q->dim[q->ndim - 1],
		.values = c->node->shape.dim[q->ndim - 1],
	};

	s.rows = c->in / s.features;
	s.square = rfl_cost_mul(c, s.rows, keys);
	s.scores = s.square;
	if (c->node->attr.sdpa.causal && c->options->causal_half)
		s.scores = rfl_cost_mul(c, s.rows / queries, rfl_causal_pairs(c, queries, keys));
	return s;
}

static bool drops(const struct rfl_cost_context *c)
{
	return c->options->training && c->node->attr.sdpa.dropout > 0.0;
}

static void elementwise(struct rfl_cost_context *c, const struct sizes *s,
			struct rfl_elementwise *e)
{
	int64_t masks = c->node->attr.sdpa.causal + drops(c), dropout = drops(c);

	e[RFL_PASS_FORWARD] = (struct rfl_elementwise){
		.add = rfl_cost_mul(c, 2, s->scores) - s->rows,
		.mul = rfl_cost_mul(c, 1 + dropout, s->scores),
		.compare = rfl_cost_mul(c, 1 + masks, s->scores) - s->rows,
		.special = rfl_cost_mul(c, 2, s->scores),
	};
	if (!c->needs_dgrad)
		return;
	e[RFL_PASS_DGRAD] = (struct rfl_elementwise){
		.add = rfl_cost_add(c, c->out - s->rows, s->scores),
		.mul = rfl_cost_add(c, c->out, rfl_cost_mul(c, 2 + dropout, s->scores)),
	};
	e[RFL_PASS_RECOMPUTE] = (struct rfl_elementwise){
		.add = s->scores,
		.mul = s->scores,
		.special = s->scores,
	};
}

static void traffic(struct rfl_cost_context *c, const struct sizes *s, struct rfl_traffic *t)
{
	int64_t f32 = rfl_dtype_bytes(RFL_DTYPE_F32);

	for (int k = 0; k < 3; k++) {
		rfl_op_operand_read(c, k, &t[RFL_PASS_FORWARD]);
		if (c->needs_dgrad) {
			rfl_op_operand_read(c, k, &t[RFL_PASS_DGRAD]);
			rfl_op_operand_write(c, k, &t[RFL_PASS_DGRAD]);
		}
	}
	rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->options->training)
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], s->rows, f32);
	if (c->needs_dgrad) {
		rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->out, 2 * c->value_bytes);
		rfl_cost_read(c, &t[RFL_PASS_DGRAD], s->rows, 2 * f32);
	}
}

static void cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct sizes s = sizes_of(c);
	int64_t qk = rfl_cost_mul(c, s.scores, s.features);
	int64_t macs = rfl_cost_add(c, qk, rfl_cost_mul(c, s.scores, s.values));

	cost->macs[RFL_PASS_FORWARD] = macs;
	cost->macs_excl_padding = macs;
	if (c->needs_dgrad) {
		cost->macs[RFL_PASS_DGRAD] = rfl_cost_mul(c, 2, macs);
		cost->macs[RFL_PASS_RECOMPUTE] = qk;
	}
	elementwise(c, &s, cost->elementwise);
	traffic(c, &s, cost->traffic[RFL_FUSION_UNFUSED]);
	rfl_op_ride_not(cost);
}

/* PyTorch's CPU kernel knows no dropout: the products run one by one, on scaled copies of q and k.
 */
static int saved_steps(struct rfl_cost_context *c, const struct sizes *s,
		       struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int64_t copies = rfl_cost_add(c, rfl_cost_in(c, 0), rfl_cost_in(c, 1));
	int64_t scores = rfl_cost_mul(c, s->square, c->value_bytes);
	int n = 0;

	n = rfl_op_save_bytes(RFL_SAVED_INTERNAL, rfl_cost_mul(c, copies, c->value_bytes), out, n);
	n = rfl_op_save_operand(c, 2, out, n);
	n = rfl_op_save_bytes(RFL_SAVED_INTERNAL, scores, out, n); /* softmax */
	n = rfl_op_save_bytes(RFL_SAVED_INTERNAL, scores, out, n); /* what dropout left of it */
	return rfl_op_save_bytes(RFL_SAVED_MASK, scores, out, n);
}

/* q, k, v, the result and the logsumexp of each row. */
static int saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	struct sizes s = sizes_of(c);
	int n = 0;

	if (!c->needs_dgrad)
		return 0;
	if (c->on_cpu && drops(c))
		return saved_steps(c, &s, out);
	for (int k = 0; k < 3; k++)
		n = rfl_op_save_operand(c, k, out, n);
	out[n++] = (struct rfl_op_saved){ .kind = RFL_SAVED_OUTPUT };
	return rfl_op_save_bytes(RFL_SAVED_STATISTICS,
				 rfl_cost_mul(c, s.rows, rfl_dtype_bytes(RFL_DTYPE_F32)), out, n);
}

static const struct rfl_op_attr attrs[] = {
	RFL_OP_ATTR(BOOL, sdpa, causal, .def = 0),
	RFL_OP_ATTR(REAL, sdpa, dropout, .def = 0),
};

const struct rfl_op_info rfl_op_sdpa = {
	.name = "sdpa",
	.arity = 3,
	.module = "ScaledDotProductAttention",
	.autograd = "ScaledDotProductFlashAttentionBackward0",
	.autocast = RFL_AUTOCAST_LOWER,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.infer = infer,
	.cost = cost,
	.saved = saved,
};
