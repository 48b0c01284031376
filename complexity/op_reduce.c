/*
 * op_reduce.c - mean, sum and maximum over neighbouring dimensions.
 */
#include "complexity/op.h"
#include "complexity/op_saved.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_reduce *a = &node->attr.reduce;
	struct rfl_shape kept = { 0 };

	if (a->first < 0 || a->count < 1 || a->count > in->ndim - a->first)
		return rfl_fail(err, RFL_EINVAL, 0,
				"cannot reduce %lld dimensions from %lld on of an input with %d",
				(long long)a->count, (long long)a->first, in->ndim);
	for (int i = 0; i < in->ndim; i++) {
		bool reduced = i >= a->first && i < a->first + a->count;

		if (!reduced || a->keepdim)
			kept.dim[kept.ndim++] = reduced ? 1 : in->dim[i];
	}
	*out = kept;
	return RFL_OK;
}

static int max_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	if (!c->needs_dgrad)
		return 0;
	return rfl_op_save_bytes(RFL_SAVED_INDICES,
				 rfl_cost_mul(c, c->out, rfl_dtype_bytes(RFL_DTYPE_I64)), out, 0);
}

/* Without a gradient the places are made all the same, and dropped. */
static void max_scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	if (!c->needs_dgrad || !c->options->training)
		out->forward = rfl_cost_mul(c, c->out, rfl_dtype_bytes(RFL_DTYPE_I64));
}

static const struct rfl_op_attr attrs[] = {
	RFL_OP_ATTR(INT, reduce, first, .required = true),
	RFL_OP_ATTR(INT, reduce, count, .def = 1, .min = 1),
	RFL_OP_ATTR(BOOL, reduce, keepdim, .def = 0),
};

const struct rfl_op_info rfl_op_mean = {
	.name = "mean",
	.module = "Mean",
	.autograd = "MeanBackward1",
	.infer = infer,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
};

const struct rfl_op_info rfl_op_sum = {
	.name = "sum",
	.module = "Sum",
	.autograd = "SumBackward1",
	.infer = infer,
	.autocast = RFL_AUTOCAST_F32,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.passes = 1,
};

const struct rfl_op_info rfl_op_max = {
	.name = "max",
	.module = "Max",
	.autograd = "MaxBackward0",
	.infer = infer,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.saved = max_saved,
	.scratch = max_scratch,
};
