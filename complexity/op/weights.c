/*
 * weights.c - two-dimensional convolutions, including grouped and dilated ones, and the fully
 * connected layer y = x w^T + b over the last dimension.
 *
 * Every product of the forward pass is used once in each gradient, so dgrad and wgrad take as many
 * multiply-adds, for any stride, dilation and groups. PyTorch's FlopCounterMode counts the same
 * (torch/utils/flop_counter.py, conv_backward_flop), except that earlier versions count the weight
 * gradient of a grouped convolution as if it were dense.
 *
 * Under autocast (master_weights), the weights are stored as F32 and copied to 16 bits in each
 * step. Unfused, a separate kernel reads 4 and writes 2 bytes per weight, and another one widens
 * the gradient; fused, the operation itself reads F32 weights and writes F32 gradients. The
 * gradient of a borrowed weight (a head tied to the embedding) is added to its owner's.
 */
#include "complexity/op/parts.h"

/* `macs` is for the forward pass over the batch; `weights` and `biases` are element counts. */
static void weights_cost(struct rfl_cost_context *c, int64_t macs, int64_t weights, int64_t biases)
{
	int64_t v = c->value_bytes, stored = c->param_bytes;
	int64_t all = rfl_cost_add(c, weights, biases);
	int64_t copied = stored != v ? all : 0, tied = c->node->tied ? all : 0;

	c->cost->bias_adds = biases ? c->out : 0;
	for (int pass = FORWARD; pass <= WGRAD; pass++)
		c->cost->macs[pass] = rfl_op_runs(c, (enum rfl_pass)pass) ? macs : 0;
	for (int i = UNFUSED; i <= FUSED; i++) {
		enum rfl_fusion level = (enum rfl_fusion)i;
		int64_t size = level == FUSED ? stored : v; /* fused: without a copy */

		rfl_op_move_at(c, level, FORWARD, c->in, v, c->out, v);
		rfl_op_move_at(c, level, FORWARD, all, size, 0, 0);
		rfl_op_move_at(c, level, DGRAD, c->out, v, c->in, v);
		rfl_op_move_at(c, level, DGRAD, weights, size, 0, 0);
		rfl_op_move_at(c, level, WGRAD, c->in, v, all, size);
		rfl_op_move_at(c, level, WGRAD, c->out, v, 0, 0);
	}
	rfl_op_move_at(c, UNFUSED, FORWARD, copied, stored, copied, v);
	rfl_op_move_at(c, UNFUSED, WGRAD, copied, v, copied, stored);
	rfl_op_move_at(c, UNFUSED, WGRAD, tied, 2 * stored, tied, stored);
	rfl_op_move_at(c, FUSED, WGRAD, tied, stored, 0, 0);
	/* a sum of out / biases terms for each bias */
	rfl_op_count(c, WGRAD, .add = rfl_cost_add(c, biases ? c->out - biases : 0, tied));
}

/* --- convolution --- */

static void windows_of(const struct rfl_conv2d *a, struct rfl_window w[2])
{
	w[0] = (struct rfl_window){ a->kernel_h, a->stride_h, a->pad_h, a->dilation_h, false };
	w[1] = (struct rfl_window){ a->kernel_w, a->stride_w, a->pad_w, a->dilation_w, false };
}

static enum rfl_rc conv_infer(struct rfl_op_shapes *s)
{
	const struct rfl_conv2d *a = &s->node->attr.conv2d;
	struct rfl_window w[2];

	if (a->in_channels % a->groups != 0 || a->out_channels % a->groups != 0)
		return rfl_op_refuse(
			s, "%lld input and %lld output channels must be divisible into %lld groups",
			(long long)a->in_channels, (long long)a->out_channels,
			(long long)a->groups);
	windows_of(a, w);
	return rfl_window_image(s, w, a->out_channels);
}

static int conv_params(const struct rfl_node *node, struct rfl_op_param *out)
{
	const struct rfl_conv2d *a = &node->attr.conv2d;

	out[0] = (struct rfl_op_param){
		.suffix = "weight",
		.kind = RFL_PARAM_CONV_WEIGHT,
		.shape = { 4,
			   { a->out_channels, a->in_channels / a->groups, a->kernel_h,
			     a->kernel_w } },
	};
	out[1] = (struct rfl_op_param){ "bias", RFL_PARAM_CONV_BIAS, { 1, { a->out_channels } } };
	return a->bias ? 2 : 1;
}

static void conv_cost(struct rfl_cost_context *c)
{
	const struct rfl_conv2d *a = &c->node->attr.conv2d;
	int64_t pairs = rfl_cost_mul(c, a->out_channels, a->in_channels / a->groups);
	int64_t kernel = rfl_cost_mul(c, a->kernel_h, a->kernel_w);
	int64_t per_position = rfl_cost_mul(c, a->in_channels / a->groups, kernel);
	int64_t macs = rfl_cost_mul(c, c->out, per_position), taps;
	struct rfl_window w[2];

	if (c->overflow)
		return; /* the taps are only safe if the MACs fit */
	windows_of(a, w);
	taps = rfl_cost_mul(c,
			    rfl_window_real_taps(&w[0], c->in_shape.dim[1], c->node->shape.dim[1]),
			    rfl_window_real_taps(&w[1], c->in_shape.dim[2], c->node->shape.dim[2]));
	c->cost->macs_excl_padding = rfl_cost_mul(c, c->batch, rfl_cost_mul(c, pairs, taps));
	weights_cost(c, macs, rfl_cost_mul(c, pairs, kernel), a->bias ? a->out_channels : 0);
}

/* The input is saved even if the weight is frozen. */
static void conv_saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	if (c->needs_dgrad || c->needs_wgrad)
		rfl_op_save_operand(c, 0, out);
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

static enum rfl_rc linear_infer(struct rfl_op_shapes *s)
{
	*s->out = *s->in;
	s->out->dim[s->in->ndim - 1] = s->node->attr.linear.out_features;
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
		.shape = { 2,
			   { a->transposed ? a->in_features : a->out_features,
			     a->transposed ? a->out_features : a->in_features } },
	};
	out[1] = (struct rfl_op_param){ bias, RFL_PARAM_LINEAR_BIAS, { 1, { a->out_features } } };
	return a->bias ? 2 : 1;
}

static void linear_cost(struct rfl_cost_context *c)
{
	const struct rfl_linear *a = &c->node->attr.linear;
	int64_t macs = rfl_cost_mul(c, c->out, a->in_features);

	c->cost->macs_excl_padding = macs;
	weights_cost(c, macs, rfl_cost_mul(c, a->in_features, a->out_features),
		     a->bias ? a->out_features : 0);
}

RFL_OP(linear, "Linear", "AddmmBackward0", .min_dims = 1, .needs = "features",
       .infer = linear_infer, .params = linear_params, .cost = linear_cost,
       .saved = rfl_op_saves_for_wgrad, .autocast = RFL_AUTOCAST_LOWER,
       RFL_OP_ATTRS(RFL_OP_ATTR(INT, linear, in_features, .min = 1, .inferred = true),
		    RFL_OP_ATTR(INT, linear, out_features, .required = true, .min = 1),
		    RFL_OP_ATTR(BOOL, linear, bias, .def = 0),
		    RFL_OP_ATTR(BOOL, linear, in_proj, .def = 0),
		    RFL_OP_ATTR(BOOL, linear, out_proj, .def = 0),
		    RFL_OP_ATTR(BOOL, linear, transposed, .def = 0)));
