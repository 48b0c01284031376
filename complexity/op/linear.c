/*
 * linear.c - the fully connected layer y = x w^T + b over the last dimension.
 *
 * With R rows: forward R * in * out multiply-adds; dgrad dX = dY w and wgrad dw = dY^T X are matrix
 * products of the same three dimensions, so of the same count (PyTorch's FlopCounterMode reports
 * them as two mm). A bias is one addition per output, its gradient the sum of dY over the rows.
 *
 * A weight that is borrowed from another operation: op/parts.c.
 *
 * Traffic: as a convolution, R X, R w, W Y; R dY, R w, W dX; R X, R dY, W dw.
 */
#include "complexity/op/parts.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	if (in->ndim < 1 || node->attr.linear.out_features < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "%lld outputs of an input with %d dimensions",
				(long long)node->attr.linear.out_features, in->ndim);
	if (in->dim[in->ndim - 1] != node->attr.linear.in_features)
		return rfl_fail(err, RFL_EINVAL, 0, "takes %lld features, but the input has %lld",
				(long long)node->attr.linear.in_features,
				(long long)in->dim[in->ndim - 1]);
	*out = *in;
	out->dim[in->ndim - 1] = node->attr.linear.out_features;
	return RFL_OK;
}

static int params(const struct rfl_node *node, struct rfl_op_param *out)
{
	const struct rfl_linear *a = &node->attr.linear;

	out[0] = (struct rfl_op_param){
		.suffix = a->in_proj    ? "in_proj_weight"
			  : a->out_proj ? "out_proj.weight"
					: "weight",
		.kind = RFL_PARAM_LINEAR_WEIGHT,
		.ndim = 2,
		.dim = { a->transposed ? a->in_features : a->out_features,
			 a->transposed ? a->out_features : a->in_features },
	};
	out[1] = (struct rfl_op_param){
		.suffix = a->in_proj    ? "in_proj_bias"
			  : a->out_proj ? "out_proj.bias"
					: "bias",
		.kind = RFL_PARAM_LINEAR_BIAS,
		.ndim = 1,
		.dim = { a->out_features },
	};
	return a->bias ? 2 : 1;
}

static void cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_linear *a = &c->node->attr.linear;
	int64_t macs = rfl_cost_mul(c, c->out, a->in_features);

	cost->macs_excl_padding = macs;
	rfl_op_weights_cost(c,
			    &(struct rfl_op_weights){
				    .macs = macs,
				    .weights = rfl_cost_mul(c, a->in_features, a->out_features),
				    .biases = a->bias ? a->out_features : 0,
			    },
			    cost);
}

static int saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	return c->needs_wgrad ? rfl_op_save_operand(c, 0, out, 0) : 0;
}

static const struct rfl_op_attr attrs[] = {
	RFL_OP_ATTR(INT, linear, in_features, .min = 1, .inferred = true),
	RFL_OP_ATTR(INT, linear, out_features, .required = true, .min = 1),
	RFL_OP_ATTR(BOOL, linear, bias, .def = 0),
	RFL_OP_ATTR(BOOL, linear, in_proj, .def = 0),
	RFL_OP_ATTR(BOOL, linear, out_proj, .def = 0),
	RFL_OP_ATTR(BOOL, linear, transposed, .def = 0),
};

const struct rfl_op_info rfl_op_linear = {
	.name = "linear",
	.module = "Linear",
	.autograd = "AddmmBackward0",
	.infer = infer,
	.params = params,
	.cost = cost,
	.autocast = RFL_AUTOCAST_LOWER,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.saved = saved,
};
