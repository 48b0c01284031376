/*
 * op_loss.c - mean cross entropy of logits against class indices. The zoo's networks end at their
 * logits; the counter charges this row to a training step on its own.
 *
 * N rows of C logits, as log_softmax and the mean of the picked values: per row the maximum (C - 1
 * compares), x - max (C add), exponentials (C special), their sum (C - 1 add), its logarithm
 * (1 special) and x - max - log (C add); then N - 1 add and 1 special (division).
 * dgrad, (softmax - onehot) / N: C special (exponentials again) and C mul per row, 1 add at the
 * label.
 *
 * Traffic, unfused: log_softmax R X, W Y (the N values picked from Y are left out); dgrad R Y, W
 * dX. Fused: log_softmax writes nothing, dgrad reads the logits again. Labels are int64, read once
 * by each pass.
 */
#include "complexity/op.h"
#include "complexity/op_saved.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	(void)node;
	if (in->ndim < 1 || in->ndim > 2)
		return rfl_fail(err, RFL_EINVAL, 0, "needs logits of {classes} or {rows, classes}");
	*out = (struct rfl_shape){ .ndim = 1, .dim = { in->ndim == 2 ? in->dim[0] : 1 } };
	return RFL_OK;
}

static void cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	int64_t rows = c->out, n = c->in, label = rfl_dtype_bytes(RFL_DTYPE_I64);
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];

	cost->elementwise[RFL_PASS_FORWARD] = (struct rfl_elementwise){
		.add = rfl_cost_mul(c, 3, n) - 1, /* 3 n - rows, then rows - 1 */
		.compare = n - rows,
		.special = rfl_cost_add(c, n, rows + 1),
	};
	rfl_cost_read(c, &u[RFL_PASS_FORWARD], n, c->value_bytes);
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], n, c->value_bytes);
	rfl_cost_read(c, &u[RFL_PASS_FORWARD], rows, label);
	rfl_cost_read(c, &f[RFL_PASS_FORWARD], n, c->value_bytes);
	rfl_cost_read(c, &f[RFL_PASS_FORWARD], rows, label);
	if (!c->needs_dgrad)
		return;
	cost->elementwise[RFL_PASS_DGRAD] = (struct rfl_elementwise){
		.add = rows,
		.mul = n,
		.special = n,
	};
	for (int level = RFL_FUSION_UNFUSED; level <= RFL_FUSION_FUSED; level++) {
		struct rfl_traffic *t = &cost->traffic[level][RFL_PASS_DGRAD];

		rfl_cost_read(c, t, n, c->value_bytes);
		rfl_cost_read(c, t, rows, label);
		rfl_cost_write(c, t, n, c->value_bytes);
	}
}

/*
 * Log-probabilities. Composed, the maximum keeps places, the exponential its result, the logarithm
 * the sums that it was given and the picking of the label the negated log-probabilities. Autocast
 * runs all of it in F32, which is the type of the parameters then.
 */
static int saved(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED])
{
	int64_t logits = rfl_cost_mul(c, c->in, c->param_bytes);
	int n = 0;

	if (!c->needs_dgrad)
		return 0;
	n = rfl_op_save_bytes(RFL_SAVED_INTERNAL, logits, out, n);
	if (c->loss == RFL_LOSS_FUSED)
		return n;
	n = rfl_op_save_bytes(RFL_SAVED_INTERNAL, logits, out, n);
	n = rfl_op_save_bytes(RFL_SAVED_INDICES,
			      rfl_cost_mul(c, c->out, rfl_dtype_bytes(RFL_DTYPE_I64)), out, n);
	return rfl_op_save_bytes(RFL_SAVED_STATISTICS, rfl_cost_mul(c, c->out, c->param_bytes), out,
				 n);
}

/*
 * Composed, three tensors as large as the logits are alive beside them at most: x - max, its
 * exponential and the log-probabilities, then the latter two and their negation. Backward, fused:
 * the gradient of the log-probabilities while that of the logits is made. Composed: what is saved
 * is released step by step while the gradients are made, so they never add to its size.
 */
static void scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	int64_t logits = rfl_cost_mul(c, c->in, c->param_bytes);
	bool composed = c->loss == RFL_LOSS_COMPOSED;

	out->forward = composed ? logits : 0;
	out->backward = c->needs_dgrad && !composed ? logits : 0;
}

const struct rfl_op_info rfl_op_cross_entropy = {
	.name = "cross_entropy",
	.module = "CrossEntropyLoss",
	.autograd = "NllLossBackward0",
	.infer = infer,
	.cost = cost,
	.autocast = RFL_AUTOCAST_F32,
	.saved = saved,
	.scratch = scratch,
};
