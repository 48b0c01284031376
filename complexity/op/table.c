/*
 * table.c - rows taken from a table: an embedding by the tokens of the text, a learned table by
 * constant places.
 *
 * n elements in n / d rows. Forward computes nothing. The gradient of the table is dY added up row
 * by row: n add; it is wgrad.
 *
 * Traffic, unfused and fused: forward R places (int64), R n, W n; gradient R places, R dY, W the
 * whole table, which is dense (PyTorch's default) and mostly zeros.
 */
#include "complexity/op/parts.h"

static enum rfl_rc embedding_infer(const struct rfl_node *node, const struct rfl_shape *in,
				   struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_embedding *a = &node->attr.embedding;

	if (a->vocab < 1 || a->features < 1 || in->ndim >= RFL_NET_MAX_DIMS)
		return rfl_fail(err, RFL_EINVAL, 0, "a table of %lld rows of %lld features",
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
		.ndim = 2,
		.dim = { node->attr.embedding.vocab, node->attr.embedding.features },
	};
	return 1;
}

static enum rfl_rc gather_infer(const struct rfl_node *node, const struct rfl_shape *in,
				struct rfl_shape *out, struct rfl_err *err)
{
	const struct rfl_shape *shape = &node->attr.gather.shape;
	char from[96], to[96];

	for (int i = 0; i < shape->ndim; i++)
		if (shape->dim[i] < 1)
			return rfl_fail(err, RFL_EINVAL, 0, "dimension %d is not 1 or more", i);
	if (in->ndim != 2 || shape->ndim < 1 || shape->dim[shape->ndim - 1] != in->dim[1])
		return rfl_fail(err, RFL_EINVAL, 0, "cannot take %s from a table of %s",
				rfl_shape_text(shape, to, sizeof(to)),
				rfl_shape_text(in, from, sizeof(from)));
	*out = *shape;
	return RFL_OK;
}

/* `row` elements at a time; an element of the table has `size` bytes. */
static void take_rows(struct rfl_cost_context *c, int64_t row, int64_t size, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_FORWARD];

	rfl_cost_read(c, u, c->out / row, rfl_dtype_bytes(RFL_DTYPE_I64));
	rfl_cost_read(c, u, c->out, size);
	rfl_cost_write(c, u, c->out, c->value_bytes);
}

static void add_rows(struct rfl_cost_context *c, int64_t row, int64_t table, int64_t size,
		     enum rfl_pass pass, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];

	cost->elementwise[pass].add = c->out;
	rfl_cost_read(c, u, c->out / row, rfl_dtype_bytes(RFL_DTYPE_I64));
	rfl_cost_read(c, u, c->out, c->value_bytes);
	rfl_cost_write(c, u, table, size);
}

static void embedding_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_embedding *a = &c->node->attr.embedding;

	take_rows(c, a->features, c->param_bytes, cost);
	if (c->needs_wgrad)
		add_rows(c, a->features, rfl_cost_mul(c, a->vocab, a->features), c->param_bytes,
			 RFL_PASS_WGRAD, cost);
	rfl_op_ride_not(cost);
}

static void gather_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	int64_t size = rfl_op_operand_bytes(c, 0), row = c->in_shape.dim[1];

	take_rows(c, row, size, cost);
	if (c->inputs[0].grad)
		add_rows(c, row, c->in, size, rfl_op_operand_pass(c, 0), cost);
	rfl_op_ride_not(cost);
}

/* The indices. */
static int embedding_saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	return c->needs_wgrad ? rfl_op_save_operand(c, 0, out, 0) : 0;
}

static const struct rfl_op_attr embedding_attrs[] = {
	RFL_OP_ATTR(INT, embedding, vocab, .required = true, .min = 1),
	RFL_OP_ATTR(INT, embedding, features, .required = true, .min = 1),
};

static const struct rfl_op_attr gather_attrs[] = {
	RFL_OP_ATTR(SHAPE, gather, shape, .required = true),
};

const struct rfl_op_info rfl_op_embedding = {
	.name = "embedding",
	.module = "Embedding",
	.autograd = "EmbeddingBackward0",
	.infer = embedding_infer,
	.params = embedding_params,
	.cost = embedding_cost,
	.attrs = embedding_attrs,
	.nattrs = RFL_ARRAY_LEN(embedding_attrs),
	.saved = embedding_saved,
};

const struct rfl_op_info rfl_op_gather = {
	.name = "gather",
	.module = "Gather",
	.autograd = "IndexBackward0",
	.infer = gather_infer,
	.cost = gather_cost,
	.attrs = gather_attrs,
	.nattrs = RFL_ARRAY_LEN(gather_attrs),
};
