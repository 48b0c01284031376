/*
 * loss.c - mean cross entropy of logits against class indices. The zoo's networks end at their
 * logits; the counter adds this operation to a training step.
 *
 * N rows of C logits, computed as log_softmax and the mean of the selected values: per row, the
 * maximum (C - 1 compares), x - max (C add), exponentials (C special), their sum (C - 1 add), its
 * logarithm (1 special) and x - max - log (C add); then N - 1 add and 1 special (division). dgrad,
 * (softmax - onehot) / N: per row, C special (exponentials again), C mul, and 1 add at the label.
 *
 * Composed, every step is a separate operation, forward as above. dgrad proceeds step by step with
 * the tensors kept by autograd: each subtrahend needs the row sums of its gradient (twice C - 1
 * add), the logarithm divides (1 special), the exponential multiplies (C mul), and two tensors of
 * the size of the logits have two readers each (2 C add); the mean divides once. PyTorch's kernels
 * read 6 tensors of the size of the logits and write 4 forward (maximum, two differences,
 * exponential, sum, sign change), 10 and 8 backward (zeros, three sign changes, two row sums, the
 * product, two additions).
 */
#include "complexity/op/parts.h"

static enum rfl_rc infer(struct rfl_op_shapes *s)
{
	*s->out = (struct rfl_shape){ .ndim = 1, .dim = { s->in->ndim == 2 ? s->in->dim[0] : 1 } };
	return RFL_OK;
}

static void cost(struct rfl_cost_context *c)
{
	int64_t rows = c->out, n = c->in, v = c->value_bytes;
	int64_t place = rfl_dtype_bytes(RFL_DTYPE_I64); /* label or position of a maximum */
	bool composed = c->loss == RFL_LOSS_COMPOSED;

	if (c->loss == RFL_LOSS_MEAN) {
		rfl_op_count(c, FORWARD, .add = n - 1, .special = 1);
		rfl_op_move(c, FORWARD, n, 0);
		rfl_op_move(c, DGRAD, 0, n);
		rfl_op_fuse_not(c);
		return;
	}
	rfl_op_count(c, FORWARD, .add = 3 * n - 1, /* 3 n - rows, then rows - 1 */
		     .compare = n - rows, .special = n + rows + 1);
	rfl_op_move_at(c, FUSED, FORWARD, n, v, 0, 0);
	rfl_op_move_at(c, FUSED, FORWARD, rows, place, 0, 0);
	rfl_op_move_at(c, FUSED, DGRAD, n, v, n, v);
	rfl_op_move_at(c, FUSED, DGRAD, rows, place, 0, 0);
	if (composed) {
		rfl_op_count(c, DGRAD, .add = 4 * n - 2 * rows, .mul = n, .special = rows + 1);
		rfl_op_move_at(c, UNFUSED, FORWARD, n, 6 * v, n, 4 * v);
		rfl_op_move_at(c, UNFUSED, FORWARD, rows, 5 * v + place, rows, 4 * v + place);
		rfl_op_move_at(c, UNFUSED, DGRAD, n, 10 * v, n, 8 * v);
		rfl_op_move_at(c, UNFUSED, DGRAD, rows, 5 * v + 2 * place, rows, 6 * v);
		return;
	}
	/* forward: log-probabilities; backward: their gradient, then the gradient of the logits */
	rfl_op_count(c, DGRAD, .add = rows, .mul = n, .special = n);
	rfl_op_move(c, FORWARD, n, n);
	rfl_op_move_at(c, UNFUSED, FORWARD, rows, place, 0, 0);
	rfl_op_move(c, DGRAD, 2 * n, 2 * n);
	rfl_op_move_at(c, UNFUSED, DGRAD, rows, place, 0, 0);
}

/* Save the log-probabilities. Composed, the maximum saves positions, the exponential its result,
 * the logarithm its input sums, and the label selection the negated log-probabilities. Under
 * autocast, all of it runs in F32, which is then the type of the parameters. */
static void saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	int64_t size = c->param_bytes;

	if (!c->needs_dgrad || c->loss == RFL_LOSS_MEAN)
		return;
	rfl_op_save(c, RFL_SAVED_CLASS_LOSS, c->in, size, out);
	if (c->loss == RFL_LOSS_FUSED)
		return;
	rfl_op_save(c, RFL_SAVED_CLASS_LOSS, c->in, size, out);
	rfl_op_save(c, RFL_SAVED_CLASS_LOSS, c->out, rfl_dtype_bytes(RFL_DTYPE_I64), out);
	rfl_op_save(c, RFL_SAVED_CLASS_LOSS, c->out, size, out);
}

/* Forward, composed: at most three tensors of the size of the logits exist besides them: x - max,
 * its exponential and the log-probabilities, then the latter two and their negation. Backward,
 * fused: the gradient of the log-probabilities exists while that of the logits is computed.
 * Backward, composed: saved tensors are released as gradients are computed. */
static void scratch(struct rfl_cost_context *c, struct rfl_op_scratch *out)
{
	int64_t logits = rfl_cost_mul(c, c->in, c->param_bytes);
	bool composed = c->loss == RFL_LOSS_COMPOSED;

	out->forward = composed ? logits : 0;
	out->backward = c->needs_dgrad && c->loss == RFL_LOSS_FUSED ? logits : 0;
}

RFL_OP(cross_entropy, "CrossEntropyLoss", "NllLossBackward0", .min_dims = 1, .max_dims = 2,
       .needs = "logits of {classes} or {rows, classes}", .infer = infer, .cost = cost,
       .autocast = RFL_AUTOCAST_F32, .saved = saved, .scratch = scratch);
