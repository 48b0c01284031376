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
 * the size of the logits have two readers each (2 C add); the mean divides once.
 *
 * Traffic of the composed form, in tensors of the size of the logits, as moved by PyTorch's
 * kernels: forward 6 reads (maximum, two differences, exponential, sum, sign change), 4 writes;
 * dgrad 10 reads, 8 writes (zeros, three sign changes, two row sums, the product, two additions).
 * At the fused level, both forms write nothing forward and read the logits again in dgrad.
 *
 * The mean of n outputs is n - 1 add and 1 special; dgrad is one number in every place.
 */
#include "complexity/op/parts.h"

static enum rfl_rc infer(const struct rfl_node *node, const struct rfl_shape *in,
			 struct rfl_shape *out, struct rfl_err *err)
{
	(void)node;
	(void)err;
	*out = (struct rfl_shape){ .ndim = 1, .dim = { in->ndim == 2 ? in->dim[0] : 1 } };
	return RFL_OK;
}

static void cost(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	struct rfl_traffic *u = cost->traffic[RFL_FUSION_UNFUSED];
	struct rfl_traffic *f = cost->traffic[RFL_FUSION_FUSED];
	struct rfl_elementwise *e = cost->elementwise;
	int64_t rows = c->out, n = c->in, v = c->value_bytes;
	int64_t place = rfl_dtype_bytes(RFL_DTYPE_I64); /* label or position of a maximum */
	bool composed = c->loss == RFL_LOSS_COMPOSED;

	if (c->loss == RFL_LOSS_MEAN) {
		e[RFL_PASS_FORWARD] = (struct rfl_elementwise){ .add = n - 1, .special = 1 };
		for (int level = RFL_FUSION_UNFUSED; level <= RFL_FUSION_FUSED; level++) {
			rfl_cost_read(c, &cost->traffic[level][RFL_PASS_FORWARD], n, v);
			if (c->needs_dgrad)
				rfl_cost_write(c, &cost->traffic[level][RFL_PASS_DGRAD], n, v);
		}
		return;
	}
	e[RFL_PASS_FORWARD] = (struct rfl_elementwise){
		.add = 3 * n - 1, /* 3 n - rows, then rows - 1 */
		.compare = n - rows,
		.special = n + rows + 1,
	};
	rfl_cost_read(c, &f[RFL_PASS_FORWARD], n, v);
	rfl_cost_read(c, &f[RFL_PASS_FORWARD], rows, place);
	if (composed) {
		rfl_cost_move(c, &u[RFL_PASS_FORWARD], n, 6 * v, n, 4 * v);
		rfl_cost_move(c, &u[RFL_PASS_FORWARD], rows, 5 * v + place, rows, 4 * v + place);
	} else { /* log-probabilities */
		rfl_cost_move(c, &u[RFL_PASS_FORWARD], n, v, n, v);
		rfl_cost_read(c, &u[RFL_PASS_FORWARD], rows, place);
	}
	if (!c->needs_dgrad)
		return;
	rfl_cost_move(c, &f[RFL_PASS_DGRAD], n, v, n, v);
	rfl_cost_read(c, &f[RFL_PASS_DGRAD], rows, place);
	e[RFL_PASS_DGRAD].mul = n;
	if (composed) {
		e[RFL_PASS_DGRAD].add = 4 * n - 2 * rows;
		e[RFL_PASS_DGRAD].special = rows + 1;
		rfl_cost_move(c, &u[RFL_PASS_DGRAD], n, 10 * v, n, 8 * v);
		rfl_cost_move(c, &u[RFL_PASS_DGRAD], rows, 5 * v + 2 * place, rows, 6 * v);
	} else { /* the gradient of the log-probabilities, then that of the logits */
		e[RFL_PASS_DGRAD].add = rows;
		e[RFL_PASS_DGRAD].special = n;
		rfl_cost_move(c, &u[RFL_PASS_DGRAD], n, 2 * v, n, 2 * v);
		rfl_cost_read(c, &u[RFL_PASS_DGRAD], rows, place);
	}
}

/* Save the log-probabilities. Composed, the maximum saves positions, the exponential its result,
 * the logarithm its input sums, and the label selection the negated log-probabilities. Under
 * autocast, all of it runs in F32, which is then the type of the parameters. */
static void saved(struct rfl_cost_context *c, struct rfl_op_saves *out)
{
	int64_t size = c->param_bytes;

	if (!c->needs_dgrad || c->loss == RFL_LOSS_MEAN)
		return;
	rfl_op_save(c, RFL_SAVED_INTERNAL, c->in, size, out);
	if (c->loss == RFL_LOSS_FUSED)
		return;
	rfl_op_save(c, RFL_SAVED_INTERNAL, c->in, size, out);
	rfl_op_save(c, RFL_SAVED_INDICES, c->out, rfl_dtype_bytes(RFL_DTYPE_I64), out);
	rfl_op_save(c, RFL_SAVED_STATISTICS, c->out, size, out);
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
