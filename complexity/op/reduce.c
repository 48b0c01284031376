/*
 * reduce.c - mean, sum and maximum over neighbouring dimensions.
 *
 * n elements become m. Forward: sum n - m add; mean as many and m special (division); maximum n - m
 * compare. dgrad: the sum hands dY to every term, free; the mean divides it first, m special; the
 * maximum hands it to the element that won.
 *
 * Traffic, unfused and fused: forward R n, W m, and W an int64 place per maximum. dgrad of a sum
 * moves nothing (PyTorch expands dY in place), of a mean R m, W n, of a maximum R m and the places,
 * W n zeros and m gradients.
 */
#include "complexity/op/parts.h"

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

static void forward_traffic(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_FORWARD];

	rfl_cost_read(c, u, c->in, c->value_bytes);
	rfl_cost_write(c, u, c->out, c->value_bytes);
}

static void sum_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	cost->elementwise[RFL_PASS_FORWARD].add = c->in - c->out;
	forward_traffic(c, cost);
	rfl_op_ride_not(cost);
}

static void mean_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_DGRAD];

	cost->elementwise[RFL_PASS_FORWARD].add = c->in - c->out;
	cost->elementwise[RFL_PASS_FORWARD].special = c->out;
	forward_traffic(c, cost);
	if (c->needs_dgrad) {
		cost->elementwise[RFL_PASS_DGRAD].special = c->out;
		rfl_cost_read(c, u, c->out, c->value_bytes);
		rfl_cost_write(c, u, c->in, c->value_bytes);
	}
	rfl_op_ride_not(cost);
}

static void max_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	int64_t place = rfl_dtype_bytes(RFL_DTYPE_I64);

	cost->elementwise[RFL_PASS_FORWARD].compare = c->in - c->out;
	forward_traffic(c, cost);
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->out, place);
	if (c->needs_dgrad) {
		rfl_cost_read(c, &u[RFL_PASS_DGRAD], c->out, c->value_bytes + place);
		rfl_cost_write(c, &u[RFL_PASS_DGRAD], c->in, c->value_bytes);
		rfl_cost_write(c, &u[RFL_PASS_DGRAD], c->out, c->value_bytes);
	}
	rfl_op_ride_not(cost);
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
	.cost = mean_cost,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
};

const struct rfl_op_info rfl_op_sum = {
	.name = "sum",
	.module = "Sum",
	.autograd = "SumBackward1",
	.infer = infer,
	.cost = sum_cost,
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
	.cost = max_cost,
	.attrs = attrs,
	.nattrs = RFL_ARRAY_LEN(attrs),
	.saved = max_saved,
	.scratch = max_scratch,
};
