/*
 * op_norm.c - layer norm and RMS norm over the last dimension.
 */
#include "complexity/op.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_norm *a = &node->attr.norm;

	if (in->ndim < 1 || in->dim[in->ndim - 1] != a->features)
		return rfl_fail(err, RFL_EINVAL, 0,
				"normalises %lld features, but the input has %lld",
				(long long)a->features,
				(long long)(in->ndim < 1 ? 0 : in->dim[in->ndim - 1]));
	*out = *in;
	return RFL_OK;
}

static int params(const struct rfl_node *node, struct rfl_op_param *out)
{
	static const struct rfl_op_param rows[] = {
		{ .suffix = "weight", .kind = RFL_PARAM_NORM_WEIGHT, .ndim = 1 },
		{ .suffix = "bias", .kind = RFL_PARAM_NORM_BIAS, .ndim = 1 },
	};
	int n = node->op == RFL_OP_LAYER_NORM ? 2 : 1;

	for (int i = 0; i < n; i++) {
		out[i] = rows[i];
		out[i].dim[0] = node->attr.norm.features;
	}
	return n;
}

static const struct rfl_op_attr attrs[] = {
	RFL_OP_ATTR(INT, norm, features, .min = 1, .inferred = true),
	RFL_OP_ATTR(REAL, norm, eps, .def = 1e-5),
};

const struct rfl_op_info rfl_op_layer_norm = {
	.name = "layer_norm",
	.module = "LayerNorm",
	.autograd = "NativeLayerNormBackward0",
	.rides = true,
	.infer = infer,
	.params = params,
	.autocast = RFL_AUTOCAST_F32,
	.attrs = attrs,
	.nattrs = sizeof(attrs) / sizeof(attrs[0]),
};

const struct rfl_op_info rfl_op_rms_norm = {
	.name = "rms_norm",
	.module = "RMSNorm",
	.autograd = "FusedRmsNormBackward0",
	.rides = true,
	.infer = infer,
	.params = params,
	.attrs = attrs,
	.nattrs = sizeof(attrs) / sizeof(attrs[0]),
};
