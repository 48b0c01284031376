/*
 * op_add.c - the elementwise sum of a residual connection.
 *
 * Forward: one addition per element and input beyond the first. Backward: free, both inputs get the
 * gradient as it is; the addition happens where a tensor with several readers collects its
 * gradients, and is counted there (count.c).
 *
 * Traffic, unfused: forward R of every input, W Y. Fused: it rides on the operation that made one
 * of its inputs and reads the others.
 */
#include "complexity/op.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	char a[96], b[96];

	for (int i = 1; i < node->ninputs; i++) {
		bool same = in[i].ndim == in[0].ndim;

		for (int d = 0; same && d < in[0].ndim; d++)
			same = in[i].dim[d] == in[0].dim[d];
		if (!same)
			return rfl_fail(err, RFL_EINVAL, 0, "cannot add %s to %s",
					rfl_shape_text(&in[i], b, sizeof(b)),
					rfl_shape_text(&in[0], a, sizeof(a)));
	}
	*out = in[0];
	return RFL_OK;
}

static void cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_FORWARD];
	struct rfl_traffic *f = &cost->traffic[RFL_FUSION_FUSED][RFL_PASS_FORWARD];
	int64_t inputs = c->node->ninputs;

	cost->elementwise[RFL_PASS_FORWARD].add = rfl_cost_mul(c, inputs - 1, c->out);
	rfl_cost_read(c, u, c->out, inputs * c->value_bytes);
	rfl_cost_write(c, u, c->out, c->value_bytes);
	if (!c->rides) {
		*f = *u;
		return;
	}
	rfl_cost_read(c, f, c->out, (inputs - 1) * c->value_bytes);
	if (c->input_shared)
		rfl_cost_write(c, f, c->out, c->value_bytes);
}

const struct rfl_op_info rfl_op_add = {
	.name = "add",
	.module = "Add",
	.rides = true,
	.infer = infer,
	.cost = cost,
};
