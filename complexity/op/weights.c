/*
 * weights.c - the costs that convolution and matrix product share.
 *
 * Under autocast (master_weights) the weights are stored as F32 and a 16-bit copy is made for each
 * step: unfused, a kernel of its own reads 4 and writes 2 bytes per weight and the gradient is
 * widened by another; fused, the operation reads the F32 weights and writes F32 gradients itself.
 *
 * A frozen weight has no wgrad. The gradient of a borrowed one (a head tied to the embedding) is
 * added to its owner's: an addition per weight; unfused R both, W one, fused R what is there.
 */
#include "complexity/op/weights.h"

static void weights_traffic(struct rfl_cost_context *c, int64_t elements, struct rfl_cost *cost)
{
	bool copies = c->param_bytes != c->value_bytes;
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_FORWARD];
	struct rfl_traffic *f = &cost->traffic[RFL_FUSION_FUSED][RFL_PASS_FORWARD];

	rfl_cost_read(c, u, elements, c->value_bytes);
	rfl_cost_read(c, f, elements, c->param_bytes);
	if (copies) {
		rfl_cost_read(c, u, elements, c->param_bytes);
		rfl_cost_write(c, u, elements, c->value_bytes);
	}
}

static void gradients_traffic(struct rfl_cost_context *c, int64_t elements, struct rfl_cost *cost)
{
	bool copies = c->param_bytes != c->value_bytes;
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_WGRAD];
	struct rfl_traffic *f = &cost->traffic[RFL_FUSION_FUSED][RFL_PASS_WGRAD];

	rfl_cost_write(c, u, elements, c->value_bytes);
	rfl_cost_write(c, f, elements, c->param_bytes);
	if (copies) {
		rfl_cost_read(c, u, elements, c->value_bytes);
		rfl_cost_write(c, u, elements, c->param_bytes);
	}
	if (c->node->tied) {
		rfl_cost_read(c, u, elements, 2 * c->param_bytes);
		rfl_cost_write(c, u, elements, c->param_bytes);
		rfl_cost_read(c, f, elements, c->param_bytes);
	}
}

static void level_traffic(struct rfl_cost_context *c, const struct rfl_op_weights *w,
			  struct rfl_traffic *t, int64_t weight_bytes)
{
	rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->in, c->value_bytes);
	rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, c->value_bytes);
	if (c->needs_dgrad) {
		rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->out, c->value_bytes);
		rfl_cost_read(c, &t[RFL_PASS_DGRAD], w->weights, weight_bytes);
		rfl_cost_write(c, &t[RFL_PASS_DGRAD], c->in, c->value_bytes);
	}
	if (c->needs_wgrad) {
		rfl_cost_read(c, &t[RFL_PASS_WGRAD], c->in, c->value_bytes);
		rfl_cost_read(c, &t[RFL_PASS_WGRAD], c->out, c->value_bytes);
	}
}

static void wgrad(struct rfl_cost_context *c, const struct rfl_op_weights *w, struct rfl_cost *cost)
{
	int64_t *adds = &cost->elementwise[RFL_PASS_WGRAD].add;
	int64_t elements = rfl_cost_add(c, w->weights, w->biases);

	cost->macs[RFL_PASS_WGRAD] = w->macs;
	if (w->biases) /* out / biases terms per bias make one addition less each */
		*adds = c->out - w->biases;
	if (c->node->tied)
		*adds = rfl_cost_add(c, *adds, elements);
	gradients_traffic(c, elements, cost);
}

void rfl_op_weights_cost(struct rfl_cost_context *c, const struct rfl_op_weights *w,
			 struct rfl_cost *cost)
{
	cost->macs[RFL_PASS_FORWARD] = w->macs;
	if (c->needs_dgrad)
		cost->macs[RFL_PASS_DGRAD] = w->macs;
	if (w->biases)
		cost->bias_adds = c->out;
	weights_traffic(c, rfl_cost_add(c, w->weights, w->biases), cost);
	level_traffic(c, w, cost->traffic[RFL_FUSION_UNFUSED], c->value_bytes);
	level_traffic(c, w, cost->traffic[RFL_FUSION_FUSED], c->param_bytes); /* no copy is kept */
	if (c->needs_wgrad)
		wgrad(c, w, cost);
}
