/*
 * binary.c - sums, differences, products and quotients of tensors, broadcast as numpy does:
 * dimensions are matched from the last one on, a size of 1 or a missing one is repeated.
 *
 * n elements of the output. Forward: n operations of the kind; a quotient is special. Backward:
 *
 *	a + b, a - b  none: the operands get dY, or -dY; a change of sign is not counted
 *	a b           n mul for each factor that needs a gradient: dY b, dY a
 *	a / b         n special for a: dY / b; 2 n special and n mul for b: -dY ((a / b) / b)
 *
 * An operand of m < n elements was repeated: its gradient is summed, n - m add. That of a learned
 * tensor (layer scale, position embedding) is wgrad, the rest dgrad. Where a tensor has several
 * readers the gradients are added, and that is counted there (count/costs.c).
 *
 * Traffic, unfused, every kernel of PyTorch's eager mode: forward R a, R b, W Y. Backward of a
 * factor R dY, R the other, W n; of a dividend R dY, R b, W n; of a divisor R a, R 2 b, R 4 n,
 * W 4 n; of what is subtracted R dY, W n; the sum of a repeated operand R n, W m. Fused: it
 * rides on the operation that made the larger operand and reads the other one; backward it reads
 * what the gradients need, one of them takes dY's place in memory, the others are written.
 */
#include "complexity/op/parts.h"

static bool broadcast(const struct rfl_shape *in, struct rfl_shape *out)
{
	int ndim = in->ndim > out->ndim ? in->ndim : out->ndim;
	struct rfl_shape wide = { .ndim = ndim };

	for (int i = 1; i <= ndim; i++) {
		int64_t a = i <= in->ndim ? in->dim[in->ndim - i] : 1;
		int64_t b = i <= out->ndim ? out->dim[out->ndim - i] : 1;

		if (a != b && a != 1 && b != 1)
			return false;
		wide.dim[ndim - i] = a > b ? a : b;
	}
	*out = wide;
	return true;
}

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	char a[96], b[96];

	if (node->ninputs < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "needs inputs");
	*out = in[0];
	for (int i = 1; i < node->ninputs; i++)
		if (!broadcast(&in[i], out))
			return rfl_fail(err, RFL_EINVAL, 0, "%s and %s do not broadcast",
					rfl_shape_text(&in[0], a, sizeof(a)),
					rfl_shape_text(&in[i], b, sizeof(b)));
	/* What does not fit is refused by the builder. */
	if (node->inplace && rfl_shape_fits(out) && rfl_shape_numel(out) != rfl_shape_numel(&in[0]))
		return rfl_fail(err, RFL_EINVAL, 0, "%s in place cannot hold %s",
				rfl_shape_text(&in[0], a, sizeof(a)),
				rfl_shape_text(out, b, sizeof(b)));
	return RFL_OK;
}

/* What every kind shares: the operands are read, the fused level keeps the largest one at hand. */
static void forward_traffic(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_FORWARD];
	struct rfl_traffic *f = &cost->traffic[RFL_FUSION_FUSED][RFL_PASS_FORWARD];
	int host = rfl_op_operand_largest(c);

	for (int k = 0; k < c->node->ninputs; k++) {
		rfl_op_operand_read(c, k, u);
		if (k != host)
			rfl_op_operand_read(c, k, f);
	}
	rfl_cost_write(c, u, c->out, c->value_bytes);
	if (c->input_shared)
		rfl_cost_write(c, f, c->out, c->value_bytes);
}

/* Of gradients as large as the result one takes dY's place in memory, and so do others that are
 * `alike`; the rest is written. What cannot ride has no fused level of its own. */
static void fused_backward(struct rfl_cost_context *c, bool alike, struct rfl_cost *cost)
{
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];
	bool taken = false;

	if (!c->rides) {
		rfl_op_ride_not(cost);
		return;
	}
	for (int k = 0; k < c->node->ninputs; k++) {
		bool full = rfl_cost_in(c, k) >= c->out;

		if (!c->inputs[k].grad)
			continue;
		if (!full || (taken && !alike))
			rfl_op_operand_write(c, k, &f[rfl_op_operand_pass(c, k)]);
		taken |= full;
	}
}

/* A sum hands its gradient on as it is, and sums it where it had repeated an operand. */
static void sum_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	cost->elementwise[RFL_PASS_FORWARD].add = rfl_cost_mul(c, c->node->ninputs - 1, c->out);
	forward_traffic(c, cost);
	for (int k = 0; k < c->node->ninputs; k++)
		if (c->inputs[k].grad)
			rfl_op_operand_reduce(c, k, cost);
}

static void add_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	sum_cost(c, cost);
	fused_backward(c, true, cost);
}

/* What is subtracted gets the negative: a kernel of its own, unless it is fused. */
static void sub_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][rfl_op_operand_pass(c, 1)];

	sum_cost(c, cost);
	if (c->inputs[1].grad) {
		rfl_cost_read(c, u, c->out, c->value_bytes);
		rfl_cost_write(c, u, c->out, c->value_bytes);
	}
	fused_backward(c, true, cost);
}

/* The gradient of factor k is dY times the other one. */
static void factor_gradient(struct rfl_cost_context *c, int k, struct rfl_cost *cost)
{
	enum rfl_pass pass = rfl_op_operand_pass(c, k);
	struct rfl_elementwise *e = &cost->elementwise[pass];
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];

	e->mul = rfl_cost_add(c, e->mul, c->out);
	rfl_cost_read(c, u, c->out, c->value_bytes);
	rfl_op_operand_read(c, 1 - k, u);
	rfl_cost_write(c, u, c->out, c->value_bytes);
	rfl_op_operand_read(c, 1 - k, &cost->traffic[RFL_FUSION_FUSED][pass]);
	rfl_op_operand_reduce(c, k, cost);
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

/* dY / b: one quotient. */
static void dividend_gradient(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	enum rfl_pass pass = rfl_op_operand_pass(c, 0);
	struct rfl_elementwise *e = &cost->elementwise[pass];
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];

	e->special = rfl_cost_add(c, e->special, c->out);
	rfl_cost_read(c, u, c->out, c->value_bytes);
	rfl_op_operand_read(c, 1, u);
	rfl_cost_write(c, u, c->out, c->value_bytes);
	rfl_op_operand_read(c, 1, &cost->traffic[RFL_FUSION_FUSED][pass]);
	rfl_op_operand_reduce(c, 0, cost);
}

/* -dY ((a / b) / b): two quotients, a change of sign and a product, each a kernel in eager mode. */
static void divisor_gradient(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	enum rfl_pass pass = rfl_op_operand_pass(c, 1);
	struct rfl_elementwise *e = &cost->elementwise[pass];
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];

	e->special = rfl_cost_add(c, e->special, rfl_cost_mul(c, 2, c->out));
	e->mul = rfl_cost_add(c, e->mul, c->out);
	rfl_op_operand_read(c, 0, u);
	rfl_op_operand_read(c, 1, u);
	rfl_op_operand_read(c, 1, u);
	rfl_cost_read(c, u, c->out, 4 * c->value_bytes); /* a / b; dY; the last two of them */
	rfl_cost_write(c, u, c->out, 4 * c->value_bytes);
	for (int k = 0; k < 2; k++)
		rfl_op_operand_read(c, k, &cost->traffic[RFL_FUSION_FUSED][pass]);
	rfl_op_operand_reduce(c, 1, cost);
}

static void div_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	cost->elementwise[RFL_PASS_FORWARD].special = c->out;
	forward_traffic(c, cost);
	if (c->inputs[0].grad)
		dividend_gradient(c, cost);
	if (c->inputs[1].grad)
		divisor_gradient(c, cost);
	fused_backward(c, false, cost);
}

/* The first operand as the operation found it. */
static int save_first(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED], int n)
{
	if (c->node->inplace)
		return rfl_op_save_bytes(RFL_SAVED_CLONE,
					 rfl_cost_mul(c, rfl_cost_in(c, 0), c->value_bytes), out,
					 n);
	return rfl_op_save_operand(c, 0, out, n);
}

static int mul_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int n = c->inputs[1].grad ? save_first(c, out, 0) : 0;

	return c->inputs[0].grad ? rfl_op_save_operand(c, 1, out, n) : n;
}

static int div_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int n = c->inputs[1].grad ? save_first(c, out, 0) : 0;

	return c->needs_dgrad ? rfl_op_save_operand(c, 1, out, n) : n;
}

/* The gradient of an operand that was repeated is made at full size and then summed. */
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

/* The gradient of the divisor, -dY * ((x / d) / d), is made first: three tensors and the product.
 * The other gradient, which the walk counts anyway, comes when the three are gone. */
static void div_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	bool summed = rfl_cost_in(c, 1) < c->out;

	if (c->inputs[1].grad)
		out->backward = rfl_cost_mul(c, c->out, (summed ? 4 : 3) * c->value_bytes);
	if (c->inputs[0].grad && c->inputs[1].grad)
		out->backward -= rfl_cost_mul(c, rfl_cost_in(c, 0), c->value_bytes);
}

const struct rfl_op_info rfl_op_add = {
	.name = "add",
	.arity = 2,
	.module = "Add",
	.autograd = "AddBackward0",
	.rides = true,
	.infer = infer,
	.cost = add_cost,
	.passes = 2,
};

const struct rfl_op_info rfl_op_sub = {
	.name = "sub",
	.arity = 2,
	.module = "Sub",
	.autograd = "SubBackward0",
	.rides = true,
	.infer = infer,
	.cost = sub_cost,
	.passes = 1,
	.scratch = sub_scratch,
};

const struct rfl_op_info rfl_op_mul = {
	.name = "mul",
	.arity = 2,
	.module = "Mul",
	.autograd = "MulBackward0",
	.rides = true,
	.infer = infer,
	.cost = mul_cost,
	.saved = mul_saved,
	.scratch = mul_scratch,
};

const struct rfl_op_info rfl_op_div = {
	.name = "div",
	.arity = 2,
	.module = "Div",
	.autograd = "DivBackward0",
	.rides = true,
	.infer = infer,
	.cost = div_cost,
	.saved = div_saved,
	.scratch = div_scratch,
};
