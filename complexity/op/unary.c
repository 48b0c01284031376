/*
 * unary.c - the cost of an operation that maps each element of one tensor by itself, from the
 * counts of its formula.
 *
 * Traffic, unfused: forward R X, W Y; dgrad R dY, R X or Y if its gradient needs one of them (both
 * are as large), W dX. Where the published model overwrites an input that the gradient needs,
 * PyTorch copies it first; a new tensor for the result saves that pass, which is what the engines
 * do and what is counted. Fused: it rides, and the backward pass reads that tensor again or one bit
 * per element.
 */
#include "complexity/op/unary.h"

#include "complexity/op/ride.h"

void rfl_op_add_elementwise(struct rfl_cost_context *c, struct rfl_elementwise *sum,
			    const struct rfl_elementwise *per_element, int64_t elements)
{
	sum->add = rfl_cost_add(c, sum->add, rfl_cost_mul(c, per_element->add, elements));
	sum->mul = rfl_cost_add(c, sum->mul, rfl_cost_mul(c, per_element->mul, elements));
	sum->compare =
		rfl_cost_add(c, sum->compare, rfl_cost_mul(c, per_element->compare, elements));
	sum->special =
		rfl_cost_add(c, sum->special, rfl_cost_mul(c, per_element->special, elements));
}

void rfl_op_unary_cost(struct rfl_cost_context *c, const struct rfl_op_unary *op,
		       struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	int64_t reads = (op->needs == RFL_OP_NEEDS_NOTHING ? 1 : 2) + op->steps;

	rfl_op_add_elementwise(c, &cost->elementwise[RFL_PASS_FORWARD], &op->forward, c->in);
	rfl_cost_read(c, &u[RFL_PASS_FORWARD], c->in, c->value_bytes);
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->needs_dgrad) {
		rfl_op_add_elementwise(c, &cost->elementwise[RFL_PASS_DGRAD], &op->dgrad, c->in);
		rfl_cost_read(c, &u[RFL_PASS_DGRAD], c->out, reads * c->value_bytes);
		rfl_cost_write(c, &u[RFL_PASS_DGRAD], c->in, (1 + op->steps) * c->value_bytes);
	}
	if (op->needs == RFL_OP_NEEDS_BIT)
		rfl_op_ride_with_mask(c, cost);
	else
		rfl_op_ride(c, op->needs == RFL_OP_NEEDS_TENSOR ? c->in : 0, cost);
}
