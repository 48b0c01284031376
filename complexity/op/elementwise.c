/*
 * elementwise.c - operations that map each element by itself: activations, and exponential,
 * logarithm, root, square and scaling, the steps that composed operations are made of.
 *
 * Operations of the formulas per element, a change of sign not counted; s is the sigmoid.
 *
 *	operation     forward                                  dgrad
 *	relu          max(x, 0)                                dY where x > 0
 *	relu6         min(max(x, 0), 6)                        dY where 0 < x < 6
 *	sigmoid       1 / (1 + exp(-x))                        dY y (1 - y)
 *	tanh          tanh(x)                                  dY (1 - y^2)
 *	silu          x / (1 + exp(-x))                        dY s (1 + x (1 - s)), s again
 *	gelu          x / 2 (1 + erf(x / sqrt 2))              dY (cdf + x pdf), both again
 *	gelu, tanh    x / 2 (1 + tanh(k (x + c x^3)))          dY (h (1 + t) + x / 2 (1 - t^2) k
 *	                                                          (1 + 3 c x^2)), t again
 *	hard_sigmoid  min(max(x + 3, 0), 6) / 6                dY / 6 where -3 < x < 3
 *	hard_swish    x min(max(x + 3, 0), 6) / 6              dY, 0 or dY (x / 3 + 1 / 2)
 *
 * Formulas as in PyTorch's kernels (aten/src/ATen/native/cuda/Activation*Kernel.cu). Exponential,
 * division, erf and tanh are special; a division by a constant is a multiplication.
 *
 * Traffic: op/parts.c. ReLU and ReLU6 need one bit per element in the backward pass of a fused
 * operation, the others their input (sigmoid and tanh their result).
 *
 * Of the steps of composed operations:
 *
 *	exp        1 special       dY y: 1 mul
 *	log        1 special       dY / x: 1 special
 *	rsqrt      2 special       -1/2 dY y^3: 4 mul
 *	square     1 mul           dY 2 x: 2 mul
 *	affine     a x + b: 1 mul unless a is 1, 1 add unless b is 0; dY a: 1 mul unless a is 1
 *
 * The gradients of rsqrt and square are three kernels in PyTorch's eager mode (a power, a product
 * with a constant, a product): R 4, W 3 tensors. affine is a kernel for each of its steps, and its
 * gradient needs nothing but dY.
 */
#include "complexity/op/parts.h"

static void gelu_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	static const struct rfl_op_unary exact = {
		.forward = { .add = 1, .mul = 3, .special = 1 },
		.dgrad = { .add = 2, .mul = 7, .special = 2 },
	};
	static const struct rfl_op_unary tanh = {
		.forward = { .add = 2, .mul = 6, .special = 1 },
		.dgrad = { .add = 5, .mul = 12, .special = 1 },
	};

	rfl_op_unary_cost(c, c->node->attr.gelu.tanh ? &tanh : &exact, cost);
}

static const struct rfl_op_attr gelu_attrs[] = {
	RFL_OP_ATTR(BOOL, gelu, tanh, .def = 0),
};

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

#define ELEMENTWISE(name_, module_, autograd_, saved_, ...)                                   \
	{                                                                                     \
		.name = (name_), .module = (module_), .autograd = (autograd_), .rides = true, \
		.infer = rfl_op_same_shape, .saved = (saved_), __VA_ARGS__                    \
	}

const struct rfl_op_info rfl_op_relu =
	ELEMENTWISE("relu", "ReLU", "ReluBackward0", rfl_op_saves_output,
		    .unary = &(const struct rfl_op_unary){ .forward = { .compare = 1 },
							   .dgrad = { .compare = 1 },
							   .needs = RFL_OP_NEEDS_BIT });
const struct rfl_op_info rfl_op_relu6 =
	ELEMENTWISE("relu6", "ReLU6", "HardtanhBackward0", rfl_op_saves_input,
		    .unary = &(const struct rfl_op_unary){ .forward = { .compare = 2 },
							   .dgrad = { .compare = 2 },
							   .needs = RFL_OP_NEEDS_BIT });
const struct rfl_op_info rfl_op_sigmoid =
	ELEMENTWISE("sigmoid", "Sigmoid", "SigmoidBackward0", rfl_op_saves_output,
		    .unary = &(const struct rfl_op_unary){ .forward = { .add = 1, .special = 2 },
							   .dgrad = { .add = 1, .mul = 2 } });
const struct rfl_op_info rfl_op_tanh =
	ELEMENTWISE("tanh", "Tanh", "TanhBackward0", rfl_op_saves_output,
		    .unary = &(const struct rfl_op_unary){ .forward = { .special = 1 },
							   .dgrad = { .add = 1, .mul = 2 } });
const struct rfl_op_info rfl_op_silu = ELEMENTWISE(
	"silu", "SiLU", "SiluBackward0", rfl_op_saves_input,
	.unary = &(const struct rfl_op_unary){ .forward = { .add = 1, .special = 2 },
					       .dgrad = { .add = 3, .mul = 3, .special = 2 } });
const struct rfl_op_info rfl_op_gelu =
	ELEMENTWISE("gelu", "GELU", "GeluBackward0", rfl_op_saves_input, .cost = gelu_cost,
		    .attrs = gelu_attrs, .nattrs = RFL_ARRAY_LEN(gelu_attrs));
const struct rfl_op_info rfl_op_hard_sigmoid = ELEMENTWISE(
	"hard_sigmoid", "Hardsigmoid", "HardsigmoidBackward0", rfl_op_saves_input,
	.unary = &(const struct rfl_op_unary){ .forward = { .add = 1, .mul = 1, .compare = 2 },
					       .dgrad = { .mul = 1, .compare = 2 } });
const struct rfl_op_info rfl_op_hard_swish = ELEMENTWISE(
	"hard_swish", "Hardswish", "HardswishBackward0", rfl_op_saves_input,
	.unary = &(const struct rfl_op_unary){ .forward = { .add = 1, .mul = 2, .compare = 2 },
					       .dgrad = { .add = 1, .mul = 2, .compare = 2 } });
const struct rfl_op_info rfl_op_exp =
	ELEMENTWISE("exp", "Exp", "ExpBackward0", rfl_op_saves_output, .autocast = RFL_AUTOCAST_F32,
		    .unary = &(const struct rfl_op_unary){ .forward = { .special = 1 },
							   .dgrad = { .mul = 1 } });
const struct rfl_op_info rfl_op_log =
	ELEMENTWISE("log", "Log", "LogBackward0", rfl_op_saves_input, .autocast = RFL_AUTOCAST_F32,
		    .unary = &(const struct rfl_op_unary){ .forward = { .special = 1 },
							   .dgrad = { .special = 1 } });
const struct rfl_op_info rfl_op_rsqrt = ELEMENTWISE(
	"rsqrt", "Rsqrt", "RsqrtBackward0", rfl_op_saves_output, .autocast = RFL_AUTOCAST_F32,
	.unary = &(const struct rfl_op_unary){ .forward = { .special = 2 },
					       .dgrad = { .mul = 4 },
					       .steps = 2 },
	.scratch = power_scratch);
const struct rfl_op_info rfl_op_square = ELEMENTWISE(
	"square", "Square", "PowBackward0", rfl_op_saves_input, .autocast = RFL_AUTOCAST_F32,
	.unary = &(const struct rfl_op_unary){ .forward = { .mul = 1 },
					       .dgrad = { .mul = 2 },
					       .steps = 2 },
	.scratch = power_scratch);
const struct rfl_op_info rfl_op_affine =
	ELEMENTWISE("affine", "Affine", "MulBackward0", NULL, .cost = affine_cost,
		    .attrs = affine_attrs, .nattrs = RFL_ARRAY_LEN(affine_attrs));
