/*
 * op.c - the table of operations and what their rows share. Each row lives in its own op_*.c.
 */
#include "complexity/op.h"

#include <assert.h>

#include "base/num.h"

static const struct rfl_op_info *const ops[RFL_OP_COUNT] = {
	[RFL_OP_INPUT] = &rfl_op_input,
	[RFL_OP_CONV2D] = &rfl_op_conv2d,
	[RFL_OP_BATCH_NORM] = &rfl_op_batch_norm,
	[RFL_OP_RELU] = &rfl_op_relu,
	[RFL_OP_RELU6] = &rfl_op_relu6,
	[RFL_OP_MAX_POOL] = &rfl_op_max_pool,
	[RFL_OP_ADAPTIVE_AVG_POOL] = &rfl_op_adaptive_avg_pool,
	[RFL_OP_LINEAR] = &rfl_op_linear,
	[RFL_OP_DROPOUT] = &rfl_op_dropout,
	[RFL_OP_FLATTEN] = &rfl_op_flatten,
	[RFL_OP_ADD] = &rfl_op_add,
	[RFL_OP_CROSS_ENTROPY] = &rfl_op_cross_entropy,
};

const struct rfl_op_info *rfl_op_info_of(enum rfl_op op)
{
	assert(op < RFL_OP_COUNT && ops[op]);
	return ops[op];
}

int64_t rfl_cost_mul(struct rfl_cost_context *c, int64_t a, int64_t b)
{
	int64_t product = 0;

	if (!rfl_num_mul(a, b, &product))
		c->overflow = true;
	return product;
}

int64_t rfl_cost_add(struct rfl_cost_context *c, int64_t a, int64_t b)
{
	int64_t sum = 0;

	if (!rfl_num_add(a, b, &sum))
		c->overflow = true;
	return sum;
}

void rfl_cost_read(struct rfl_cost_context *c, struct rfl_traffic *t, int64_t elements,
		   int64_t size)
{
	t->read_bytes = rfl_cost_add(c, t->read_bytes, rfl_cost_mul(c, elements, size));
}

void rfl_cost_write(struct rfl_cost_context *c, struct rfl_traffic *t, int64_t elements,
		    int64_t size)
{
	t->write_bytes = rfl_cost_add(c, t->write_bytes, rfl_cost_mul(c, elements, size));
}

enum rfl_rc rfl_op_same_shape(const struct rfl_node *node, const struct rfl_shape *in,
			      struct rfl_shape *out, struct rfl_err *err)
{
	(void)node;
	(void)err;
	*out = in[0];
	return RFL_OK;
}

enum rfl_rc rfl_op_need_image(const struct rfl_shape *in, struct rfl_err *err)
{
	char text[96];

	if (in->ndim == 3)
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0, "needs an image of channels x height x width, got %s",
			rfl_shape_text(in, text, sizeof(text)));
}
