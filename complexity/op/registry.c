/*
 * registry.c - the table of operations and what their rows share. Each row lives in its own file
 * here.
 */
#include "complexity/op/parts.h"

#include <assert.h>

static const struct rfl_op_info *const ops[RFL_OP_COUNT] = {
#define OP(number, row) [RFL_OP_##number] = &rfl_op_##row,
#include "complexity/op/list.inc"
#undef OP
};

const struct rfl_op_info *rfl_op_info_of(enum rfl_op op)
{
	assert(op < RFL_OP_COUNT && ops[op]);
	return ops[op];
}

void rfl_op_cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_op_info *op = rfl_op_info_of(c->node->op);

	if (op->unary)
		rfl_op_unary_cost(c, op->unary, cost);
	else if (op->cost)
		op->cost(c, cost);
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
