/*
 * op_binary.c - sums, differences, products and quotients of tensors, broadcast as numpy does:
 * dimensions are matched from the last one on, a size of 1 or a missing one is repeated.
 *
 * n elements of the output, k inputs. Forward: (k - 1) n operations of the kind; a quotient is
 * special. Backward of a sum or difference: free, the inputs get the gradient as it is (a
 * difference negates one); where a tensor has several readers the gradients are added, and that is
 * counted there (count.c).
 *
 * Traffic, unfused: forward R of every input, W Y. Fused: it rides on the operation that made one
 * of its inputs and reads the others.
 */
#include "complexity/op.h"
#include "complexity/op_saved.h"

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
	if (node->inplace && rfl_shape_numel(out) != rfl_shape_numel(&in[0]))
		return rfl_fail(err, RFL_EINVAL, 0, "%s in place cannot hold %s",
				rfl_shape_text(&in[0], a, sizeof(a)),
				rfl_shape_text(out, b, sizeof(b)));
	return RFL_OK;
}

static void add_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_FORWARD];
	struct rfl_traffic *f = &cost->traffic[RFL_FUSION_FUSED][RFL_PASS_FORWARD];
	int64_t inputs = c->node->ninputs;

	cost->elementwise[RFL_PASS_FORWARD].add = rfl_cost_mul(c, inputs - 1, c->out);
	rfl_cost_read(c, u, c->out, inputs * c->value_bytes);
	rfl_cost_write(c, u, c->out, c->value_bytes);
	if (!c->rides) {
		*f = *u;
		return;
	}
	rfl_cost_read(c, f, c->out, (inputs - 1) * c->value_bytes);
	if (c->input_shared)
		rfl_cost_write(c, f, c->out, c->value_bytes);
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
	.saved = div_saved,
	.scratch = div_scratch,
};
