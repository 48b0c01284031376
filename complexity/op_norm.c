/*
 * op_norm.c - layer norm and RMS norm over the last dimension.
 */
#include "complexity/op.h"
#include "complexity/op_saved.h"

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

/* The input, mean and 1 / deviation of each row. */
static int layer_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int64_t rows = c->in / c->node->attr.norm.features;

	if (!c->needs_dgrad && !c->needs_wgrad)
		return 0;
	return rfl_op_save_bytes(RFL_SAVED_STATISTICS,
				 rfl_cost_mul(c, rows, 2 * rfl_op_statistic_bytes(c)), out,
				 rfl_op_save_operand(c, 0, out, 0));
}

/* The input and 1 / root of each row. On a CPU it is composed of steps: the normalised tensor is
 * kept too when there is a weight to train, and without dgrad nothing else. */
static int rms_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int64_t rows = c->in / c->node->attr.norm.features;
	int n = 0;

	if (c->needs_dgrad || (c->needs_wgrad && !c->on_cpu)) {
		n = rfl_op_save_operand(c, 0, out, n);
		n = rfl_op_save_bytes(RFL_SAVED_STATISTICS,
				      rfl_cost_mul(c, rows, rfl_op_statistic_bytes(c)), out, n);
	}
	if (c->needs_wgrad && c->on_cpu)
		n = rfl_op_save_bytes(RFL_SAVED_INTERNAL, rfl_cost_mul(c, c->in, c->value_bytes),
				      out, n);
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
	.nattrs = RFL_ARRAY_LEN(attrs),
	.saved = layer_saved,
};

const struct rfl_op_info rfl_op_rms_norm = {
	.name = "rms_norm",
	.module = "RMSNorm",
	.autograd = "FusedRmsNormBackward0",
	.rides = true,
	.infer = infer,
	.params = params,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.saved = rms_saved,
};
