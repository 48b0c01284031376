/*
 * attention.c - the parts of attention: products of two tensors, batched over their leading
 * dimensions; softmax over the last dimension and the causal mask before it; all of these as one
 * fused operation that never writes the scores (FlashAttention); and rotary position embedding.
 *
 * Under a causal mask, query i sees the first i + 1 keys. With T queries and T keys, only T (T + 1)
 * / 2 of the T^2 products are used, a share of (T + 1) / 2 T. On request, a product marked as
 * causal counts only these; its result (q k^T) or first factor is triangular.
 */
#include "complexity/op/parts.h"

/* Whether two tensors of {.., rows, columns} have equal leading dimensions. */
static bool same_leading(const struct rfl_shape *a, const struct rfl_shape *b)
{
	if (a->ndim != b->ndim || a->ndim < 2)
		return false;
	for (int i = 0; i < a->ndim - 2; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	return true;
}

/* Whether the heads of q are a multiple of the heads of k (grouped queries), and all else is equal.
 */
static bool grouped(const struct rfl_shape *q, const struct rfl_shape *k)
{
	struct rfl_shape all = *k;
	const int heads = q->ndim - 3;

	if (q->ndim != k->ndim)
		return false;
	if (heads >= 0 && q->dim[heads] % k->dim[heads] == 0)
		all.dim[heads] = q->dim[heads];
	return same_leading(q, &all);
}

/* The number of pairs of a query i and a key up to i: T (T + 1) / 2 for T queries and keys. */
static int64_t causal_pairs(struct rfl_cost_context *c, int64_t queries, int64_t keys)
{
	int64_t side = queries < keys ? queries : keys;
	int64_t triangle = side % 2 ? rfl_cost_mul(c, side / 2 + 1, side)
				    : rfl_cost_mul(c, side / 2, side + 1);

	return rfl_cost_add(c, triangle, rfl_cost_mul(c, queries - side, keys));
}

/* Products. The gradient of each factor is a product with the same three dimensions, dA = dY B^T
 * and dB = A^T dY; the gradient of a learned tensor counts as wgrad. */

static enum rfl_rc matmul_infer(struct rfl_op_shapes *s)
{
	const struct rfl_shape *a = &s->in[0], *b = &s->in[1];
	const bool transpose = s->node->attr.matmul.transpose_b;
	const int rows = a->ndim - 2, last = a->ndim - 1;

	if (!same_leading(a, b) || a->dim[last] != b->dim[transpose ? last : rows])
		return rfl_op_refuse(s, "cannot multiply %s by %s%s: dimensions do not match",
				     rfl_op_show(s, a), rfl_op_show(s, b),
				     transpose ? " transposed" : "");
	*s->out = *a;
	s->out->dim[last] = b->dim[transpose ? rows : last];
	return RFL_OK;
}

static void matmul_cost(struct rfl_cost_context *c)
{
	const struct rfl_matmul *a = &c->node->attr.matmul;
	const struct rfl_shape *out = &c->node->shape;
	struct rfl_traffic *u = c->cost->traffic[UNFUSED];
	int64_t m = out->dim[out->ndim - 2], n = out->dim[out->ndim - 1];
	int64_t inner = c->in_shape.dim[c->in_shape.ndim - 1];
	int64_t *macs = c->cost->macs, products = rfl_cost_mul(c, c->out, inner);

	if (a->causal && c->options->causal_half) {
		const bool scores = m == n || (m != inner && a->transpose_b);
		int64_t pairs = causal_pairs(c, m, scores ? n : inner);

		products =
			rfl_cost_mul(c, rfl_cost_mul(c, c->out / m / n, pairs), scores ? inner : n);
	}
	macs[FORWARD] = c->cost->macs_excl_padding = products;
	rfl_op_move(c, FORWARD, 0, c->out);
	for (int k = 0; k < 2; k++) {
		enum rfl_pass pass = rfl_op_operand_pass(c, k);

		rfl_op_operand_read(c, k, &u[FORWARD]);
		if (!c->inputs[k].grad)
			continue;
		macs[pass] = rfl_cost_add(c, macs[pass], products);
		rfl_cost_read(c, &u[pass], c->out, c->value_bytes);
		rfl_op_operand_read(c, 1 - k, &u[pass]);
		rfl_op_operand_write(c, k, &u[pass]);
	}
	rfl_op_fuse_not(c);
}

/* Save each factor if the other one needs a gradient. */
static void matmul_saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	for (int k = 0; k < 2; k++)
		if (c->inputs[1 - k].grad)
			rfl_op_save_operand(c, k, out);
}

RFL_OP(matmul, "MatMul", "BmmBackward0", .arity = 2, .infer = matmul_infer, .cost = matmul_cost,
       .saved = matmul_saved, .autocast = RFL_AUTOCAST_LOWER,
       RFL_OP_ATTRS(RFL_OP_ATTR(BOOL, matmul, transpose_b, .def = 0),
		    RFL_OP_ATTR(BOOL, matmul, causal, .def = 0)));

/* Softmax, exp(x - max) / sum: maximum n - r compare, x - max n add, exponentials n special, their
 * sum n - r add, division n special; dgrad, y (dY - sum(dY y)): 2 n mul, 2 n - r add. Mask: one
 * compare per element selects the score or minus infinity, and dY or 0; its computation is not
 * counted. */

static void softmax_cost(struct rfl_cost_context *c)
{
	int64_t n = c->in, rows = n / c->in_shape.dim[c->in_shape.ndim - 1];

	rfl_op_count(c, FORWARD, .add = 2 * n - rows, .compare = n - rows, .special = 2 * n);
	rfl_op_count(c, DGRAD, .add = 2 * n - rows, .mul = 2 * n);
	rfl_op_move(c, FORWARD, n, n);
	rfl_op_move(c, DGRAD, 2 * n, n);
	rfl_op_fuse(c, n);
}

/* On a GPU, dY * y is computed first. */
static void softmax_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	if (c->needs_dgrad && !c->on_cpu)
		out->backward = rfl_cost_mul(c, c->out, c->value_bytes);
}

RFL_OP(softmax, "Softmax", "SoftmaxBackward0", .fuses = true, .min_dims = 1, .needs = "rows",
       .infer = rfl_op_same_shape, .cost = softmax_cost, .autocast = RFL_AUTOCAST_F32,
       .saved = rfl_op_saves_output, .scratch = softmax_scratch);

/* Elements of the last two dimensions: the size of the mask and of the rotation tables. */
static int64_t plane(const struct rfl_cost_context *c)
{
	const struct rfl_shape *s = &c->in_shape;

	return s->dim[s->ndim - 2] * s->dim[s->ndim - 1];
}

/* The cost of the mask or the rotation; both read a table of that size in each pass. */
static void plane_cost(struct rfl_cost_context *c)
{
	const bool rope = c->node->op == RFL_OP_ROPE;
	const int64_t size = rope ? rfl_dtype_bytes(RFL_DTYPE_F32) : 1;
	static const struct rfl_elementwise rotates = { .add = 1, .mul = 2 },
					    masks = { .compare = 1 };

	for (int pass = FORWARD; pass <= DGRAD; pass++) {
		rfl_op_count_each(c, (enum rfl_pass)pass, rope ? &rotates : &masks, c->in);
		rfl_op_move(c, (enum rfl_pass)pass, c->in, c->out);
		rfl_op_move_at(c, UNFUSED, (enum rfl_pass)pass, plane(c), size, 0, 0);
	}
	rfl_op_fuse(c, 0);
}

/* All heads and samples share one mask. */
static void mask_saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	if (c->needs_dgrad)
		rfl_op_save(c, RFL_SAVED_CLASS_MASKS, plane(c), 1, out);
}

RFL_OP(causal_mask, "MaskedFill", "MaskedFillBackward0", .fuses = true, .min_dims = 2,
       .needs = "rows and columns", .infer = rfl_op_same_shape, .cost = plane_cost,
       .saved = mask_saved);

/*
 * Fused attention: S scores of q and k, d features of q and k, dv of v, r rows.
 *
 *	forward    S = q k^T and the product with v: S (d + dv) multiply-adds, F
 *	dgrad      dV = P^T dO, dP = dO V^T, dQ = dS K, dK = dS^T Q: 2 F
 *	recompute  the scores once more: S d, half of F when d = dv
 *
 * So the backward pass executes 2.5 F, which agrees with PyTorch's FlopCounterMode
 * (torch/utils/flop_counter.py, sdpa_backward_flop_count); 2 F of these are model FLOPs. Under a
 * causal mask, either all of S or only the triangle is counted.
 *
 *	forward    scale S mul; softmax as above; causal mask and dropout S compare each; dropout S
 *mul dgrad      row sums of dO O: r dv mul, r (dv - 1) add; dS = P (dP - sum), scaled: S add, 2 S
 *mul; dropout S mul recompute  P = exp(scale s - logsumexp): S mul, S add, S special
 *
 * A training step also stores one logsumexp per row in F32; its backward pass reads it and the row
 * sum.
 *
 * Without a fused kernel (count.h: rfl_fused_attention) the parts run one by one: q and k are
 * scaled, not S; the mask is added; softmax and dropout have their own backward passes; nothing is
 * recomputed. At the fused level, the kernels of scale, mask, softmax and dropout are merged, but
 * the softmax reads P again.
 */

static enum rfl_rc sdpa_infer(struct rfl_op_shapes *s)
{
	const struct rfl_shape *q = &s->in[0], *k = &s->in[1], *v = &s->in[2];
	const int rows = q->ndim - 2, last = q->ndim - 1;
	const double p = s->node->attr.sdpa.dropout;

	if (!(p >= 0.0 && p < 1.0))
		return rfl_op_refuse(s, "dropout %g must be at least 0 and below 1", p);
	if (s->node->attr.sdpa.window && !s->node->attr.sdpa.causal)
		return rfl_op_refuse(s, "a window needs a causal attention");
	if (!grouped(q, k) || !same_leading(k, v) || q->dim[last] != k->dim[last] ||
	    k->dim[rows] != v->dim[rows])
		return rfl_op_refuse(s, "the shapes of q %s, k %s and v %s do not match",
				     rfl_op_show(s, q), rfl_op_show(s, k), rfl_op_show(s, v));
	*s->out = *q;
	s->out->dim[last] = v->dim[last];
	return RFL_OK;
}

static bool drops(const struct rfl_cost_context *c)
{
	return c->options->training && c->node->attr.sdpa.dropout > 0.0;
}

static bool runs_in_parts(const struct rfl_cost_context *c)
{
	const enum rfl_fused_attention fused = c->options->fused_attention;

	return fused == RFL_FUSED_NEVER ||
	       (drops(c) && (c->on_cpu || fused == RFL_FUSED_WITHOUT_DROPOUT));
}

/* Fill in elementwise operations and traffic of the parts. */
static void parts_cost(struct rfl_cost_context *c, int64_t scores, int64_t rows)
{
	const struct rfl_shape *q = &c->in_shape, *k = c->inputs[1].shape;
	/* before 2.0, PyTorch scales q only */
	const bool old = c->options->fused_attention == RFL_FUSED_NEVER;
	const int64_t qk = c->in + rfl_cost_in(c, 1), v = c->value_bytes;
	const int64_t scaled = old ? c->in : qk;
	const int64_t causal = c->node->attr.sdpa.causal, dropout = drops(c);
	const int64_t mask = rfl_cost_size(c, q->dim[q->ndim - 2], k->dim[k->ndim - 2]);

	rfl_op_count(c, FORWARD, .add = (2 + causal) * scores - rows,
		     .mul = scaled + dropout * scores, .compare = (1 + dropout) * scores - rows,
		     .special = 2 * scores);
	rfl_op_count(c, DGRAD, .add = 2 * scores - rows, .mul = scaled + (2 + dropout) * scores);
	for (int level = UNFUSED; level <= FUSED; level++) {
		const enum rfl_fusion at = (enum rfl_fusion)level;
		const int64_t apart = level == UNFUSED;
		struct rfl_traffic *t = c->cost->traffic[level];
		const int64_t steps = (1 + apart * (1 + causal + dropout)) * scores;
		const int64_t back = (1 + apart * (1 + dropout)) * scores;

		rfl_op_move_at(c, at, FORWARD, apart * scaled, v, apart * scaled, v);
		rfl_op_move_at(c, at, FORWARD, steps, v, steps, v);
		rfl_op_move_at(c, at, FORWARD, apart * causal * mask, v, apart * dropout * scores,
			       1);
		rfl_op_move_at(c, at, FORWARD, 0, 0, c->out, v);
		rfl_op_move_at(c, at, DGRAD, c->out, 2 * v, 0, 0);
		rfl_op_move_at(c, at, DGRAD, qk + apart * scaled, v, apart * scaled, v);
		rfl_op_move_at(c, at, DGRAD, 3 * scores + back, v, back, v);
		rfl_op_move_at(c, at, DGRAD, apart * dropout * scores, 1, 0, 0);
		for (int i = 0; i < 3; i++) {
			rfl_op_operand_read(c, i, &t[FORWARD]);
			if (c->needs_dgrad)
				rfl_op_operand_write(c, i, &t[DGRAD]);
		}
		if (c->needs_dgrad)
			rfl_op_operand_read(c, 2, &t[DGRAD]);
	}
}

static void sdpa_cost(struct rfl_cost_context *c)
{
	const struct rfl_shape *q = &c->in_shape, *k = c->inputs[1].shape;
	int64_t queries = q->dim[q->ndim - 2], keys = k->dim[k->ndim - 2];
	int64_t features = q->dim[q->ndim - 1], rows = c->in / features;
	bool causal = c->node->attr.sdpa.causal, half = causal && c->options->causal_half;
	int64_t window = c->node->attr.sdpa.window;
	/* with a window, the first queries see fewer keys than it has, and all others that many */
	int64_t seen = window && window < keys ? window : keys;
	int64_t scores = half ? rfl_cost_size(c, rows / queries, causal_pairs(c, queries, seen))
			      : rfl_cost_size(c, rows, seen);
	int64_t masks = causal + drops(c), dropout = drops(c), f32 = rfl_dtype_bytes(RFL_DTYPE_F32);
	int64_t qk = rfl_cost_mul(c, scores, features);
	int64_t macs = rfl_cost_add(
		c, qk, rfl_cost_mul(c, scores, c->node->shape.dim[c->node->shape.ndim - 1]));
	struct rfl_traffic *u = c->cost->traffic[UNFUSED];

	c->cost->macs[FORWARD] = c->cost->macs_excl_padding = macs;
	c->cost->macs[DGRAD] = c->needs_dgrad ? rfl_cost_mul(c, 2, macs) : 0;
	if (runs_in_parts(c)) {
		parts_cost(c, scores, rows);
		return;
	}
	rfl_op_count(c, FORWARD, .add = 2 * scores - rows, .mul = (1 + dropout) * scores,
		     .compare = (1 + masks) * scores - rows, .special = 2 * scores);
	rfl_op_count(c, DGRAD, .add = c->out - rows + scores,
		     .mul = c->out + (2 + dropout) * scores);
	rfl_op_move(c, FORWARD, 0, c->out);
	rfl_op_move_at(c, UNFUSED, FORWARD, 0, 0, c->options->training ? rows : 0, f32);
	rfl_op_move(c, DGRAD, 2 * c->out, 0);
	rfl_op_move_at(c, UNFUSED, DGRAD, rows, 2 * f32, 0, 0);
	for (int i = 0; i < 3; i++)
		rfl_op_operand_read(c, i, &u[FORWARD]);
	for (int i = 0; i < 3 && c->needs_dgrad; i++) {
		rfl_op_operand_read(c, i, &u[DGRAD]);
		rfl_op_operand_write(c, i, &u[DGRAD]);
	}
	if (c->needs_dgrad) {
		c->cost->macs[RECOMPUTE] = qk;
		rfl_op_count(c, RECOMPUTE, .add = scores, .mul = scores, .special = scores);
	}
	rfl_op_fuse_not(c);
}

/* Save q, k, v, the result and the logsumexp of each row; in parts, q scaled, k, v, the softmax
 * and, of a dropout, its result and its mask. k and v of several heads are copied to be contiguous;
 * the versions of PyTorch with a fused kernel scale k as well, into a copy. */
static void sdpa_saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	const struct rfl_shape *k = c->inputs[1].shape;
	const bool old = c->options->fused_attention == RFL_FUSED_NEVER;
	const bool heads = old && k->ndim > 2;
	int64_t rows = c->in / c->in_shape.dim[c->in_shape.ndim - 1], v = c->value_bytes;
	int64_t square = rfl_cost_size(c, rows, k->dim[k->ndim - 2]), copies = c->in;

	if (!c->needs_dgrad)
		return;
	if (!runs_in_parts(c)) {
		for (int i = 0; i < 3; i++)
			rfl_op_save_operand(c, i, out);
		rfl_op_save_output(out);
		rfl_op_save(c, RFL_SAVED_CLASS_STATISTICS, rows, rfl_dtype_bytes(RFL_DTYPE_F32),
			    out);
		return;
	}
	if (heads || !old)
		copies += rfl_cost_in(c, 1);
	else
		rfl_op_save_operand(c, 1, out);
	if (heads)
		copies += rfl_cost_in(c, 2);
	else
		rfl_op_save_operand(c, 2, out);
	rfl_op_save(c, RFL_SAVED_CLASS_ACTIVATIONS, copies, v, out);
	rfl_op_save(c, RFL_SAVED_CLASS_ACTIVATIONS, square, v, out); /* softmax */
	if (!drops(c))
		return;
	rfl_op_save(c, RFL_SAVED_CLASS_ACTIVATIONS, square, v, out); /* after dropout */
	rfl_op_save(c, RFL_SAVED_CLASS_MASKS, square, c->on_cpu ? v : 1, out);
}

/* In parts: the scores and their mask beside the softmax; under autocast the mask is F32, and so
 * are the masked scores and their softmax. When the gradients of both exist, the gradient of the
 * result no longer does, and the gradients of q and k do not yet. */
static void sdpa_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	const struct rfl_shape *q = &c->in_shape, *k = c->inputs[1].shape;
	const bool causal = c->node->attr.sdpa.causal, cast = causal && c->options->master_weights;
	const int64_t f32 = rfl_dtype_bytes(RFL_DTYPE_F32), v = c->value_bytes;
	int64_t keys = k->dim[k->ndim - 2];
	int64_t square = rfl_cost_size(c, c->in / q->dim[q->ndim - 1], keys);
	int64_t mask = rfl_cost_size(c, q->dim[q->ndim - 2], causal ? keys : 0);
	int64_t others = c->out + c->in + rfl_cost_in(c, 1);

	if (c->options->fused_attention != RFL_FUSED_NEVER)
		return;
	out->forward = square * (cast ? 2 * f32 : v) + mask * (cast ? f32 : v);
	out->backward = ((c->on_cpu ? 2 : 3) * square - others) * v;
	if (out->backward < 0 || !c->needs_dgrad)
		out->backward = 0;
}

RFL_OP(sdpa, "ScaledDotProductAttention", "ScaledDotProductFlashAttentionBackward0", .arity = 3,
       .infer = sdpa_infer, .cost = sdpa_cost, .saved = sdpa_saved, .scratch = sdpa_scratch,
       .autocast = RFL_AUTOCAST_LOWER,
       RFL_OP_ATTRS(RFL_OP_ATTR(BOOL, sdpa, causal, .def = 0),
		    RFL_OP_ATTR(REAL, sdpa, dropout, .def = 0),
		    RFL_OP_ATTR(INT, sdpa, window, .def = 0)));

/* Rotary position embedding: adjacent features (a, b) of token t, or with `halves` a feature of the
 * first half and its partner in the second, become (a cos - b sin, a sin + b cos); the angle
 * depends on t and on the pair. The tables of sines and cosines are the same for all samples and
 * heads; computing them is not counted. Fused, they stay on chip. */

static enum rfl_rc rope_infer(struct rfl_op_shapes *s)
{
	if (s->in->ndim < 2 || s->in->dim[s->in->ndim - 1] % 2 != 0)
		return rfl_op_refuse(s, "needs tokens with an even number of features, got %s",
				     rfl_op_show(s, s->in));
	return rfl_op_same_shape(s);
}

RFL_OP(rope, "RotaryEmbedding", "StackBackward0", .fuses = true, .infer = rope_infer,
       .cost = plane_cost,
       RFL_OP_ATTRS(RFL_OP_ATTR(REAL, rope, theta, .def = 10000),
		    RFL_OP_ATTR(BOOL, rope, halves, .def = 0)));
