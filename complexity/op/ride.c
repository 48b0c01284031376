/*
 * ride.c - the fused level of operations that ride on a neighbour: those that need one bit per
 * element in the backward pass (whether an activation was cut, whether a dropout kept the element),
 * those that need a tensor again and those that need nothing.
 */
#include "complexity/op/ride.h"

#include <string.h>

void rfl_op_ride_not(struct rfl_cost *cost)
{
	memcpy(cost->traffic[RFL_FUSION_FUSED], cost->traffic[RFL_FUSION_UNFUSED],
	       sizeof(cost->traffic[RFL_FUSION_FUSED]));
}

void rfl_op_ride_with_mask(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];
	int64_t mask_bytes = c->out / 8 + (c->out % 8 != 0);

	rfl_op_ride(c, 0, cost);
	if (!c->rides)
		return;
	if (c->options->training)
		rfl_cost_write(c, &f[RFL_PASS_FORWARD], mask_bytes, 1);
	if (c->needs_dgrad)
		rfl_cost_read(c, &f[RFL_PASS_DGRAD], mask_bytes, 1);
}

void rfl_op_ride(struct rfl_cost_context *c, int64_t kept, struct rfl_cost *cost)
{
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];

	if (!c->rides) {
		rfl_op_ride_not(cost);
		return;
	}
	if (c->input_shared)
		rfl_cost_write(c, &f[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->needs_dgrad)
		rfl_cost_read(c, &f[RFL_PASS_DGRAD], kept, c->value_bytes);
}
