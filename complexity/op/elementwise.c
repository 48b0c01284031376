/*
 * elementwise.c - operations that map each element separately: activations; the steps of composed
 * operations (exponential, logarithm, root, square and scaling); and dropout.
 *
 * Formulas per element; s is the sigmoid, "again" means recomputed. Sign changes are not counted.
 *
 *	operation     forward                                  dgrad
 *	relu          max(x, 0)                                dY where x > 0
 *	relu6         min(max(x, 0), 6)                        dY where 0 < x < 6
 *	sigmoid       1 / (1 + exp(-x))                        dY y (1 - y)
 *	tanh          tanh(x)                                  dY (1 - y^2)
 *	silu          x / (1 + exp(-x))                        dY s (1 + x (1 - s)), s again
 *	mish          x t, t = tanh(log(1 + exp(x)))           dY (t + x s (1 - t^2)), t and s again
 *	gelu          x / 2 (1 + erf(x / sqrt 2))              dY (cdf + x pdf), both again
 *	gelu, tanh    x / 2 (1 + tanh(k (x + c x^3)))          dY (h (1 + t) + x / 2 (1 - t^2) k
 *	                                                          (1 + 3 c x^2)), t again
 *	hard_sigmoid  min(max(x + 3, 0), 6) / 6                dY / 6 where -3 < x < 3
 *	hard_swish    x min(max(x + 3, 0), 6) / 6              dY, 0 or dY (x / 3 + 1 / 2)
 *
 * The formulas are from PyTorch's kernels (aten/src/ATen/native/cuda/Activation*Kernel.cu).
 * Exponential, logarithm, division, erf and tanh are special; division by a constant is mul.
 *
 * The gradients of rsqrt, -1/2 dY y^3, and square, dY 2 x, are three kernels in PyTorch's eager
 * mode (a power, a product with a constant, a product), which read 4 and write 3 tensors.
 * affine, a x + b, runs one kernel for each step that is not trivial; its gradient needs only dY.
 */
#include "complexity/op/parts.h"

#define ELEMENTWISE(name_, module_, autograd_, saved_, ...)                          \
	RFL_OP(name_, module_, autograd_, .fuses = true, .infer = rfl_op_same_shape, \
	       .saved = (saved_), __VA_ARGS__)
#define UNARY(name_, module_, autograd_, saved_, ...)                             \
	ELEMENTWISE(name_, module_, autograd_, saved_, .cost = rfl_op_unary_cost, \
		    .unary = { __VA_ARGS__ })
#define UNARY_F32(name_, module_, autograd_, saved_, ...)                         \
	ELEMENTWISE(name_, module_, autograd_, saved_, .cost = rfl_op_unary_cost, \
		    .autocast = RFL_AUTOCAST_F32, __VA_ARGS__)

UNARY(relu, "ReLU", "ReluBackward0", rfl_op_saves_output, .forward = { .compare = 1 },
      .dgrad = { .compare = 1 }, .needs = RFL_OP_NEEDS_BIT);
UNARY(relu6, "ReLU6", "HardtanhBackward0", rfl_op_saves_input, .forward = { .compare = 2 },
      .dgrad = { .compare = 2 }, .needs = RFL_OP_NEEDS_BIT);
UNARY(sigmoid, "Sigmoid", "SigmoidBackward0", rfl_op_saves_output,
      .forward = { .add = 1, .special = 2 }, .dgrad = { .add = 1, .mul = 2 });
UNARY(tanh, "Tanh", "TanhBackward0", rfl_op_saves_output, .forward = { .special = 1 },
      .dgrad = { .add = 1, .mul = 2 });
UNARY(silu, "SiLU", "SiluBackward0", rfl_op_saves_input, .forward = { .add = 1, .special = 2 },
      .dgrad = { .add = 3, .mul = 3, .special = 2 });
UNARY(mish, "Mish", "MishBackward0", rfl_op_saves_input,
      .forward = { .add = 1, .mul = 1, .special = 3 },
      .dgrad = { .add = 4, .mul = 4, .special = 5 });
UNARY(hard_sigmoid, "Hardsigmoid", "HardsigmoidBackward0", rfl_op_saves_input,
      .forward = { .add = 1, .mul = 1, .compare = 2 }, .dgrad = { .mul = 1, .compare = 2 });
UNARY(hard_swish, "Hardswish", "HardswishBackward0", rfl_op_saves_input,
      .forward = { .add = 1, .mul = 2, .compare = 2 },
      .dgrad = { .add = 1, .mul = 2, .compare = 2 });
UNARY_F32(exp, "Exp", "ExpBackward0", rfl_op_saves_output,
	  .unary = { .forward = { .special = 1 }, .dgrad = { .mul = 1 } });
UNARY_F32(log, "Log", "LogBackward0", rfl_op_saves_input,
	  .unary = { .forward = { .special = 1 }, .dgrad = { .special = 1 } });

/* The gradients dY * (2 * x^1) and dY * -1/2 * y^3 need two temporaries each. */
static void power_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	if (c->needs_dgrad)
		out->backward = rfl_cost_mul(c, c->in, 2 * c->value_bytes);
}

UNARY_F32(rsqrt, "Rsqrt", "RsqrtBackward0", rfl_op_saves_output, .scratch = power_scratch,
	  .unary = { .forward = { .special = 2 }, .dgrad = { .mul = 4 }, .steps = 2 });
UNARY_F32(square, "Square", "PowBackward0", rfl_op_saves_input, .scratch = power_scratch,
	  .unary = { .forward = { .mul = 1 }, .dgrad = { .mul = 2 }, .steps = 2 });

static void gelu_cost(struct rfl_cost_context *c)
{
	static const struct rfl_op_unary forms[] = {
		{ .forward = { .add = 1, .mul = 3, .special = 1 },
		  .dgrad = { .add = 2, .mul = 7, .special = 2 } },
		{ .forward = { .add = 2, .mul = 6, .special = 1 },
		  .dgrad = { .add = 5, .mul = 12, .special = 1 } },
	};

	rfl_op_unary_cost_of(c, &forms[c->node->attr.gelu.tanh]);
}

ELEMENTWISE(gelu, "GELU", "GeluBackward0", rfl_op_saves_input, .cost = gelu_cost,
	    RFL_OP_ATTRS(RFL_OP_ATTR(BOOL, gelu, tanh, .def = 0)));

static void affine_cost(struct rfl_cost_context *c)
{
	const struct rfl_affine *a = &c->node->attr.affine;
	int64_t muls = a->scale != 1.0 ? c->in : 0, adds = a->shift != 0.0 ? c->in : 0;

	rfl_op_count(c, FORWARD, .mul = muls, .add = adds);
	rfl_op_count(c, DGRAD, .mul = muls);
	rfl_op_move(c, FORWARD, muls + adds, muls + adds);
	rfl_op_move(c, DGRAD, muls, muls);
	rfl_op_fuse(c, 0);
}

ELEMENTWISE(affine, "Affine", "MulBackward0", NULL, .cost = affine_cost,
	    RFL_OP_ATTRS(RFL_OP_ATTR(REAL, affine, scale, .def = 1, .min = INT64_MIN),
			 RFL_OP_ATTR(REAL, affine, shift, .def = 0, .min = INT64_MIN)));

/*
 * Dropout of elements and of samples. It does nothing in inference. In training, a random number
 * per element is compared with the probability p, and the element is multiplied by 0 or 1 / (1 -
 * p): n compare, n mul; dgrad multiplies by the same number. Stochastic depth draws one number per
 * sample: B compare, n mul. Drawing random numbers is not counted.
 * Unfused, a dropout keeps one byte per element; fused into the operation before it, one bit.
 */

static enum rfl_rc dropout_infer(struct rfl_op_shapes *s)
{
	const double p = s->node->attr.dropout.probability;

	if (!(p >= 0.0 && p < 1.0))
		return rfl_op_refuse(s, "probability %g must be at least 0 and below 1", p);
	return rfl_op_same_shape(s);
}

/* Whether it has any effect. */
static bool drops(const struct rfl_cost_context *c)
{
	return c->options->training && c->node->attr.dropout.probability > 0.0;
}

static void dropout_cost(struct rfl_cost_context *c)
{
	int64_t v = c->value_bytes;

	if (!drops(c))
		return;
	rfl_op_count(c, FORWARD, .compare = c->in, .mul = c->in);
	rfl_op_count(c, DGRAD, .mul = c->in);
	rfl_op_move_at(c, UNFUSED, FORWARD, c->in, v, c->out, v + 1);
	rfl_op_move_at(c, UNFUSED, DGRAD, c->out, v + 1, c->in, v);
	rfl_op_fuse_with_mask(c);
}

static void depth_cost(struct rfl_cost_context *c)
{
	int64_t v = c->value_bytes;

	if (!drops(c))
		return;
	rfl_op_unary_cost(c);
	rfl_op_count(c, FORWARD, .compare = c->batch);
	for (int level = UNFUSED; level <= FUSED; level++) {
		rfl_op_move_at(c, (enum rfl_fusion)level, FORWARD, c->batch, v, c->batch, v);
		rfl_op_move_at(c, (enum rfl_fusion)level, DGRAD, c->batch, v, 0, 0);
	}
}

/* Save the mask. Stochastic depth: one number per sample. Dropout: one byte per element on a GPU;
 * on a CPU, or if the input is overwritten, a noise tensor of the input's type. */
static void dropout_saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	bool depth = c->node->op == RFL_OP_STOCHASTIC_DEPTH;
	bool byte = !depth && !c->on_cpu && !c->node->inplace;

	if (drops(c) && c->needs_dgrad)
		rfl_op_save(c, RFL_SAVED_CLASS_MASKS, depth ? c->batch : c->in,
			    byte ? 1 : c->value_bytes, out);
}

#define DROPOUT(name_, module_, autograd_, ...)                                         \
	RFL_OP(name_, module_, autograd_, .fuses = true, .infer = dropout_infer,        \
	       .saved = dropout_saved,                                                  \
	       RFL_OP_ATTRS(RFL_OP_ATTR(REAL, dropout, probability, .required = true)), \
	       __VA_ARGS__)

DROPOUT(dropout, "Dropout", "NativeDropoutBackward0", .cost = dropout_cost);
DROPOUT(stochastic_depth, "StochasticDepth", "MulBackward0", .cost = depth_cost,
	.unary = { .forward = { .mul = 1 }, .dgrad = { .mul = 1 }, .needs = RFL_OP_NEEDS_NOTHING });
