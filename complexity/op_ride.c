/*
 * op_ride.c - the fused level of operations that need one bit per element in the backward pass:
 * whether an activation was cut, whether a dropout kept the element.
 */
#include "complexity/op_ride.h"

#include <string.h>

void rfl_op_ride_with_mask(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];
	int64_t mask_bytes = c->out / 8 + (c->out % 8 != 0);

	if (!c->rides) {
		memcpy(f, cost->traffic[RFL_FUSION_UNFUSED],
		       sizeof(cost->traffic[RFL_FUSION_FUSED]));
		return;
	}
	if (c->input_shared)
		rfl_cost_write(c, &f[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->options->training)
		rfl_cost_write(c, &f[RFL_PASS_FORWARD], mask_bytes, 1);
	if (c->needs_dgrad)
		rfl_cost_read(c, &f[RFL_PASS_DGRAD], mask_bytes, 1);
}
