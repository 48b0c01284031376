/*
 * weights.c - two-dimensional convolutions, grouped and dilated ones included, and the fully
 * connected layer y = x w^T + b over the last dimension.
 *
 * Convolution: with N samples, Ci -> Co channels, Ho x Wo positions, a kernel of kh x kw taps and G
 * groups
 *
 *	forward  N * Co * Ho * Wo * (Ci / G) * kh * kw multiply-adds, padding taps included;
 *	         a bias is one addition per output element, kept apart
 *	dgrad    the same number: every product of the forward pass meets the gradient once
 *	wgrad    the same number; a bias gradient is the sum of dY over samples and positions
 *
 * All three are equal for any stride, dilation and groups. So counts PyTorch's FlopCounterMode
 * (torch/utils/flop_counter.py, conv_backward_flop), but for its earlier versions, which take the
 * weight gradient of a grouped convolution for that of a dense one. A linear layer of R rows: R *
 * in * out, and dX = dY w and dw = dY^T X as many (FlopCounterMode reports them as two mm).
 *
 * Traffic: forward R X, R w, W Y; dgrad R dY, R w, W dX; wgrad R X, R dY, W dw. Direct
 * convolution: a library that unfolds the image first (im2col) moves kh * kw times X more.
 *
 * Under autocast (master_weights) the weights are stored as F32 and a 16-bit copy is made for each
 * step: unfused, a kernel of its own reads 4 and writes 2 bytes per weight and the gradient is
 * widened by another; fused, the operation reads the F32 weights and writes F32 gradients itself.
 *
 * A frozen weight has no wgrad. The gradient of a borrowed one (a head tied to the embedding) is
 * added to its owner's: an addition per weight; unfused R both, W one, fused R what is there.
 */
#include "complexity/op/parts.h"

/* `macs` of the forward pass over the batch; elements of the weight and of the bias. */
static void weights_cost(struct rfl_cost_context *c, int64_t macs, int64_t weights, int64_t biases,
			 struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];
	int64_t *adds = &cost->elementwise[RFL_PASS_WGRAD].add;
	int64_t v = c->value_bytes, stored = c->param_bytes;
	int64_t all = rfl_cost_add(c, weights, biases);
	int64_t copied = stored != v ? all : 0;

	cost->macs[RFL_PASS_FORWARD] = macs;
	cost->bias_adds = biases ? c->out : 0;
	for (int level = RFL_FUSION_UNFUSED; level <= RFL_FUSION_FUSED; level++) {
		struct rfl_traffic *t = cost->traffic[level];
		int64_t size = level == RFL_FUSION_FUSED ? stored : v; /* no copy is kept */

		rfl_cost_move(c, &t[RFL_PASS_FORWARD], c->in, v, c->out, v);
		rfl_cost_read(c, &t[RFL_PASS_FORWARD], all, size);
		if (c->needs_dgrad) {
			rfl_cost_move(c, &t[RFL_PASS_DGRAD], c->out, v, c->in, v);
			rfl_cost_read(c, &t[RFL_PASS_DGRAD], weights, size);
		}
		if (c->needs_wgrad) {
			rfl_cost_move(c, &t[RFL_PASS_WGRAD], c->in, v, all, size);
			rfl_cost_read(c, &t[RFL_PASS_WGRAD], c->out, v);
		}
	}
	rfl_cost_move(c, &u[RFL_PASS_FORWARD], copied, stored, copied, v);
	if (c->needs_dgrad)
		cost->macs[RFL_PASS_DGRAD] = macs;
	if (!c->needs_wgrad)
		return;
	cost->macs[RFL_PASS_WGRAD] = macs;
	rfl_cost_move(c, &u[RFL_PASS_WGRAD], copied, v, copied, stored);
	if (biases) /* out / biases terms per bias make one addition less each */
		*adds = c->out - biases;
	if (c->node->tied) {
		*adds = rfl_cost_add(c, *adds, all);
		rfl_cost_move(c, &u[RFL_PASS_WGRAD], all, 2 * stored, all, stored);
		rfl_cost_read(c, &f[RFL_PASS_WGRAD], all, stored);
	}
}

/* --- convolution --- */

static void windows_of(const struct rfl_conv2d *a, struct rfl_window w[2])
{
	w[0] = (struct rfl_window){ a->kernel_h, a->stride_h, a->pad_h, a->dilation_h, false };
	w[1] = (struct rfl_window){ a->kernel_w, a->stride_w, a->pad_w, a->dilation_w, false };
}

static enum rfl_rc conv_infer(const struct rfl_node *node, const struct rfl_shape *in,
			      struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_conv2d *a = &node->attr.conv2d;
	struct rfl_window w[2];

	if (a->groups < 1 || a->out_channels < 1 || a->in_channels % a->groups != 0 ||
	    a->out_channels % a->groups != 0)
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"%lld input and %lld output channels do not divide into %lld groups",
			(long long)a->in_channels, (long long)a->out_channels,
			(long long)a->groups);
	windows_of(a, w);
	return rfl_window_image(w, in, a->out_channels, out, err);
}

static int conv_params(const struct rfl_node *node, struct rfl_op_param *out)
{
	const struct rfl_conv2d *a = &node->attr.conv2d;

	out[0] = (struct rfl_op_param){
		.suffix = "weight",
		.kind = RFL_PARAM_CONV_WEIGHT,
		.ndim = 4,
		.dim = { a->out_channels, a->in_channels / a->groups, a->kernel_h, a->kernel_w },
	};
	out[1] = (struct rfl_op_param){ "bias", RFL_PARAM_CONV_BIAS, 1, { a->out_channels } };
	return a->bias ? 2 : 1;
}

static void conv_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_conv2d *a = &c->node->attr.conv2d;
	int64_t pairs = rfl_cost_mul(c, a->out_channels, a->in_channels / a->groups);
	int64_t kernel = rfl_cost_mul(c, a->kernel_h, a->kernel_w);
	int64_t per_position = rfl_cost_mul(c, a->in_channels / a->groups, kernel);
	int64_t macs = rfl_cost_mul(c, c->out, per_position), taps;
	struct rfl_window w[2];

	if (c->overflow)
		return; /* the taps fit only where the MACs do */
	windows_of(a, w);
	taps = rfl_cost_mul(c,
			    rfl_window_real_taps(&w[0], c->in_shape.dim[1], c->node->shape.dim[1]),
			    rfl_window_real_taps(&w[1], c->in_shape.dim[2], c->node->shape.dim[2]));
	cost->macs_excl_padding = rfl_cost_mul(c, c->batch, rfl_cost_mul(c, pairs, taps));
	weights_cost(c, macs, rfl_cost_mul(c, pairs, kernel), a->bias ? a->out_channels : 0, cost);
}

/* Even where the weight is frozen. */
static int conv_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	return c->needs_dgrad || c->needs_wgrad ? rfl_op_save_operand(c, 0, out, 0) : 0;
}

RFL_OP(conv2d, "Conv2d", "ConvolutionBackward0", RFL_OP_READS_IMAGE, .infer = conv_infer,
       .params = conv_params, .cost = conv_cost, .saved = conv_saved,
       .autocast = RFL_AUTOCAST_LOWER,
       RFL_OP_ATTRS(RFL_OP_ATTR(INT, conv2d, in_channels, .min = 1, .inferred = true),
		    RFL_OP_ATTR(INT, conv2d, out_channels, .required = true, .min = 1),
		    RFL_OP_ATTR_PAIR(conv2d, kernel, .required = true, .min = 1),
		    RFL_OP_ATTR_PAIR(conv2d, stride, .def = 1, .min = 1),
		    RFL_OP_ATTR_PAIR(conv2d, pad, .def = 0),
		    RFL_OP_ATTR_PAIR(conv2d, dilation, .def = 1, .min = 1),
		    RFL_OP_ATTR(INT, conv2d, groups, .def = 1, .min = 1),
		    RFL_OP_ATTR(BOOL, conv2d, bias, .def = 0)));

/* --- fully connected layer --- */

static enum rfl_rc linear_infer(const struct rfl_node *node, const struct rfl_shape *in,
				struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_linear *a = &node->attr.linear;

	if (in->ndim < 1 || a->out_features < 1)
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"a linear layer needs at least 1 output and 1 dimension, not %lld and %d",
			(long long)a->out_features, in->ndim);
	*out = *in;
	out->dim[in->ndim - 1] = a->out_features;
	return RFL_OK;
}

static int linear_params(const struct rfl_node *node, struct rfl_op_param *out)
{
	const struct rfl_linear *a = &node->attr.linear;
	const char *weight = "weight", *bias = "bias";

	if (a->in_proj || a->out_proj) {
		weight = a->in_proj ? "in_proj_weight" : "out_proj.weight";
		bias = a->in_proj ? "in_proj_bias" : "out_proj.bias";
	}
	out[0] = (struct rfl_op_param){
		.suffix = weight,
		.kind = RFL_PARAM_LINEAR_WEIGHT,
		.ndim = 2,
		.dim = { a->transposed ? a->in_features : a->out_features,
			 a->transposed ? a->out_features : a->in_features },
	};
	out[1] = (struct rfl_op_param){ bias, RFL_PARAM_LINEAR_BIAS, 1, { a->out_features } };
	return a->bias ? 2 : 1;
}

static void linear_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_linear *a = &c->node->attr.linear;
	int64_t macs = rfl_cost_mul(c, c->out, a->in_features);

	cost->macs_excl_padding = macs;
	weights_cost(c, macs, rfl_cost_mul(c, a->in_features, a->out_features),
		     a->bias ? a->out_features : 0, cost);
}

static int linear_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	return c->needs_wgrad ? rfl_op_save_operand(c, 0, out, 0) : 0;
}

RFL_OP(linear, "Linear", "AddmmBackward0", .infer = linear_infer, .params = linear_params,
       .cost = linear_cost, .saved = linear_saved, .autocast = RFL_AUTOCAST_LOWER,
       RFL_OP_ATTRS(RFL_OP_ATTR(INT, linear, in_features, .min = 1, .inferred = true),
		    RFL_OP_ATTR(INT, linear, out_features, .required = true, .min = 1),
		    RFL_OP_ATTR(BOOL, linear, bias, .def = 0),
		    RFL_OP_ATTR(BOOL, linear, in_proj, .def = 0),
		    RFL_OP_ATTR(BOOL, linear, out_proj, .def = 0),
		    RFL_OP_ATTR(BOOL, linear, transposed, .def = 0)));
