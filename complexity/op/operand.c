/*
 * operand.c - the inputs of operations that take several tensors.
 */
#include "complexity/op/operand.h"

int64_t rfl_op_operand_bytes(const struct rfl_cost_context *c, int k)
{
	return c->inputs[k].outside ? c->param_bytes : c->value_bytes;
}

void rfl_op_operand_read(struct rfl_cost_context *c, int k, struct rfl_traffic *t)
{
	rfl_cost_read(c, t, rfl_cost_in(c, k), rfl_op_operand_bytes(c, k));
}

void rfl_op_operand_write(struct rfl_cost_context *c, int k, struct rfl_traffic *t)
{
	rfl_cost_write(c, t, rfl_cost_in(c, k), rfl_op_operand_bytes(c, k));
}

enum rfl_pass rfl_op_operand_pass(const struct rfl_cost_context *c, int k)
{
	return c->inputs[k].outside ? RFL_PASS_WGRAD : RFL_PASS_DGRAD;
}

void rfl_op_operand_reduce(struct rfl_cost_context *c, int k, struct rfl_cost *cost)
{
	enum rfl_pass pass = rfl_op_operand_pass(c, k);
	int64_t *adds = &cost->elementwise[pass].add;
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];
	int64_t elements = rfl_cost_in(c, k);

	if (elements >= c->out)
		return;
	*adds = rfl_cost_add(c, *adds, c->out - elements);
	rfl_cost_read(c, u, c->out, c->value_bytes);
	rfl_op_operand_write(c, k, u);
}

int rfl_op_operand_largest(struct rfl_cost_context *c)
{
	int largest = 0;

	for (int k = 1; k < c->node->ninputs; k++)
		if (rfl_cost_in(c, k) > rfl_cost_in(c, largest))
			largest = k;
	return largest;
}
