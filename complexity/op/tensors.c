/*
 * tensors.c - operations without arithmetic: sources (the input, learned tensors, constant tables),
 * views, copies (a new layout, concatenation, padding, cyclic shift), and rows from a table.
 *
 * Views move nothing. Only the gradient of a slice moves data: it has the size of the whole tensor
 * and is zero elsewhere. Fused, the next operation reads its part of dY.
 *
 * Backward, the inputs of a concatenation and of a new layout receive views of dY, which move
 * nothing; a padded tensor receives a copy of the middle; a shift is reversed. A learned tensor
 * concatenated to every sample (a class token) receives the sum over the samples as wgrad, with one
 * addition per sample except the first.
 *
 * Rows of a table are selected by tokens (embedding) or by constant indices (gather). The gradient
 * of the table is dY added up row by row; it counts as wgrad and is dense (PyTorch's default), so
 * all of it is written.
 */
#include "complexity/op/parts.h"

#include "base/num.h"

/* --- inputs and constants --- */

static enum rfl_rc check_dims(const struct rfl_shape *shape, struct rfl_err *err)
{
	for (int i = 0; i < shape->ndim; i++)
		if (shape->dim[i] < 1)
			return rfl_fail(err, RFL_EINVAL, 0,
					"dimension %d is %lld; it must be at least 1", i,
					(long long)shape->dim[i]);
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
		return rfl_fail(err, RFL_EINVAL, 0, "cannot drop %lld dimensions of %d",
				(long long)a->drop, a->stored.ndim);
	*out = (struct rfl_shape){ .ndim = a->stored.ndim - (int)a->drop };
	for (int i = 0; i < a->stored.ndim; i++) {
		if (i >= a->drop)
			out->dim[i - a->drop] = a->stored.dim[i];
		else if (a->stored.dim[i] != 1)
			return rfl_fail(err, RFL_EINVAL, 0,
					"cannot drop dimension %d: its size is %lld, not 1", i,
					(long long)a->stored.dim[i]);
	}
	return check_dims(&a->stored, err);
}

static int parameter_params(const struct rfl_node *node, struct rfl_op_param *out)
{
	const struct rfl_parameter *a = &node->attr.parameter;

	out[0] = (struct rfl_op_param){
		.suffix = "",
		.kind = a->norm_weight ? RFL_PARAM_NORM_WEIGHT
			: a->norm_bias ? RFL_PARAM_NORM_BIAS
				       : RFL_PARAM_OTHER,
		.shape = a->stored,
	};
	return 1;
}

static enum rfl_rc constant_infer(const struct rfl_node *node, const struct rfl_shape *in,
				  struct rfl_shape *out, struct rfl_err *err)
{
	(void)in;
	*out = node->attr.constant.shape;
	return check_dims(out, err);
}

RFL_OP(input, "Input", NULL, .arity = RFL_OP_NO_INPUTS, .infer = input_infer);
RFL_OP(parameter, "Parameter", NULL, .arity = RFL_OP_NO_INPUTS, .infer = parameter_infer,
       .params = parameter_params,
       RFL_OP_ATTRS(RFL_OP_ATTR(SHAPE, parameter, stored, .required = true),
		    RFL_OP_ATTR(INT, parameter, drop, .def = 0),
		    RFL_OP_ATTR(BOOL, parameter, norm_weight, .def = 0),
		    RFL_OP_ATTR(BOOL, parameter, norm_bias, .def = 0)));
RFL_OP(constant, "Buffer", NULL, .arity = RFL_OP_NO_INPUTS, .infer = constant_infer,
       RFL_OP_ATTRS(RFL_OP_ATTR(SHAPE, constant, shape, .required = true)));

/* --- views --- */

static enum rfl_rc flatten_infer(const struct rfl_node *node, const struct rfl_shape *in,
				 struct rfl_shape *out, struct rfl_err *err)
{
	int64_t first = node->attr.flatten.first;
	int64_t rest = 1;

	if (first < 0 || first >= in->ndim)
		return rfl_fail(err, RFL_EINVAL, 0, "cannot flatten %d dimensions starting at %lld",
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
		return rfl_fail(err, RFL_EINVAL, 0, "cannot reshape %s to %s: sizes differ",
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
					"the order must list each of the %d dimensions once",
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
				"cannot take %lld elements, starting at %lld with step %lld, of "
				"dimension %lld of size %lld",
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

#define VIEW(name_, module_, autograd_, ...) \
	RFL_OP(name_, module_, autograd_, .fuses = true, .view = true, __VA_ARGS__)

VIEW(flatten, "Flatten", "ViewBackward0", .infer = flatten_infer, .passes = 1,
     RFL_OP_ATTRS(RFL_OP_ATTR(INT, flatten, first, .def = 0)));
VIEW(reshape, "Reshape", "ViewBackward0", .infer = reshape_infer, .passes = 1,
     RFL_OP_ATTRS(RFL_OP_ATTR(SHAPE, reshape, shape, .required = true)));
VIEW(permute, "Permute", "PermuteBackward0", .infer = permute_infer, .passes = 1,
     RFL_OP_ATTRS(RFL_OP_ATTR(ORDER, permute, order, .required = true)));
VIEW(slice, "Slice", "SliceBackward0", .infer = slice_infer, .cost = slice_cost,
     RFL_OP_ATTRS(RFL_OP_ATTR(INT, slice, dim, .required = true),
		  RFL_OP_ATTR(INT, slice, start, .def = 0),
		  RFL_OP_ATTR(INT, slice, length, .required = true, .min = 1),
		  RFL_OP_ATTR(INT, slice, step, .def = 1, .min = 1)));

/* --- copies --- */

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
			return rfl_fail(err, RFL_EINVAL, 0,
					"cannot join %s and %s: dimensions do not match",
					rfl_shape_text(&in[0], a, sizeof(a)),
					rfl_shape_text(&in[i], b, sizeof(b)));
		if (!rfl_num_add(out->dim[dim], in[i].dim[dim], &out->dim[dim]))
			return rfl_fail(err, RFL_EOVERFLOW, 0,
					"the output has 2^63 elements or more");
	}
	return RFL_OK;
}

/* Check that two dimensions begin at dim. */
static enum rfl_rc need_plane(const struct rfl_shape *in, int64_t dim, struct rfl_err *err)
{
	if (dim >= 0 && dim < in->ndim - 1)
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0,
			"dimension %lld of %d is not a height followed by a width", (long long)dim,
			in->ndim);
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
		return rfl_fail(err, RFL_EINVAL, 0, "padding must be at least 0");
	if (!rfl_num_add(*h, a->top, h) || !rfl_num_add(*h, a->bottom, h) ||
	    !rfl_num_add(*w, a->left, w) || !rfl_num_add(*w, a->right, w))
		return rfl_fail(err, RFL_EOVERFLOW, 0, "the output has 2^63 elements or more");
	return RFL_OK;
}

static enum rfl_rc roll_infer(const struct rfl_node *node, const struct rfl_shape *in,
			      struct rfl_shape *out, struct rfl_err *err)
{
	*out = *in;
	return need_plane(in, node->attr.roll.dim, err);
}

static void copy_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	const enum rfl_op op = c->node->op;

	for (int k = 0; k < c->node->ninputs; k++) {
		const struct rfl_cost_input *in = &c->inputs[k];
		enum rfl_pass pass = rfl_op_operand_pass(c, k);
		int64_t *adds = &cost->elementwise[pass].add;

		rfl_op_operand_read(c, k, &u[RFL_PASS_FORWARD]);
		if (op != RFL_OP_CONCAT || !in->grad || !in->batchless || c->node->batchless)
			continue;
		*adds = rfl_cost_add(c, *adds, rfl_cost_mul(c, c->batch - 1, in->numel));
		rfl_cost_read(c, &u[pass], rfl_cost_mul(c, c->batch, in->numel), c->value_bytes);
		rfl_op_operand_write(c, k, &u[pass]);
	}
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->out, c->value_bytes);
	/* dX has the size of X, even with padding. */
	if ((op == RFL_OP_PAD || op == RFL_OP_ROLL) && c->needs_dgrad)
		rfl_cost_move(c, &u[RFL_PASS_DGRAD], c->in, c->value_bytes, c->in, c->value_bytes);
	rfl_op_fuse_not(cost);
}

RFL_OP(contiguous, "Contiguous", "CloneBackward0", .infer = rfl_op_same_shape, .cost = copy_cost,
       .passes = 1);
RFL_OP(concat, "Concat", "CatBackward0", .arity = RFL_OP_ANY_INPUTS, .infer = concat_infer,
       .cost = copy_cost, .passes = RFL_NET_MAX_INPUTS,
       RFL_OP_ATTRS(RFL_OP_ATTR(INT, concat, dim, .def = 0)));
RFL_OP(pad, "Pad", "ConstantPadNdBackward0", .infer = pad_infer, .cost = copy_cost,
       RFL_OP_ATTRS(RFL_OP_ATTR(INT, padding, dim, .def = 0),
		    RFL_OP_ATTR(INT, padding, top, .def = 0),
		    RFL_OP_ATTR(INT, padding, bottom, .def = 0),
		    RFL_OP_ATTR(INT, padding, left, .def = 0),
		    RFL_OP_ATTR(INT, padding, right, .def = 0)));
RFL_OP(roll, "Roll", "RollBackward0", .infer = roll_infer, .cost = copy_cost,
       RFL_OP_ATTRS(RFL_OP_ATTR(INT, roll, dim, .def = 0),
		    RFL_OP_ATTR_PAIR(roll, shift, .def = 0, .min = INT64_MIN)));

/* --- rows of a table --- */

static enum rfl_rc embedding_infer(const struct rfl_node *node, const struct rfl_shape *in,
				   struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_embedding *a = &node->attr.embedding;

	if (a->vocab < 1 || a->features < 1 || in->ndim >= RFL_NET_MAX_DIMS)
		return rfl_fail(err, RFL_EINVAL, 0,
				"a table needs at least 1 row and 1 feature, not %lld and %lld",
				(long long)a->vocab, (long long)a->features);
	*out = *in;
	out->dim[out->ndim++] = a->features;
	return RFL_OK;
}

static int embedding_params(const struct rfl_node *node, struct rfl_op_param *out)
{
	out[0] = (struct rfl_op_param){
		.suffix = "weight",
		.kind = RFL_PARAM_EMBEDDING_WEIGHT,
		.shape = { 2, { node->attr.embedding.vocab, node->attr.embedding.features } },
	};
	return 1;
}

static enum rfl_rc gather_infer(const struct rfl_node *node, const struct rfl_shape *in,
				struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_shape *shape = &node->attr.gather.shape;
	char from[96], to[96];
	enum rfl_rc rc = check_dims(shape, err);

	if (rc != RFL_OK)
		return rc;
	if (in->ndim != 2 || shape->ndim < 1 || shape->dim[shape->ndim - 1] != in->dim[1])
		return rfl_fail(err, RFL_EINVAL, 0, "cannot gather %s from a table of %s",
				rfl_shape_text(shape, to, sizeof(to)),
				rfl_shape_text(in, from, sizeof(from)));
	*out = *shape;
	return RFL_OK;
}

/* The cost of reading rows of `row` elements; the table has `table` elements of `size` bytes. */
static void rows_cost(struct rfl_cost_context *c, int64_t row, int64_t table, int64_t size,
		      enum rfl_pass pass, struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	int64_t v = c->value_bytes, place = rfl_dtype_bytes(RFL_DTYPE_I64);

	rfl_cost_read(c, &u[RFL_PASS_FORWARD], c->out / row, place);
	rfl_cost_move(c, &u[RFL_PASS_FORWARD], c->out, size, c->out, v);
	if (pass != RFL_PASS_FORWARD) {
		cost->elementwise[pass].add = c->out;
		rfl_cost_read(c, &u[pass], c->out / row, place);
		rfl_cost_move(c, &u[pass], c->out, v, table, size);
	}
	rfl_op_fuse_not(cost);
}

static void embedding_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_embedding *a = &c->node->attr.embedding;

	rows_cost(c, a->features, rfl_cost_mul(c, a->vocab, a->features), c->param_bytes,
		  c->needs_wgrad ? RFL_PASS_WGRAD : RFL_PASS_FORWARD, cost);
}

static void gather_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	rows_cost(c, c->in_shape.dim[1], c->in, rfl_op_operand_bytes(c, 0),
		  c->inputs[0].grad ? rfl_op_operand_pass(c, 0) : RFL_PASS_FORWARD, cost);
}

RFL_OP(embedding, "Embedding", "EmbeddingBackward0", .infer = embedding_infer,
       .params = embedding_params, .cost = embedding_cost, .saved = rfl_op_saves_for_wgrad,
       RFL_OP_ATTRS(RFL_OP_ATTR(INT, embedding, vocab, .required = true, .min = 1),
		    RFL_OP_ATTR(INT, embedding, features, .required = true, .min = 1)));
RFL_OP(gather, "Gather", "IndexBackward0", .infer = gather_infer, .cost = gather_cost,
       RFL_OP_ATTRS(RFL_OP_ATTR(SHAPE, gather, shape, .required = true)));
