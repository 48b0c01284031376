/*
 * elementwise.c - exponential, logarithm, root, square and scaling: the steps that composed
 * operations are made of.
 *
 *	operation  forward         dgrad
 *	exp        1 special       dY y: 1 mul
 *	log        1 special       dY / x: 1 special
 *	rsqrt      2 special       -1/2 dY y^3: 4 mul
 *	square     1 mul           dY 2 x: 2 mul
 *	affine     a x + b: 1 mul unless a is 1, 1 add unless b is 0; dY a: 1 mul unless a is 1
 *
 * Traffic: op/parts.c. The gradients of rsqrt and square are three kernels in PyTorch's eager mode
 * (a power, a product with a constant, a product): R 4, W 3 tensors. affine is a kernel for each of
 * its steps, and its gradient needs nothing but dY.
 */
#include "complexity/op/parts.h"

static void affine_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_affine *a = &c->node->attr.affine;
	int64_t muls = a->scale != 1.0, adds = a->shift != 0.0;
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];

	cost->elementwise[RFL_PASS_FORWARD].mul = muls * c->in;
	cost->elementwise[RFL_PASS_FORWARD].add = adds * c->in;
	rfl_cost_read(c, &u[RFL_PASS_FORWARD], c->in, (muls + adds) * c->value_bytes);
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->out, (muls + adds) * c->value_bytes);
	if (c->needs_dgrad) {
		cost->elementwise[RFL_PASS_DGRAD].mul = muls * c->in;
		rfl_cost_read(c, &u[RFL_PASS_DGRAD], c->out, muls * c->value_bytes);
		rfl_cost_write(c, &u[RFL_PASS_DGRAD], c->in, muls * c->value_bytes);
	}
	rfl_op_ride(c, 0, cost);
}

/* dX = dY * (2 * x^1) and dY * -1/2 * y^3: the power and what is multiplied by it. */
static void power_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	if (c->needs_dgrad)
		out->backward = rfl_cost_mul(c, c->in, 2 * c->value_bytes);
}

static const struct rfl_op_attr affine_attrs[] = {
	RFL_OP_ATTR(REAL, affine, scale, .def = 1, .min = INT64_MIN),
	RFL_OP_ATTR(REAL, affine, shift, .def = 0, .min = INT64_MIN),
};

const struct rfl_op_info rfl_op_exp = {
	.name = "exp",
	.module = "Exp",
	.autograd = "ExpBackward0",
	.rides = true,
	.autocast = RFL_AUTOCAST_F32,
	.infer = rfl_op_same_shape,
	.unary =
		&(const struct rfl_op_unary){
			.forward = { .special = 1 },
			.dgrad = { .mul = 1 },
		},
	.saved = rfl_op_saves_output,
};

const struct rfl_op_info rfl_op_log = {
	.name = "log",
	.module = "Log",
	.autograd = "LogBackward0",
	.rides = true,
	.autocast = RFL_AUTOCAST_F32,
	.infer = rfl_op_same_shape,
	.unary =
		&(const struct rfl_op_unary){
			.forward = { .special = 1 },
			.dgrad = { .special = 1 },
		},
	.saved = rfl_op_saves_input,
};

const struct rfl_op_info rfl_op_rsqrt = {
	.name = "rsqrt",
	.module = "Rsqrt",
	.autograd = "RsqrtBackward0",
	.rides = true,
	.autocast = RFL_AUTOCAST_F32,
	.infer = rfl_op_same_shape,
	.unary =
		&(const struct rfl_op_unary){
			.forward = { .special = 2 },
			.dgrad = { .mul = 4 },
			.steps = 2,
		},
	.saved = rfl_op_saves_output,
	.scratch = power_scratch,
};

const struct rfl_op_info rfl_op_square = {
	.name = "square",
	.module = "Square",
	.autograd = "PowBackward0",
	.rides = true,
	.autocast = RFL_AUTOCAST_F32,
	.infer = rfl_op_same_shape,
	.unary =
		&(const struct rfl_op_unary){
			.forward = { .mul = 1 },
			.dgrad = { .mul = 2 },
			.steps = 2,
		},
	.saved = rfl_op_saves_input,
	.scratch = power_scratch,
};

const struct rfl_op_info rfl_op_affine = {
	.name = "affine",
	.module = "Affine",
	.autograd = "MulBackward0",
	.rides = true,
	.attrs = affine_attrs,
	.nattrs = RFL_ARRAY_LEN(affine_attrs),
	.infer = rfl_op_same_shape,
	.cost = affine_cost,
};
