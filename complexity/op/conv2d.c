/*
 * conv2d.c - two-dimensional convolution, grouped and dilated ones included.
 *
 * With N samples, Ci -> Co channels, Ho x Wo positions, a kernel of kh x kw taps and G groups:
 *
 *	forward  N * Co * Ho * Wo * (Ci / G) * kh * kw multiply-adds, padding taps included;
 *	         a bias is one addition per output element, kept apart
 *	dgrad    the same number: every product of the forward pass meets the gradient once
 *	wgrad    the same number; a bias gradient is the sum of dY over samples and positions
 *
 * All three are equal for any stride, dilation and groups. So counts PyTorch's FlopCounterMode
 * (torch/utils/flop_counter.py, conv_backward_flop), but for its earlier versions, which take the
 * weight gradient of a grouped convolution for that of a dense one.
 *
 * Traffic: forward R X, R w, W Y; dgrad R dY, R w, W dX; wgrad R X, R dY, W dw. Direct
 * convolution: a library that unfolds the image first (im2col) moves kh * kw times X more.
 */
#include "complexity/op/parts.h"

static struct rfl_window window_h(const struct rfl_conv2d *a)
{
	return (struct rfl_window){
		.kernel = a->kernel_h,
		.stride = a->stride_h,
		.pad = a->pad_h,
		.dilation = a->dilation_h,
	};
}

static struct rfl_window window_w(const struct rfl_conv2d *a)
{
	return (struct rfl_window){
		.kernel = a->kernel_w,
		.stride = a->stride_w,
		.pad = a->pad_w,
		.dilation = a->dilation_w,
	};
}

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_conv2d *a = &node->attr.conv2d;
	struct rfl_window h = window_h(a), w = window_w(a);
	enum rfl_rc rc = rfl_op_need_image(in, err);

	if (rc != RFL_OK)
		return rc;
	if (a->groups < 1 || a->out_channels < 1 || a->in_channels % a->groups != 0 ||
	    a->out_channels % a->groups != 0)
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"%lld input and %lld output channels do not divide into %lld groups",
			(long long)a->in_channels, (long long)a->out_channels,
			(long long)a->groups);
	*out = (struct rfl_shape){ .ndim = 3, .dim = { a->out_channels } };
	rc = rfl_window_positions(&h, in->dim[1], &out->dim[1], err);
	if (rc == RFL_OK)
		rc = rfl_window_positions(&w, in->dim[2], &out->dim[2], err);
	return rc;
}

static int params(const struct rfl_node *node, struct rfl_op_param *out)
{
	const struct rfl_conv2d *a = &node->attr.conv2d;

	out[0] = (struct rfl_op_param){
		.suffix = "weight",
		.kind = RFL_PARAM_CONV_WEIGHT,
		.ndim = 4,
		.dim = { a->out_channels, a->in_channels / a->groups, a->kernel_h, a->kernel_w },
	};
	out[1] = (struct rfl_op_param){
		.suffix = "bias",
		.kind = RFL_PARAM_CONV_BIAS,
		.ndim = 1,
		.dim = { a->out_channels },
	};
	return a->bias ? 2 : 1;
}

static void cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_conv2d *a = &c->node->attr.conv2d;
	struct rfl_window h = window_h(a), w = window_w(a);
	int64_t pairs = rfl_cost_mul(c, a->out_channels, a->in_channels / a->groups);
	int64_t kernel = rfl_cost_mul(c, a->kernel_h, a->kernel_w);
	int64_t per_position = rfl_cost_mul(c, a->in_channels / a->groups, kernel);
	int64_t macs = rfl_cost_mul(c, c->out, per_position);
	int64_t taps;

	if (c->overflow)
		return; /* the taps fit only where the MACs do */
	taps = rfl_cost_mul(c, rfl_window_real_taps(&h, c->in_shape.dim[1], c->node->shape.dim[1]),
			    rfl_window_real_taps(&w, c->in_shape.dim[2], c->node->shape.dim[2]));
	cost->macs_excl_padding = rfl_cost_mul(c, c->batch, rfl_cost_mul(c, pairs, taps));
	rfl_op_weights_cost(c,
			    &(struct rfl_op_weights){
				    .macs = macs,
				    .weights = rfl_cost_mul(c, pairs, kernel),
				    .biases = a->bias ? a->out_channels : 0,
			    },
			    cost);
}

/* Even where the weight is frozen. */
static int saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	return c->needs_dgrad || c->needs_wgrad ? rfl_op_save_operand(c, 0, out, 0) : 0;
}

static const struct rfl_op_attr attrs[] = {
	RFL_OP_ATTR(INT, conv2d, in_channels, .min = 1, .inferred = true),
	RFL_OP_ATTR(INT, conv2d, out_channels, .required = true, .min = 1),
	RFL_OP_ATTR_PAIR(conv2d, kernel, .required = true, .min = 1),
	RFL_OP_ATTR_PAIR(conv2d, stride, .def = 1, .min = 1),
	RFL_OP_ATTR_PAIR(conv2d, pad, .def = 0),
	RFL_OP_ATTR_PAIR(conv2d, dilation, .def = 1, .min = 1),
	RFL_OP_ATTR(INT, conv2d, groups, .def = 1, .min = 1),
	RFL_OP_ATTR(BOOL, conv2d, bias, .def = 0),
};

const struct rfl_op_info rfl_op_conv2d = {
	.name = "conv2d",
	.module = "Conv2d",
	.autograd = "ConvolutionBackward0",
	.infer = infer,
	.params = params,
	.cost = cost,
	.autocast = RFL_AUTOCAST_LOWER,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.saved = saved,
};
