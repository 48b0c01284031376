/*
 * loss.c - mean cross entropy of logits against class indices. The zoo's networks end at their
 * logits; the counter charges this row to a training step on its own.
 *
 * N rows of C logits, as log_softmax and the mean of the picked values: per row the maximum (C - 1
 * compares), x - max (C add), exponentials (C special), their sum (C - 1 add), its logarithm
 * (1 special) and x - max - log (C add); then N - 1 add and 1 special (division).
 * dgrad, (softmax - onehot) / N: C special (exponentials again) and C mul per row, 1 add at the
 * label.
 *
 * Composed, every step is an operation of its own, forward as above. dgrad goes back step by step
 * with what autograd kept: what is subtracted gets its gradient's row sums (twice, C - 1 add), the
 * logarithm divides (1 special), the exponential multiplies (C mul), and two tensors of the logits'
 * size have two readers (2 C add); the mean divides once.
 *
 * Traffic, unfused: log_softmax R X, W Y (the N values picked from Y are left out); dgrad is two
 * kernels, zeros but for the labels, W dY, then that of log_softmax, R Y, R dY, W dX. Composed, in
 * tensors of the logits' size, as PyTorch's kernels move them: forward R 6 (maximum, two
 * differences, exponential, sum, change of sign), W 4; dgrad R 10, W 8: zeros to pick from, two
 * changes of sign and a third, two row sums, the product, two additions. Fused, either way:
 * log_softmax writes nothing, dgrad reads the logits again. Labels are int64, read once by each
 * pass.
 */
#include "complexity/op/parts.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	(void)node;
	if (in->ndim < 1 || in->ndim > 2)
		return rfl_fail(err, RFL_EINVAL, 0, "needs logits of {classes} or {rows, classes}");
	*out = (struct rfl_shape){ .ndim = 1, .dim = { in->ndim == 2 ? in->dim[0] : 1 } };
	return RFL_OK;
}

static void elementwise(struct rfl_cost_context *c, struct rfl_elementwise *e)
{
	int64_t rows = c->out, n = c->in;

	e[RFL_PASS_FORWARD] = (struct rfl_elementwise){
		.add = rfl_cost_mul(c, 3, n) - 1, /* 3 n - rows, then rows - 1 */
		.compare = n - rows,
		.special = rfl_cost_add(c, rfl_cost_add(c, n, rows), 1),
	};
	if (!c->needs_dgrad)
		return;
	if (c->loss == RFL_LOSS_COMPOSED)
		e[RFL_PASS_DGRAD] = (struct rfl_elementwise){
			.add = rfl_cost_mul(c, 4, n) - rfl_cost_mul(c, 2, rows),
			.mul = n,
			.special = rfl_cost_add(c, rows, 1),
		};
	else
		e[RFL_PASS_DGRAD] = (struct rfl_elementwise){
			.add = rows,
			.mul = n,
			.special = n,
		};
}

static void fused(struct rfl_cost_context *c, struct rfl_traffic *t)
{
	int64_t label = rfl_dtype_bytes(RFL_DTYPE_I64);

	rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->in, c->value_bytes);
	rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->out, label);
	if (!c->needs_dgrad)
		return;
	rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->in, c->value_bytes);
	rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->out, label);
	rfl_cost_write(c, &t[RFL_PASS_DGRAD], c->in, c->value_bytes);
}

/* Tensors of the logits' size, then those of a number per row; places are int64. */
static void composed(struct rfl_cost_context *c, struct rfl_traffic *t)
{
	int64_t v = c->value_bytes, place = rfl_dtype_bytes(RFL_DTYPE_I64);

	rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->in, 6 * v);
	rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->in, 4 * v);
	rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->out, 5 * v + place);  /* labels */
	rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, 4 * v + place); /* maxima */
	if (!c->needs_dgrad)
		return;
	rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->in, 10 * v);
	rfl_cost_write(c, &t[RFL_PASS_DGRAD], c->in, 8 * v);
	rfl_cost_read(c, &t[RFL_PASS_DGRAD], c->out, 5 * v + 2 * place);
	rfl_cost_write(c, &t[RFL_PASS_DGRAD], c->out, 6 * v);
}

static void cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];

	elementwise(c, cost->elementwise);
	fused(c, cost->traffic[RFL_FUSION_FUSED]);
	if (c->loss == RFL_LOSS_COMPOSED) {
		composed(c, u);
		return;
	}
	fused(c, u);
	rfl_cost_write(c, &u[RFL_PASS_FORWARD], c->in, c->value_bytes); /* log-probabilities */
	if (!c->needs_dgrad)
		return;
	rfl_cost_write(c, &u[RFL_PASS_DGRAD], c->in, c->value_bytes); /* and their gradient */
	rfl_cost_read(c, &u[RFL_PASS_DGRAD], c->in, c->value_bytes);
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
