/*
 * copy.c - operations that move data and compute nothing: laying a tensor out afresh, joining,
 * padding, moving round.
 *
 * Traffic, unfused and fused: forward R every input, W Y. Backward: what was joined gets its part
 * of dY and what was laid out afresh all of it, as views that move nothing; a padded tensor gets a
 * copy of the middle, R and W X; what was moved round is moved back, R dY, W dX. A learned tensor
 * that was joined to every sample (a class token) gets the sum over the samples: wgrad, one
 * addition per sample but the first.
 */
#include "complexity/op/parts.h"

#include "base/num.h"

static enum rfl_rc concat_infer(const struct rfl_node *node, const struct rfl_shape *in,
				struct rfl_shape *out, struct rfl_err *err)
{
	int64_t dim = node->attr.concat.dim;
	char a[96], b[96];

	if (node->ninputs < 1 || dim < 0 || dim >= in[0].ndim)
		return rfl_fail(err, RFL_EINVAL, 0, "cannot join along dimension %lld",
				(long long)dim);
	*out = in[0];
	for (int i = 1; i < node->ninputs; i++) {
		bool fits = in[i].ndim == in[0].ndim;

		for (int d = 0; fits && d < in[0].ndim; d++)
			fits = d == dim || in[i].dim[d] == in[0].dim[d];
		if (!fits)
			return rfl_fail(err, RFL_EINVAL, 0, "cannot join %s and %s",
					rfl_shape_text(&in[0], a, sizeof(a)),
					rfl_shape_text(&in[i], b, sizeof(b)));
		if (!rfl_num_add(out->dim[dim], in[i].dim[dim], &out->dim[dim]))
			return rfl_fail(err, RFL_EOVERFLOW, 0, "does not fit 63 bits");
	}
	return RFL_OK;
}

/* Two dimensions that begin at dim. */
static enum rfl_rc need_plane(const struct rfl_shape *in, int64_t dim, struct rfl_err *err)
{
	if (dim >= 0 && dim < in->ndim - 1)
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0, "no height and width at dimension %lld of %d",
			(long long)dim, in->ndim);
}

static enum rfl_rc pad_infer(const struct rfl_node *node, const struct rfl_shape *in,
			     struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_pad *a = &node->attr.padding;
	int64_t *h, *w;
	enum rfl_rc rc = need_plane(in, a->dim, err);

	if (rc != RFL_OK)
		return rc;
	*out = *in;
	h = &out->dim[a->dim];
	w = &out->dim[a->dim + 1];
	if (a->top < 0 || a->bottom < 0 || a->left < 0 || a->right < 0)
		return rfl_fail(err, RFL_EINVAL, 0, "a padding is 0 or more");
	if (!rfl_num_add(*h, a->top, h) || !rfl_num_add(*h, a->bottom, h) ||
	    !rfl_num_add(*w, a->left, w) || !rfl_num_add(*w, a->right, w))
		return rfl_fail(err, RFL_EOVERFLOW, 0, "does not fit 63 bits");
	return RFL_OK;
}

static enum rfl_rc roll_infer(const struct rfl_node *node, const struct rfl_shape *in,
			      struct rfl_shape *out, struct rfl_err *err)
{
	*out = *in;
	return need_plane(in, node->attr.roll.dim, err);
}

static void copy(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_FORWARD];

	for (int k = 0; k < c->node->ninputs; k++)
		rfl_op_operand_read(c, k, u);
	rfl_cost_write(c, u, c->out, c->value_bytes);
}

static void contiguous_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	copy(c, cost);
	rfl_op_ride_not(cost);
}

static void concat_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	copy(c, cost);
	for (int k = 0; k < c->node->ninputs; k++) {
		const struct rfl_cost_input *in = &c->inputs[k];
		enum rfl_pass pass = rfl_op_operand_pass(c, k);
		struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];
		int64_t *adds = &cost->elementwise[pass].add;

		if (!in->grad || !in->batchless || c->node->batchless)
			continue;
		*adds = rfl_cost_add(c, *adds, rfl_cost_mul(c, c->batch - 1, in->numel));
		rfl_cost_read(c, u, rfl_cost_mul(c, c->batch, in->numel), c->value_bytes);
		rfl_op_operand_write(c, k, u);
	}
	rfl_op_ride_not(cost);
}

/* Padding and moving round: dX is as large as X, whatever surrounds it. */
static void place_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_DGRAD];

	copy(c, cost);
	if (c->needs_dgrad) {
		rfl_cost_read(c, u, c->in, c->value_bytes);
		rfl_cost_write(c, u, c->in, c->value_bytes);
	}
	rfl_op_ride_not(cost);
}

static const struct rfl_op_attr concat_attrs[] = {
	RFL_OP_ATTR(INT, concat, dim, .def = 0),
};

static const struct rfl_op_attr pad_attrs[] = {
	RFL_OP_ATTR(INT, padding, dim, .def = 0),    RFL_OP_ATTR(INT, padding, top, .def = 0),
	RFL_OP_ATTR(INT, padding, bottom, .def = 0), RFL_OP_ATTR(INT, padding, left, .def = 0),
	RFL_OP_ATTR(INT, padding, right, .def = 0),
};

static const struct rfl_op_attr roll_attrs[] = {
	RFL_OP_ATTR(INT, roll, dim, .def = 0),
	RFL_OP_ATTR_PAIR(roll, shift, .def = 0, .min = INT64_MIN),
};

const struct rfl_op_info rfl_op_contiguous = {
	.name = "contiguous",
	.module = "Contiguous",
	.autograd = "CloneBackward0",
	.infer = rfl_op_same_shape,
	.cost = contiguous_cost,
	.passes = 1,
};

const struct rfl_op_info rfl_op_concat = {
	.name = "concat",
	.arity = RFL_OP_ANY_INPUTS,
	.module = "Concat",
	.autograd = "CatBackward0",
	.infer = concat_infer,
	.cost = concat_cost,
	.attrs = concat_attrs,
	.nattrs = RFL_ARRAY_LEN(concat_attrs),
	.passes = RFL_NET_MAX_INPUTS,
};

const struct rfl_op_info rfl_op_pad = {
	.name = "pad",
	.module = "Pad",
	.autograd = "ConstantPadNdBackward0",
	.infer = pad_infer,
	.cost = place_cost,
	.attrs = pad_attrs,
	.nattrs = RFL_ARRAY_LEN(pad_attrs),
};

const struct rfl_op_info rfl_op_roll = {
	.name = "roll",
	.module = "Roll",
	.autograd = "RollBackward0",
	.infer = roll_infer,
	.cost = place_cost,
	.attrs = roll_attrs,
	.nattrs = RFL_ARRAY_LEN(roll_attrs),
};
