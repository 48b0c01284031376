/*
 * binary.c - sums, differences, products and quotients of tensors, broadcast as in numpy:
 * dimensions are matched from the last one backward; dimensions that are missing or have size 1 are
 * repeated.
 *
 * The gradient of a broadcast operand is summed; that of a learned tensor (layer scale, position
 * embedding) counts as wgrad, all others as dgrad. Fused into the operation that computes the
 * larger operand, it reads the other one; backward, it reads the tensors that the gradients need,
 * one gradient replaces dY in memory, and the others are written.
 */
#include "complexity/op/parts.h"

static enum rfl_rc infer(struct rfl_op_shapes *s)
{
	const struct rfl_shape *a = &s->in[0], *b = &s->in[1];
	const int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;

	*s->out = (struct rfl_shape){ .ndim = ndim };
	for (int i = 1; i <= ndim; i++) {
		int64_t x = i <= a->ndim ? a->dim[a->ndim - i] : 1;
		int64_t y = i <= b->ndim ? b->dim[b->ndim - i] : 1;

		if (x != y && x != 1 && y != 1)
			return rfl_op_refuse(s, "the shapes %s and %s cannot be broadcast",
					     rfl_op_show(s, a), rfl_op_show(s, b));
		s->out->dim[ndim - i] = x > y ? x : y;
	}
	/* A result that does not fit is rejected by the builder. */
	if (s->node->inplace && rfl_shape_fits(s->out) &&
	    rfl_shape_numel(s->out) != rfl_shape_numel(a))
		return rfl_op_refuse(s, "%s cannot hold the result %s in place", rfl_op_show(s, a),
				     rfl_op_show(s, s->out));
	return RFL_OK;
}

/* Common to all kinds: the operands are read; at the fused level, the larger one is on chip. */
static void forward_traffic(struct rfl_cost_context *c)
{
	struct rfl_traffic *u = &c->cost->traffic[UNFUSED][FORWARD];
	struct rfl_traffic *f = &c->cost->traffic[FUSED][FORWARD];
	int host = rfl_cost_in(c, 1) > rfl_cost_in(c, 0);

	rfl_op_operand_read(c, 0, u);
	rfl_op_operand_read(c, 1, u);
	rfl_op_operand_read(c, 1 - host, f);
	rfl_cost_write(c, u, c->out, c->value_bytes);
	if (c->input_shared)
		rfl_cost_write(c, f, c->out, c->value_bytes);
}

/* At the fused level, one gradient of full size replaces dY in memory, and so do others if they are
 * `alike`; the rest are written. If not fused, both levels are the same. */
static void fused_backward(struct rfl_cost_context *c, bool alike)
{
	bool taken = false;

	if (!c->fused) {
		rfl_op_fuse_not(c);
		return;
	}
	for (int k = 0; k < 2; k++) {
		bool full = rfl_cost_in(c, k) >= c->out;

		if (!c->inputs[k].grad)
			continue;
		if (!full || (taken && !alike))
			rfl_op_operand_write(c, k,
					     &c->cost->traffic[FUSED][rfl_op_operand_pass(c, k)]);
		taken |= full;
	}
}

/* Sum a gradient of c->out elements over the broadcast dimensions of input k: the additions and,
 * unfused, a kernel that reads the gradient and writes the sum. */
static void reduce(struct rfl_cost_context *c, int k)
{
	enum rfl_pass pass = rfl_op_operand_pass(c, k);
	struct rfl_traffic *u = &c->cost->traffic[UNFUSED][pass];
	int64_t elements = rfl_cost_in(c, k);

	if (elements >= c->out)
		return;
	c->cost->elementwise[pass].add += c->out - elements;
	rfl_cost_read(c, u, c->out, c->value_bytes);
	rfl_op_operand_write(c, k, u);
}

/* A sum passes its gradient on unchanged, but sums it for a broadcast operand. A subtrahend gets
 * the negative, computed by a separate kernel unless fused. */
static void sum_cost(struct rfl_cost_context *c)
{
	int64_t v = c->value_bytes;

	c->cost->elementwise[FORWARD].add = c->out;
	forward_traffic(c);
	for (int k = 0; k < 2; k++)
		if (c->inputs[k].grad)
			reduce(c, k);
	if (c->node->op == RFL_OP_SUB && c->inputs[1].grad)
		rfl_cost_move(c, &c->cost->traffic[UNFUSED][rfl_op_operand_pass(c, 1)], c->out, v,
			      c->out, v);
	fused_backward(c, true);
}

/* The gradient of factor k is dY times the other factor; that of a dividend is dY / b; that of a
 * divisor, -dY ((a / b) / b), takes two quotients, a change of sign and a product, each a separate
 * kernel in eager mode. */
static void product_cost(struct rfl_cost_context *c)
{
	const bool div = c->node->op == RFL_OP_DIV;
	const int64_t v = c->value_bytes;

	*(div ? &c->cost->elementwise[FORWARD].special : &c->cost->elementwise[FORWARD].mul) =
		c->out;
	forward_traffic(c);
	for (int k = 0; k < 2; k++) {
		const enum rfl_pass pass = rfl_op_operand_pass(c, k);
		struct rfl_elementwise *e = &c->cost->elementwise[pass];
		struct rfl_traffic *u = &c->cost->traffic[UNFUSED][pass];
		const int64_t kernels =
			div && k ? 4 : 1; /* each reads and writes one more tensor */

		if (!c->inputs[k].grad)
			continue;
		e->special += div ? (1 + k) * c->out : 0;
		e->mul += !div || k ? c->out : 0;
		rfl_cost_move(c, u, c->out, kernels * v, c->out, kernels * v);
		for (int i = 0; i < 2; i++) {
			if (i == k && kernels == 1)
				continue;
			rfl_op_operand_read(c, i, u);
			rfl_op_operand_read(c, i, &c->cost->traffic[FUSED][pass]);
		}
		if (kernels > 1) /* the second quotient */
			rfl_op_operand_read(c, 1, u);
		reduce(c, k);
	}
	fused_backward(c, false);
}

/* Save the first operand before it is overwritten, and the second unchanged. */
static void saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	bool second = c->node->op == RFL_OP_DIV ? c->needs_dgrad : c->inputs[0].grad;

	if (c->inputs[1].grad && c->node->inplace)
		rfl_op_save(c, RFL_SAVED_CLASS_CLONES, c->in, c->value_bytes, out);
	else if (c->inputs[1].grad)
		rfl_op_save_operand(c, 0, out);
	if (second)
		rfl_op_save_operand(c, 1, out);
}

/* The gradient of a broadcast operand is computed at full size and then summed. */
static int64_t repeated(struct rfl_cost_context *c, int k)
{
	bool sums = c->inputs[k].grad && rfl_cost_in(c, k) < c->out;

	return sums ? rfl_cost_mul(c, c->out, c->value_bytes) : 0;
}

static void sub_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	out->backward = repeated(c, 1);
}

static void mul_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	out->backward = rfl_cost_add(c, repeated(c, 0), repeated(c, 1));
}

/* The gradient of the divisor, -dY * ((x / d) / d), is computed first, with three tensors and the
 * product. The other gradient, which is counted anyway, comes after their release. */
static void div_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	bool summed = rfl_cost_in(c, 1) < c->out;

	if (c->inputs[1].grad)
		out->backward = rfl_cost_mul(c, c->out, (summed ? 4 : 3) * c->value_bytes);
	if (c->inputs[0].grad && c->inputs[1].grad)
		out->backward -= rfl_cost_mul(c, rfl_cost_in(c, 0), c->value_bytes);
}

#define BINARY(name_, module_, autograd_, ...) \
	RFL_OP(name_, module_, autograd_, .arity = 2, .fuses = true, .infer = infer, __VA_ARGS__)

BINARY(add, "Add", "AddBackward0", .cost = sum_cost, .passes = 2);
BINARY(sub, "Sub", "SubBackward0", .cost = sum_cost, .passes = 1, .scratch = sub_scratch);
BINARY(mul, "Mul", "MulBackward0", .cost = product_cost, .saved = saved, .scratch = mul_scratch);
BINARY(div, "Div", "DivBackward0", .cost = product_cost, .saved = saved, .scratch = div_scratch);
