/*
 * tensors.c - operations without arithmetic: sources (the input, learned tensors, constant tables),
 * views, copies (a new layout, concatenation, padding, cyclic shift), and rows from a table.
 *
 * Views move nothing, except that the gradient of a slice has the size of the whole tensor and is
 * zero elsewhere. A learned tensor concatenated to every sample (a class token) receives the sum
 * over the samples as wgrad. The gradient of a table is dense (PyTorch's default), so all of it is
 * written.
 */
#include "complexity/op/parts.h"

#include "base/num.h"

/* --- inputs and constants --- */

static enum rfl_rc input_infer(struct rfl_op_shapes *s)
{
	*s->out = s->node->shape;
	return RFL_OK;
}

static enum rfl_rc parameter_infer(struct rfl_op_shapes *s)
{
	const struct rfl_shape *stored = &s->node->attr.parameter.stored;
	const int64_t drop = s->node->attr.parameter.drop;

	if (drop > stored->ndim)
		return rfl_op_refuse(s, "cannot drop %lld dimensions of %d", (long long)drop,
				     stored->ndim);
	*s->out = (struct rfl_shape){ .ndim = stored->ndim - (int)drop };
	for (int i = 0; i < stored->ndim; i++)
		if (i >= drop)
			s->out->dim[i - drop] = stored->dim[i];
		else if (stored->dim[i] != 1)
			return rfl_op_refuse(s, "cannot drop dimension %d: its size is %lld, not 1",
					     i, (long long)stored->dim[i]);
	return RFL_OK;
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

static enum rfl_rc constant_infer(struct rfl_op_shapes *s)
{
	*s->out = s->node->attr.constant.shape;
	return RFL_OK;
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

static enum rfl_rc flatten_infer(struct rfl_op_shapes *s)
{
	const int64_t first = s->node->attr.flatten.first;

	if (first >= s->in->ndim)
		return rfl_op_refuse(s, "cannot flatten %d dimensions starting at %lld",
				     s->in->ndim, (long long)first);
	*s->out = *s->in;
	s->out->ndim = (int)first + 1;
	for (int i = s->out->ndim; i < s->in->ndim; i++)
		s->out->dim[first] *= s->in->dim[i]; /* fits, as the input does */
	return RFL_OK;
}

static enum rfl_rc reshape_infer(struct rfl_op_shapes *s)
{
	const struct rfl_shape *shape = &s->node->attr.reshape.shape;

	if (!rfl_shape_fits(shape) || rfl_shape_numel(shape) != rfl_shape_numel(s->in))
		return rfl_op_refuse(s, "cannot reshape %s to %s: sizes differ",
				     rfl_op_show(s, s->in), rfl_op_show(s, shape));
	*s->out = *shape;
	return RFL_OK;
}

static enum rfl_rc unknown_infer(struct rfl_op_shapes *s)
{
	*s->out = s->node->attr.reshape.shape;
	return RFL_OK;
}

static enum rfl_rc permute_infer(struct rfl_op_shapes *s)
{
	const int64_t *order = s->node->attr.permute.order;
	const int ndim = s->in->ndim;
	unsigned seen = 0;

	s->out->ndim = ndim;
	for (int i = 0; i < ndim; i++) {
		if (order[i] < 0 || order[i] >= ndim || (seen & (1u << order[i])))
			return rfl_op_refuse(
				s, "the order must list each of the %d dimensions once", ndim);
		seen |= 1u << order[i];
		s->out->dim[i] = s->in->dim[order[i]];
	}
	return RFL_OK;
}

static enum rfl_rc slice_infer(struct rfl_op_shapes *s)
{
	const struct rfl_slice *a = &s->node->attr.slice;
	const int64_t size = a->dim < s->in->ndim ? s->in->dim[a->dim] : 0;

	if (a->start >= size || a->length - 1 > (size - 1 - a->start) / a->step)
		return rfl_op_refuse(s,
				     "cannot take %lld elements, starting at %lld with step %lld, "
				     "of dimension %lld of size %lld",
				     (long long)a->length, (long long)a->start, (long long)a->step,
				     (long long)a->dim, (long long)size);
	*s->out = *s->in;
	s->out->dim[a->dim] = a->length;
	return RFL_OK;
}

static void slice_cost(struct rfl_cost_context *c)
{
	struct rfl_traffic *u = &c->cost->traffic[UNFUSED][rfl_op_operand_pass(c, 0)];

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

/* Another program's operation of which only the shape of the result is known; it counts nothing. */
RFL_OP(unknown, "Unknown", NULL, .infer = unknown_infer,
       RFL_OP_ATTRS(RFL_OP_ATTR(SHAPE, reshape, shape, .required = true)));

/* --- copies --- */

/* Add to a dimension of the output. */
static enum rfl_rc extend(struct rfl_op_shapes *s, int64_t dim, int64_t size)
{
	if (rfl_num_add(s->out->dim[dim], size, &s->out->dim[dim]))
		return RFL_OK;
	return rfl_fail(s->err, RFL_EOVERFLOW, 0, "the output has 2^63 elements or more");
}

static enum rfl_rc concat_infer(struct rfl_op_shapes *s)
{
	const struct rfl_shape *first = s->in;
	const int64_t dim = s->node->attr.concat.dim;
	enum rfl_rc rc = RFL_OK;

	if (s->node->ninputs < 1 || dim >= first->ndim)
		return rfl_op_refuse(s, "cannot join along dimension %lld", (long long)dim);
	*s->out = *first;
	for (int i = 1; i < s->node->ninputs && rc == RFL_OK; i++) {
		const struct rfl_shape *in = &s->in[i];
		bool fits = in->ndim == first->ndim;

		for (int d = 0; fits && d < first->ndim; d++)
			fits = d == dim || in->dim[d] == first->dim[d];
		if (!fits)
			return rfl_op_refuse(s, "cannot join %s and %s: dimensions do not match",
					     rfl_op_show(s, first), rfl_op_show(s, in));
		rc = extend(s, dim, in->dim[dim]);
	}
	return rc;
}

/* Give the output the shape of the input, in which two dimensions begin at dim. */
static enum rfl_rc same_plane(struct rfl_op_shapes *s, int64_t dim)
{
	if (dim >= s->in->ndim - 1)
		return rfl_op_refuse(s, "dimension %lld of %d is not a height followed by a width",
				     (long long)dim, s->in->ndim);
	return rfl_op_same_shape(s);
}

static enum rfl_rc pad_infer(struct rfl_op_shapes *s)
{
	const struct rfl_pad *a = &s->node->attr.padding;
	const int64_t more[] = { a->top, a->bottom, a->left, a->right };
	enum rfl_rc rc = same_plane(s, a->dim);

	for (int i = 0; i < 4 && rc == RFL_OK; i++)
		rc = extend(s, a->dim + i / 2, more[i]);
	return rc;
}

static enum rfl_rc roll_infer(struct rfl_op_shapes *s)
{
	return same_plane(s, s->node->attr.roll.dim);
}

static void copy_cost(struct rfl_cost_context *c)
{
	const enum rfl_op op = c->node->op;

	for (int k = 0; k < c->node->ninputs; k++) {
		const struct rfl_cost_input *in = &c->inputs[k];
		enum rfl_pass pass = rfl_op_operand_pass(c, k);
		struct rfl_traffic *u = c->cost->traffic[UNFUSED];
		int64_t *adds = &c->cost->elementwise[pass].add;

		rfl_op_operand_read(c, k, &u[FORWARD]);
		if (op != RFL_OP_CONCAT || !in->grad || !in->batchless || c->node->batchless)
			continue;
		*adds = rfl_cost_add(c, *adds, rfl_cost_mul(c, c->batch - 1, in->numel));
		rfl_cost_read(c, &u[pass], rfl_cost_mul(c, c->batch, in->numel), c->value_bytes);
		rfl_op_operand_write(c, k, &u[pass]);
	}
	rfl_op_move(c, FORWARD, 0, c->out);
	/* dX has the size of X, even with padding. */
	if (op == RFL_OP_PAD || op == RFL_OP_ROLL)
		rfl_op_move(c, DGRAD, c->in, c->in);
	rfl_op_fuse_not(c);
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

static enum rfl_rc embedding_infer(struct rfl_op_shapes *s)
{
	if (s->in->ndim >= RFL_NET_MAX_DIMS)
		return rfl_op_refuse(s, "the input has %d dimensions already", s->in->ndim);
	*s->out = *s->in;
	s->out->dim[s->out->ndim++] = s->node->attr.embedding.features;
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

static enum rfl_rc gather_infer(struct rfl_op_shapes *s)
{
	const struct rfl_shape *shape = &s->node->attr.gather.shape;

	if (s->in->ndim != 2 || shape->ndim < 1 || shape->dim[shape->ndim - 1] != s->in->dim[1])
		return rfl_op_refuse(s, "cannot gather %s from a table of %s",
				     rfl_op_show(s, shape), rfl_op_show(s, s->in));
	*s->out = *shape;
	return RFL_OK;
}

/* The cost of reading rows of `row` elements; the table has `table` elements of `size` bytes. */
static void rows_cost(struct rfl_cost_context *c, int64_t row, int64_t table, int64_t size,
		      enum rfl_pass pass)
{
	struct rfl_traffic *u = c->cost->traffic[UNFUSED];
	int64_t v = c->value_bytes, place = rfl_dtype_bytes(RFL_DTYPE_I64);

	rfl_cost_read(c, &u[FORWARD], c->out / row, place);
	rfl_cost_move(c, &u[FORWARD], c->out, size, c->out, v);
	if (pass != RFL_PASS_FORWARD) {
		c->cost->elementwise[pass].add = c->out;
		rfl_cost_read(c, &u[pass], c->out / row, place);
		rfl_cost_move(c, &u[pass], c->out, v, table, size);
	}
	rfl_op_fuse_not(c);
}

static void embedding_cost(struct rfl_cost_context *c)
{
	const struct rfl_embedding *a = &c->node->attr.embedding;

	rows_cost(c, a->features, rfl_cost_mul(c, a->vocab, a->features), c->param_bytes,
		  c->needs_wgrad ? WGRAD : FORWARD);
}

static void gather_cost(struct rfl_cost_context *c)
{
	rows_cost(c, c->in_shape.dim[1], c->in, rfl_op_operand_bytes(c, 0),
		  c->inputs[0].grad ? rfl_op_operand_pass(c, 0) : RFL_PASS_FORWARD);
}

RFL_OP(embedding, "Embedding", "EmbeddingBackward0", .infer = embedding_infer,
       .params = embedding_params, .cost = embedding_cost, .saved = rfl_op_saves_for_wgrad,
       RFL_OP_ATTRS(RFL_OP_ATTR(INT, embedding, vocab, .required = true, .min = 1),
		    RFL_OP_ATTR(INT, embedding, features, .required = true, .min = 1)));
RFL_OP(gather, "Gather", "IndexBackward0", .infer = gather_infer, .cost = gather_cost,
       RFL_OP_ATTRS(RFL_OP_ATTR(SHAPE, gather, shape, .required = true)));
