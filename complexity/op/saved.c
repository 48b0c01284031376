/*
 * saved.c - the rules of what autograd keeps that several operations share. They were read off
 * PyTorch 2.11 with torch.autograd.graph.saved_tensors_hooks, each operation by itself.
 */
#include "complexity/op/saved.h"

int rfl_op_save_operand(const struct rfl_cost_context *c, int k,
			struct rfl_op_saved out[RFL_OP_MAX_SAVED], int n)
{
	if (c->inputs[k].outside)
		return n;
	out[n] = (struct rfl_op_saved){ .kind = RFL_SAVED_INPUT, .input = k };
	return n + 1;
}

int rfl_op_save_bytes(enum rfl_saved_kind kind, int64_t bytes,
		      struct rfl_op_saved out[RFL_OP_MAX_SAVED], int n)
{
	out[n] = (struct rfl_op_saved){ .kind = kind, .bytes = bytes };
	return n + 1;
}

int rfl_op_saves_input(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	if (!c->needs_dgrad)
		return 0;
	if (c->node->inplace)
		return rfl_op_save_bytes(RFL_SAVED_CLONE, rfl_cost_mul(c, c->in, c->value_bytes),
					 out, 0);
	return rfl_op_save_operand(c, 0, out, 0);
}

int rfl_op_saves_output(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	if (!c->needs_dgrad)
		return 0;
	out[0] = (struct rfl_op_saved){ .kind = RFL_SAVED_OUTPUT };
	return 1;
}

int64_t rfl_op_statistic_bytes(const struct rfl_cost_context *c)
{
	return c->on_cpu ? c->param_bytes : rfl_dtype_bytes(RFL_DTYPE_F32);
}
