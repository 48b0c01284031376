/*
 * binary.c - sums, differences, products and quotients of tensors, broadcast as in numpy:
 * dimensions are matched from the last one backward; missing ones and those of size 1 are repeated.
 *
 * The output has n elements. Forward: n operations of the kind; a quotient is special. Backward:
 *
 *	a + b, a - b  none: the operands receive dY or -dY; a sign change is not counted
 *	a b           n mul for each factor that needs a gradient: dY b, dY a
 *	a / b         n special for a: dY / b; 2 n special and n mul for b: -dY ((a / b) / b)
 *
 * The gradient of a broadcast operand of m < n elements is summed, n - m add. The gradient of a
 * learned tensor (layer scale, position embedding) counts as wgrad, all others as dgrad. The sum of
 * gradients of a tensor with several readers is counted in count/costs.c.
 *
 * Fused into the operation that computes the larger operand, it reads the other one; backward, it
 * reads the tensors that the gradients need, one gradient replaces dY in memory, and the others are
 * written.
 */
#include "complexity/op/parts.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	int ndim = in[0].ndim > in[1].ndim ? in[0].ndim : in[1].ndim;
	char a[96], b[96];

	*out = (struct rfl_shape){ .ndim = ndim };
	for (int i = 1; i <= ndim; i++) {
		int64_t x = i <= in[0].ndim ? in[0].dim[in[0].ndim - i] : 1;
		int64_t y = i <= in[1].ndim ? in[1].dim[in[1].ndim - i] : 1;

		if (x != y && x != 1 && y != 1)
			return rfl_fail(err, RFL_EINVAL, 0,
					"the shapes %s and %s cannot be broadcast",
					rfl_shape_text(&in[0], a, sizeof(a)),
					rfl_shape_text(&in[1], b, sizeof(b)));
		out->dim[ndim - i] = x > y ? x : y;
	}
	/* A result that does not fit is rejected by the builder. */
	if (node->inplace && rfl_shape_fits(out) && rfl_shape_numel(out) != rfl_shape_numel(&in[0]))
		return rfl_fail(err, RFL_EINVAL, 0, "%s cannot hold the result %s in place",
				rfl_shape_text(&in[0], a, sizeof(a)),
				rfl_shape_text(out, b, sizeof(b)));
	return RFL_OK;
}

/* Common to all kinds: the operands are read; at the fused level, the larger one is on chip. */
static void forward_traffic(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_FORWARD];
	struct rfl_traffic *f = &cost->traffic[RFL_FUSION_FUSED][RFL_PASS_FORWARD];
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
static void fused_backward(struct rfl_cost_context *c, bool alike, struct rfl_cost *cost)
{
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];
	bool taken = false;

	if (!c->fused) {
		rfl_op_fuse_not(cost);
		return;
	}
	for (int k = 0; k < 2; k++) {
		bool full = rfl_cost_in(c, k) >= c->out;

		if (!c->inputs[k].grad)
			continue;
		if (!full || (taken && !alike))
			rfl_op_operand_write(c, k, &f[rfl_op_operand_pass(c, k)]);
		taken |= full;
	}
}

/* Sum a gradient of c->out elements over the broadcast dimensions of input k: the additions and,
 * unfused, a kernel that reads the gradient and writes the sum. */
static void reduce(struct rfl_cost_context *c, int k, struct rfl_cost *cost)
{
	enum rfl_pass pass = rfl_op_operand_pass(c, k);
	int64_t *adds = &cost->elementwise[pass].add, elements = rfl_cost_in(c, k);
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];

	if (elements >= c->out)
		return;
	*adds += c->out - elements;
	rfl_cost_read(c, u, c->out, c->value_bytes);
	rfl_op_operand_write(c, k, u);
}

/* A sum passes its gradient on unchanged, but sums it for a broadcast operand. A subtrahend gets
 * the negative, computed by a separate kernel unless fused. */
static void sum_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	int64_t v = c->value_bytes;

	cost->elementwise[RFL_PASS_FORWARD].add = c->out;
	forward_traffic(c, cost);
	for (int k = 0; k < 2; k++)
		if (c->inputs[k].grad)
			reduce(c, k, cost);
	if (c->node->op == RFL_OP_SUB && c->inputs[1].grad)
		rfl_cost_move(c, &cost->traffic[RFL_FUSION_UNFUSED][rfl_op_operand_pass(c, 1)],
			      c->out, v, c->out, v);
	fused_backward(c, true, cost);
}

/* The gradient of factor k is dY times the other factor; that of a dividend is dY / b. */
static void factor_gradient(struct rfl_cost_context *c, int k, struct rfl_cost *cost)
{
	enum rfl_pass pass = rfl_op_operand_pass(c, k);
	struct rfl_elementwise *e = &cost->elementwise[pass];
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];
	int64_t *kind = c->node->op == RFL_OP_DIV ? &e->special : &e->mul;

	*kind += c->out;
	rfl_cost_move(c, u, c->out, c->value_bytes, c->out, c->value_bytes);
	rfl_op_operand_read(c, 1 - k, u);
	rfl_op_operand_read(c, 1 - k, &cost->traffic[RFL_FUSION_FUSED][pass]);
	reduce(c, k, cost);
}

static void mul_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	cost->elementwise[RFL_PASS_FORWARD].mul = c->out;
	forward_traffic(c, cost);
	for (int k = 0; k < 2; k++)
		if (c->inputs[k].grad)
			factor_gradient(c, k, cost);
	fused_backward(c, false, cost);
}

/* The gradient of the divisor, -dY ((a / b) / b), takes two quotients, a change of sign and a
 * product, each a separate kernel in eager mode. */
static void div_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	enum rfl_pass pass = rfl_op_operand_pass(c, 1);
	struct rfl_elementwise *e = &cost->elementwise[pass];
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];
	int64_t v = c->value_bytes;

	cost->elementwise[RFL_PASS_FORWARD].special = c->out;
	forward_traffic(c, cost);
	if (c->inputs[0].grad)
		factor_gradient(c, 0, cost);
	if (c->inputs[1].grad) {
		e->special += 2 * c->out;
		e->mul += c->out;
		rfl_op_operand_read(c, 0, u);
		rfl_op_operand_read(c, 1, u);
		rfl_op_operand_read(c, 1, u);
		/* a / b; dY; the results of the second quotient and the sign change */
		rfl_cost_move(c, u, c->out, 4 * v, c->out, 4 * v);
		for (int k = 0; k < 2; k++)
			rfl_op_operand_read(c, k, &cost->traffic[RFL_FUSION_FUSED][pass]);
		reduce(c, 1, cost);
	}
	fused_backward(c, false, cost);
}

/* Save the first operand before it is overwritten, and the second unchanged. */
static void saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	bool second = c->node->op == RFL_OP_DIV ? c->needs_dgrad : c->inputs[0].grad;

	if (c->inputs[1].grad && c->node->inplace)
		rfl_op_save(c, RFL_SAVED_CLONE, c->in, c->value_bytes, out);
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
BINARY(mul, "Mul", "MulBackward0", .cost = mul_cost, .saved = saved, .scratch = mul_scratch);
BINARY(div, "Div", "DivBackward0", .cost = div_cost, .saved = saved, .scratch = div_scratch);
