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

/* The number of pairs of a query i and a key up to i: T (T + 1) / 2 for T queries and keys. */
static int64_t causal_pairs(struct rfl_cost_context *c, int64_t queries, int64_t keys)
{
	int64_t side = queries < keys ? queries : keys;
	int64_t triangle = side % 2 ? rfl_cost_mul(c, side / 2 + 1, side)
				    : rfl_cost_mul(c, side / 2, side + 1);

	return rfl_cost_add(c, triangle, rfl_cost_mul(c, queries - side, keys));
}

/*
 * Products. {m, k} times {k, n} in B batches (samples, heads): forward B m n k multiply-adds. The
 * gradient of each factor is a product with the same three dimensions, dA = dY B^T and dB = A^T dY,
 * so dgrad costs as much as one or two forward passes (PyTorch's FlopCounterMode counts two bmm).
 * The gradient of a factor that is a learned tensor counts as wgrad.
 */

static enum rfl_rc matmul_infer(const struct rfl_node *node, const struct rfl_shape *in,
				struct rfl_shape *out, struct rfl_err *err)
{
	int rows = in[0].ndim - 2, last = in[0].ndim - 1;
	bool transpose = node->attr.matmul.transpose_b;
	char a[96], b[96];

	if (!same_leading(&in[0], &in[1]) || in[0].dim[last] != in[1].dim[transpose ? last : rows])
		return rfl_fail(
			err, RFL_EINVAL, 0, "cannot multiply %s by %s%s: dimensions do not match",
			rfl_shape_text(&in[0], a, sizeof(a)), rfl_shape_text(&in[1], b, sizeof(b)),
			transpose ? " transposed" : "");
	*out = in[0];
	out->dim[last] = in[1].dim[transpose ? rows : last];
	return RFL_OK;
}

static void matmul_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_matmul *a = &c->node->attr.matmul;
	const struct rfl_shape *out = &c->node->shape;
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	int64_t m = out->dim[out->ndim - 2], n = out->dim[out->ndim - 1];
	int64_t inner = c->in_shape.dim[c->in_shape.ndim - 1];
	bool scores = m == n || (m != inner && a->transpose_b);
	int64_t macs;

	if (a->causal && c->options->causal_half)
		macs = rfl_cost_mul(
			c, rfl_cost_mul(c, c->out / m / n, causal_pairs(c, m, scores ? n : inner)),
			scores ? inner : n);
	else
		macs = rfl_cost_mul(c, c->out, inner);
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
	rfl_op_fuse_not(cost);
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

/*
 * Softmax and causal mask. n elements in r rows. Softmax, exp(x - max) / sum, forward: maximum n -
 * r compare, x - max n add, exponentials n special, their sum n - r add, division n special; dgrad,
 * y (dY - sum(dY y)): 2 n mul, 2 n - r add. Mask, forward: one compare per element selects the
 * score or minus infinity; dgrad: one compare per element selects dY or 0. The computation of the
 * mask, one byte per pair of a query and a key, is not counted. Fused, only the gradient of the
 * softmax has traffic: it reads y again.
 */

static void softmax_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	int64_t n = c->in, rows = n / c->in_shape.dim[c->in_shape.ndim - 1], v = c->value_bytes;

	cost->elementwise[RFL_PASS_FORWARD] = (struct rfl_elementwise){
		.add = 2 * n - rows,
		.compare = n - rows,
		.special = 2 * n,
	};
	rfl_cost_move(c, &u[RFL_PASS_FORWARD], n, v, n, v);
	if (c->needs_dgrad) {
		cost->elementwise[RFL_PASS_DGRAD] = (struct rfl_elementwise){
			.add = 2 * n - rows,
			.mul = 2 * n,
		};
		rfl_cost_move(c, &u[RFL_PASS_DGRAD], n, 2 * v, n, v);
	}
	rfl_op_fuse(c, n, cost);
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
static void plane_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const bool rope = c->node->op == RFL_OP_ROPE;

	for (int pass = RFL_PASS_FORWARD; pass <= RFL_PASS_FORWARD + c->needs_dgrad; pass++) {
		struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];

		if (rope)
			cost->elementwise[pass] =
				(struct rfl_elementwise){ .add = c->in, .mul = 2 * c->in };
		else
			cost->elementwise[pass].compare = c->in;
		rfl_cost_move(c, u, c->in, c->value_bytes, c->out, c->value_bytes);
		rfl_cost_read(c, u, plane(c), rope ? rfl_dtype_bytes(RFL_DTYPE_F32) : 1);
	}
	rfl_op_fuse(c, 0, cost);
}

/* All heads and samples share one mask. */
static void mask_saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	if (c->needs_dgrad)
		rfl_op_save(c, RFL_SAVED_MASK, plane(c), 1, out);
}

RFL_OP(causal_mask, "MaskedFill", "MaskedFillBackward0", .fuses = true, .min_dims = 2,
       .needs = "rows and columns", .infer = rfl_op_same_shape, .cost = plane_cost,
       .saved = mask_saved);

/*
 * Fused attention. B batches (samples, heads), Tq queries, Tk keys, S = B Tq Tk scores, d features
 * of q and k, dv of v, r = B Tq rows.
 *
 *	forward    S = q k^T and the product with v: S (d + dv) multiply-adds, F
 *	dgrad      dV = P^T dO, dP = dO V^T, dQ = dS K, dK = dS^T Q: 2 F
 *	recompute  the scores once more: S d, half of F when d = dv
 *
 * So the backward pass executes 2.5 F, which agrees with PyTorch's FlopCounterMode
 * (torch/utils/flop_counter.py, sdpa_backward_flop_count); 2 F of these are model FLOPs. Under a
 * causal mask, either all of S or only the triangle is counted.
 *
 * Elementwise operations, with the softmax as above:
 *	forward    scale S mul; softmax S - r compare, 2 S - r add, 2 S special; causal mask and
 *	           dropout S compare each; dropout S mul
 *	dgrad      row sums of dO O: r dv mul, r (dv - 1) add; dS = P (dP - sum), scaled: S add,
 *	           2 S mul; dropout S mul
 *	recompute  P = exp(scale s - logsumexp): S mul, S add, S special
 *
 * A training step also stores one logsumexp per row in F32; its backward pass reads it and the row
 * sum. Repeated reads of k and v for large tiles are not counted.
 *
 * Without a fused kernel (count.h: rfl_fused_attention) the parts run one by one: q and k are
 * scaled, not S; the mask is added; softmax and dropout have their own backward passes; nothing is
 * recomputed. Traffic of the parts (R: read, W: write), unfused: forward R q, k, W both scaled; R
 * both, W S; mask R S, R mask, W S; softmax R S, W P; dropout R P, W P, W one byte per score; R P,
 * R v, W o. Backward R dO, v, W dP; R P, dO, W dv; dropout R dP, R one byte per score, W dP;
 * softmax R P, dP, W dS; R dS, k, W dq; R dS, q, W dk; R, W dq, dk to scale them. Fused: without
 * the kernels of scale, mask, softmax and dropout, but the softmax reads P again.
 */

static enum rfl_rc sdpa_infer(const struct rfl_node *node, const struct rfl_shape *in,
			      struct rfl_shape *out, struct rfl_err *err)
{
	int rows = in[0].ndim - 2, last = in[0].ndim - 1;
	double p = node->attr.sdpa.dropout;
	char q[96], k[96], v[96];

	if (!(p >= 0.0 && p < 1.0))
		return rfl_fail(err, RFL_EINVAL, 0, "dropout %g must be at least 0 and below 1", p);
	if (!same_leading(&in[0], &in[1]) || !same_leading(&in[1], &in[2]) ||
	    in[0].dim[last] != in[1].dim[last] || in[1].dim[rows] != in[2].dim[rows])
		return rfl_fail(
			err, RFL_EINVAL, 0, "the shapes of q %s, k %s and v %s do not match",
			rfl_shape_text(&in[0], q, sizeof(q)), rfl_shape_text(&in[1], k, sizeof(k)),
			rfl_shape_text(&in[2], v, sizeof(v)));
	*out = in[0];
	out->dim[last] = in[2].dim[last];
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
static void parts_cost(struct rfl_cost_context *c, int64_t scores, struct rfl_cost *cost)
{
	const struct rfl_shape *q = &c->in_shape, *k = c->inputs[1].shape;
	/* before 2.0, PyTorch scales q only */
	const bool old = c->options->fused_attention == RFL_FUSED_NEVER;
	const int64_t qk = c->in + rfl_cost_in(c, 1), v = c->value_bytes;
	const int64_t scaled = old ? c->in : qk;
	const int64_t causal = c->node->attr.sdpa.causal, dropout = drops(c);
	const int64_t rows = c->in / q->dim[q->ndim - 1];
	const int64_t mask = rfl_cost_size(c, q->dim[q->ndim - 2], k->dim[k->ndim - 2]);
	struct rfl_elementwise *e = cost->elementwise;

	e[RFL_PASS_FORWARD] = (struct rfl_elementwise){
		.add = (2 + causal) * scores - rows,
		.mul = scaled + dropout * scores,
		.compare = (1 + dropout) * scores - rows,
		.special = 2 * scores,
	};
	if (c->needs_dgrad)
		e[RFL_PASS_DGRAD] = (struct rfl_elementwise){
			.add = 2 * scores - rows,
			.mul = scaled + (2 + dropout) * scores,
		};
	for (int level = RFL_FUSION_UNFUSED; level <= RFL_FUSION_FUSED; level++) {
		const int64_t apart = level == RFL_FUSION_UNFUSED;
		struct rfl_traffic *f = &cost->traffic[level][RFL_PASS_FORWARD];
		struct rfl_traffic *b = &cost->traffic[level][RFL_PASS_DGRAD];
		const int64_t steps = (1 + apart * (1 + causal + dropout)) * scores;
		const int64_t back = (1 + apart * (1 + dropout)) * scores;

		for (int i = 0; i < 3; i++)
			rfl_op_operand_read(c, i, f);
		rfl_cost_move(c, f, apart * scaled, v, apart * scaled, v);
		rfl_cost_move(c, f, steps, v, steps, v);
		rfl_cost_move(c, f, apart * causal * mask, v, apart * dropout * scores, 1);
		rfl_cost_write(c, f, c->out, v);
		if (!c->needs_dgrad)
			continue;
		for (int i = 0; i < 3; i++)
			rfl_op_operand_write(c, i, b);
		rfl_op_operand_read(c, 2, b);
		rfl_cost_read(c, b, c->out, 2 * v);
		rfl_cost_move(c, b, qk + apart * scaled, v, apart * scaled, v);
		rfl_cost_move(c, b, 3 * scores + back, v, back, v);
		rfl_cost_read(c, b, apart * dropout * scores, 1);
	}
}

static void sdpa_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_shape *q = &c->in_shape, *k = c->inputs[1].shape;
	int64_t queries = q->dim[q->ndim - 2], keys = k->dim[k->ndim - 2];
	int64_t features = q->dim[q->ndim - 1], rows = c->in / features;
	bool causal = c->node->attr.sdpa.causal, half = causal && c->options->causal_half;
	int64_t scores = half ? rfl_cost_size(c, rows / queries, causal_pairs(c, queries, keys))
			      : rfl_cost_size(c, rows, keys);
	int64_t masks = causal + drops(c), dropout = drops(c), f32 = rfl_dtype_bytes(RFL_DTYPE_F32);
	int64_t qk = rfl_cost_mul(c, scores, features);
	int64_t macs = rfl_cost_add(
		c, qk, rfl_cost_mul(c, scores, c->node->shape.dim[c->node->shape.ndim - 1]));
	struct rfl_elementwise *e = cost->elementwise;
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];

	cost->macs[RFL_PASS_FORWARD] = macs;
	cost->macs_excl_padding = macs;
	cost->macs[RFL_PASS_DGRAD] = c->needs_dgrad ? rfl_cost_mul(c, 2, macs) : 0;
	if (runs_in_parts(c)) {
		parts_cost(c, scores, cost);
		return;
	}
	e[RFL_PASS_FORWARD] = (struct rfl_elementwise){
		.add = 2 * scores - rows,
		.mul = (1 + dropout) * scores,
		.compare = (1 + masks) * scores - rows,
		.special = 2 * scores,
	};
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->options->training)
		rfl_cost_write(c, &u[RFL_PASS_FORWARD], rows, f32);
	for (int i = 0; i < 3; i++)
		rfl_op_operand_read(c, i, &u[RFL_PASS_FORWARD]);
	if (c->needs_dgrad) {
		cost->macs[RFL_PASS_RECOMPUTE] = qk;
		e[RFL_PASS_DGRAD].add = c->out - rows + scores;
		e[RFL_PASS_DGRAD].mul = c->out + (2 + dropout) * scores;
		e[RFL_PASS_RECOMPUTE] =
			(struct rfl_elementwise){ .add = scores, .mul = scores, .special = scores };
		rfl_cost_read(c, &u[RFL_PASS_DGRAD], c->out, 2 * c->value_bytes);
		rfl_cost_read(c, &u[RFL_PASS_DGRAD], rows, 2 * f32);
		for (int i = 0; i < 3; i++) {
			rfl_op_operand_read(c, i, &u[RFL_PASS_DGRAD]);
			rfl_op_operand_write(c, i, &u[RFL_PASS_DGRAD]);
		}
	}
	rfl_op_fuse_not(cost);
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
		rfl_op_save(c, RFL_SAVED_OUTPUT, 0, 0, out);
		rfl_op_save(c, RFL_SAVED_STATISTICS, rows, rfl_dtype_bytes(RFL_DTYPE_F32), out);
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
	rfl_op_save(c, RFL_SAVED_INTERNAL, copies, v, out);
	rfl_op_save(c, RFL_SAVED_INTERNAL, square, v, out); /* softmax */
	if (!drops(c))
		return;
	rfl_op_save(c, RFL_SAVED_INTERNAL, square, v, out); /* after dropout */
	rfl_op_save(c, RFL_SAVED_MASK, square, c->on_cpu ? v : 1, out);
}

/* In parts: the scores and their mask beside the softmax; under autocast the mask is F32, and so
 * are the masked scores and their softmax. When the gradients of both exist, that of the result no
 * longer does, and those of q and k do not yet. */
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
		    RFL_OP_ATTR(REAL, sdpa, dropout, .def = 0)));

/*
 * Rotary position embedding: adjacent features (a, b) of token t become (a cos - b sin, a sin + b
 * cos); the angle depends on t and on the pair.
 *
 * n elements: forward 2 n mul and n add; dgrad rotates back at the same cost. The tables of sines
 * and cosines have T d F32 numbers in total and are the same for all samples and heads; computing
 * them is not counted. Fused, they stay on chip.
 */

static enum rfl_rc rope_infer(const struct rfl_node *node, const struct rfl_shape *in,
			      struct rfl_shape *out, struct rfl_err *err)
{
	char text[96];

	if (in->ndim < 2 || in->dim[in->ndim - 1] % 2 != 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"needs tokens with an even number of features, got %s",
				rfl_shape_text(in, text, sizeof(text)));
	return rfl_op_same_shape(node, in, out, err);
}

RFL_OP(rope, "RotaryEmbedding", "StackBackward0", .fuses = true, .infer = rope_infer,
       .cost = plane_cost, RFL_OP_ATTRS(RFL_OP_ATTR(REAL, rope, theta, .def = 10000)));
