/*
 * view.c - operations that compute nothing and move nothing: what comes from outside (the input,
 * a learned tensor, a table of constants) and views of a tensor that is there already.
 *
 * Only the gradient of a slice moves data: it is as large as the whole tensor and zero elsewhere.
 * Unfused R dY, W dX; fused nothing, the next operation takes its part.
 */
#include "complexity/op/parts.h"

static enum rfl_rc check_dims(const struct rfl_shape *shape, struct rfl_err *err)
{
	for (int i = 0; i < shape->ndim; i++)
		if (shape->dim[i] < 1)
			return rfl_fail(err, RFL_EINVAL, 0, "dimension %d is %lld, not 1 or more",
					i, (long long)shape->dim[i]);
	return RFL_OK;
}

static enum rfl_rc input_infer(const struct rfl_node *node, const struct rfl_shape *in,
			       struct rfl_shape *out, struct rfl_err *err)
{
	(void)in;
	*out = node->shape;
	return check_dims(&node->shape, err);
}

static enum rfl_rc parameter_infer(const struct rfl_node *node, const struct rfl_shape *in,
				   struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_parameter *a = &node->attr.parameter;

	(void)in;
	if (a->drop < 0 || a->drop > a->stored.ndim)
		return rfl_fail(err, RFL_EINVAL, 0, "cannot drop %lld of %d dimensions",
				(long long)a->drop, a->stored.ndim);
	*out = (struct rfl_shape){ .ndim = a->stored.ndim - (int)a->drop };
	for (int i = 0; i < a->stored.ndim; i++) {
		if (i >= a->drop)
			out->dim[i - a->drop] = a->stored.dim[i];
		else if (a->stored.dim[i] != 1)
			return rfl_fail(err, RFL_EINVAL, 0,
					"dropped dimension %d is %lld, only 1 can be dropped", i,
					(long long)a->stored.dim[i]);
	}
	return check_dims(&a->stored, err);
}

static int parameter_params(const struct rfl_node *node, struct rfl_op_param *out)
{
	const struct rfl_parameter *a = &node->attr.parameter;
	const struct rfl_shape *stored = &a->stored;

	out[0] = (struct rfl_op_param){
		.suffix = "",
		.kind = a->norm_weight ? RFL_PARAM_NORM_WEIGHT
			: a->norm_bias ? RFL_PARAM_NORM_BIAS
				       : RFL_PARAM_OTHER,
		.ndim = stored->ndim,
	};
	for (int i = 0; i < stored->ndim; i++)
		out[0].dim[i] = stored->dim[i];
	return 1;
}

static enum rfl_rc constant_infer(const struct rfl_node *node, const struct rfl_shape *in,
				  struct rfl_shape *out, struct rfl_err *err)
{
	(void)in;
	*out = node->attr.constant.shape;
	return check_dims(out, err);
}

static enum rfl_rc flatten_infer(const struct rfl_node *node, const struct rfl_shape *in,
				 struct rfl_shape *out, struct rfl_err *err)
{
	int64_t first = node->attr.flatten.first;
	int64_t rest = 1;

	if (first < 0 || first >= in->ndim)
		return rfl_fail(err, RFL_EINVAL, 0, "cannot flatten %d dimensions from %lld on",
				in->ndim, (long long)first);
	for (int i = (int)first; i < in->ndim; i++)
		rest *= in->dim[i]; /* the builder has checked that the input fits */
	*out = *in;
	out->ndim = (int)first + 1;
	out->dim[first] = rest;
	return RFL_OK;
}

static enum rfl_rc reshape_infer(const struct rfl_node *node, const struct rfl_shape *in,
				 struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_shape *shape = &node->attr.reshape.shape;
	char from[96], to[96];
	enum rfl_rc rc = check_dims(shape, err);

	if (rc != RFL_OK)
		return rc;
	if (!rfl_shape_fits(shape) || rfl_shape_numel(shape) != rfl_shape_numel(in))
		return rfl_fail(err, RFL_EINVAL, 0, "cannot reshape %s to %s",
				rfl_shape_text(in, from, sizeof(from)),
				rfl_shape_text(shape, to, sizeof(to)));
	*out = *shape;
	return RFL_OK;
}

static enum rfl_rc permute_infer(const struct rfl_node *node, const struct rfl_shape *in,
				 struct rfl_shape *out, struct rfl_err *err)
{
	const int64_t *order = node->attr.permute.order;
	unsigned seen = 0;

	out->ndim = in->ndim;
	for (int i = 0; i < in->ndim; i++) {
		if (order[i] < 0 || order[i] >= in->ndim || (seen & (1u << order[i])))
			return rfl_fail(err, RFL_EINVAL, 0,
					"the order of the %d dimensions is no permutation",
					in->ndim);
		seen |= 1u << order[i];
		out->dim[i] = in->dim[order[i]];
	}
	return RFL_OK;
}

static enum rfl_rc slice_infer(const struct rfl_node *node, const struct rfl_shape *in,
			       struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_slice *a = &node->attr.slice;
	int64_t size = a->dim >= 0 && a->dim < in->ndim ? in->dim[a->dim] : 0;

	if (a->start < 0 || a->length < 1 || a->step < 1 || a->start >= size ||
	    a->length - 1 > (size - 1 - a->start) / a->step)
		return rfl_fail(err, RFL_EINVAL, 0,
				"cannot take %lld elements from %lld on by %lld of dimension %lld, "
				"which has %lld",
				(long long)a->length, (long long)a->start, (long long)a->step,
				(long long)a->dim, (long long)size);
	*out = *in;
	out->dim[a->dim] = a->length;
	return RFL_OK;
}

static void slice_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][rfl_op_operand_pass(c, 0)];

	if (!c->needs_dgrad)
		return;
	rfl_cost_read(c, u, c->out, c->value_bytes);
	rfl_op_operand_write(c, 0, u);
}

static const struct rfl_op_attr parameter_attrs[] = {
	RFL_OP_ATTR(SHAPE, parameter, stored, .required = true),
	RFL_OP_ATTR(INT, parameter, drop, .def = 0),
	RFL_OP_ATTR(BOOL, parameter, norm_weight, .def = 0),
	RFL_OP_ATTR(BOOL, parameter, norm_bias, .def = 0),
};

static const struct rfl_op_attr constant_attrs[] = {
	RFL_OP_ATTR(SHAPE, constant, shape, .required = true),
};

static const struct rfl_op_attr flatten_attrs[] = {
	RFL_OP_ATTR(INT, flatten, first, .def = 0),
};

static const struct rfl_op_attr reshape_attrs[] = {
	RFL_OP_ATTR(SHAPE, reshape, shape, .required = true),
};

static const struct rfl_op_attr permute_attrs[] = {
	RFL_OP_ATTR(ORDER, permute, order, .required = true),
};

static const struct rfl_op_attr slice_attrs[] = {
	RFL_OP_ATTR(INT, slice, dim, .required = true),
	RFL_OP_ATTR(INT, slice, start, .def = 0),
	RFL_OP_ATTR(INT, slice, length, .required = true, .min = 1),
	RFL_OP_ATTR(INT, slice, step, .def = 1, .min = 1),
};

const struct rfl_op_info rfl_op_input = {
	.name = "input",
	.arity = RFL_OP_NO_INPUTS,
	.module = "Input",
	.infer = input_infer,
};

const struct rfl_op_info rfl_op_parameter = {
	.name = "parameter",
	.arity = RFL_OP_NO_INPUTS,
	.module = "Parameter",
	.infer = parameter_infer,
	.params = parameter_params,
	.attrs = parameter_attrs,
	.nattrs = RFL_ARRAY_LEN(parameter_attrs),
};

const struct rfl_op_info rfl_op_constant = {
	.name = "constant",
	.arity = RFL_OP_NO_INPUTS,
	.module = "Buffer",
	.infer = constant_infer,
	.attrs = constant_attrs,
	.nattrs = RFL_ARRAY_LEN(constant_attrs),
};

const struct rfl_op_info rfl_op_flatten = {
	.name = "flatten",
	.module = "Flatten",
	.autograd = "ViewBackward0",
	.rides = true,
	.view = true,
	.infer = flatten_infer,
	.attrs = flatten_attrs,
	.nattrs = RFL_ARRAY_LEN(flatten_attrs),
	.passes = 1,
};

const struct rfl_op_info rfl_op_reshape = {
	.name = "reshape",
	.module = "Reshape",
	.autograd = "ViewBackward0",
	.rides = true,
	.view = true,
	.infer = reshape_infer,
	.attrs = reshape_attrs,
	.nattrs = RFL_ARRAY_LEN(reshape_attrs),
	.passes = 1,
};

const struct rfl_op_info rfl_op_permute = {
	.name = "permute",
	.module = "Permute",
	.autograd = "PermuteBackward0",
	.rides = true,
	.view = true,
	.infer = permute_infer,
	.attrs = permute_attrs,
	.nattrs = RFL_ARRAY_LEN(permute_attrs),
	.passes = 1,
};

const struct rfl_op_info rfl_op_slice = {
	.name = "slice",
	.module = "Slice",
	.autograd = "SliceBackward0",
	.rides = true,
	.view = true,
	.infer = slice_infer,
	.cost = slice_cost,
	.attrs = slice_attrs,
	.nattrs = RFL_ARRAY_LEN(slice_attrs),
};
