/*
 * op_weights.c - the costs that convolution and matrix product share.
 *
 * Under autocast (master_weights) the weights are stored as F32 and a 16-bit copy is made for each
 * step: unfused, a kernel of its own reads 4 and writes 2 bytes per weight and the gradient is
 * widened by another; fused, the operation reads the F32 weights and writes F32 gradients itself.
 */
#include "complexity/op_weights.h"

static void weights_traffic(struct rfl_cost_context *c, int64_t elements, struct rfl_cost *cost)
{
	bool copies = c->param_bytes != c->value_bytes;
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];

	rfl_cost_read(c, &u[RFL_PASS_FORWARD], elements, c->value_bytes);
	rfl_cost_read(c, &f[RFL_PASS_FORWARD], elements, c->param_bytes);
	rfl_cost_write(c, &u[RFL_PASS_WGRAD], elements, c->value_bytes);
	rfl_cost_write(c, &f[RFL_PASS_WGRAD], elements, c->param_bytes);
	if (copies) {
		rfl_cost_read(c, &u[RFL_PASS_FORWARD], elements, c->param_bytes);
		rfl_cost_write(c, &u[RFL_PASS_FORWARD], elements, c->value_bytes);
		rfl_cost_read(c, &u[RFL_PASS_WGRAD], elements, c->value_bytes);
		rfl_cost_write(c, &u[RFL_PASS_WGRAD], elements, c->param_bytes);
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
	rfl_cost_read(c, &t[RFL_PASS_WGRAD], c->in, c->value_bytes);
	rfl_cost_read(c, &t[RFL_PASS_WGRAD], c->out, c->value_bytes);
}

void rfl_op_weights_cost(struct rfl_cost_context *c, const struct rfl_op_weights *w,
			 struct rfl_cost *cost)
{
	cost->macs[RFL_PASS_FORWARD] = w->macs;
	cost->macs[RFL_PASS_DGRAD] = c->needs_dgrad ? w->macs : 0;
	cost->macs[RFL_PASS_WGRAD] = w->macs;
	if (w->biases) {
		cost->bias_adds = c->out;
		/* out / biases terms per bias make one addition less each */
		cost->elementwise[RFL_PASS_WGRAD].add = c->out - w->biases;
	}
	weights_traffic(c, w->weights + w->biases, cost);
	level_traffic(c, w, cost->traffic[RFL_FUSION_UNFUSED], c->value_bytes);
	level_traffic(c, w, cost->traffic[RFL_FUSION_FUSED], c->param_bytes); /* no copy is kept */
}
