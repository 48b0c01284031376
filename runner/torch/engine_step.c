/*
 * engine_step.c - one training step of the torch engine: forward and loss, backward, update.
 */
#include <math.h>

#include "runner/torch/engine_parts.h"
#include "runner/torch/shim_precision.h"

void rfl_torch__forget_step(struct rfl_engine *e)
{
	rfl_torch_tensor_free(e->loss);
	rfl_torch_tensor_free(e->logits);
	e->loss = e->logits = NULL;
	e->can_backward = false;
}

enum rfl_rc rfl_torch__zero_grad(struct rfl_engine *e, struct rfl_err *err)
{
	(void)err;
	rfl_torch_optim_zero_grad(e->optim);
	e->has_grads = false;
	return RFL_OK;
}

static enum rfl_rc mark_if_asked(struct rfl_engine *e, int node, struct rfl_err *err)
{
	return e->marks.fn ? rfl_torch__mark_forward(e, node, err) : RFL_OK;
}

enum rfl_rc rfl_torch__forward_on(struct rfl_engine *e, struct rfl_torch_tensor *take_input,
				  const struct rfl_torch_tensor *labels, rfl_engine_trace_fn fn,
				  void *ctx, struct rfl_err *err)
{
	enum rfl_rc rc, end;

	rfl_torch_set_grad_mode(e->mode != RFL_ENGINE_EVAL);
	rc = rfl_torch__check(rfl_torch_cast_begin(e->config.device, e->cast), "autocast", err);
	if (rc == RFL_OK)
		rc = rfl_torch__run(e, take_input, fn, ctx, err);
	else
		rfl_torch_tensor_free(take_input);
	if (rc == RFL_OK)
		rc = mark_if_asked(e, e->net->nnodes, err);
	if (rc == RFL_OK)
		rc = rfl_torch__make_loss(e, labels, err);
	end = rfl_torch__check(rfl_torch_cast_end(e->config.device, e->cast), "autocast",
			       rc == RFL_OK ? err : NULL);
	rc = rc == RFL_OK ? end : rc;
	rfl_torch_set_grad_mode(0);
	e->can_backward = rc == RFL_OK && e->mode != RFL_ENGINE_EVAL;
	return rc;
}

enum rfl_rc rfl_torch__forward_traced(struct rfl_engine *e, const struct rfl_batch *batch,
				      rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err)
{
	struct rfl_torch_tensor *input = NULL, *labels = NULL;
	enum rfl_rc rc = mark_if_asked(e, 0, err);

	if (rc != RFL_OK)
		return rc;
	rfl_torch__forget_step(e); /* nothing of the last may be alive while this one allocates */
	rc = rfl_torch__take_batch(e, batch, &input, &labels, err);
	if (rc == RFL_OK)
		rc = rfl_torch__forward_on(e, input, labels, fn, ctx, err);
	rfl_torch_tensor_free(labels);
	return rc;
}

enum rfl_rc rfl_torch__forward(struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err)
{
	return rfl_torch__forward_traced(e, batch, NULL, NULL, err);
}

/* Values stay readable; the recorded history goes. */
static enum rfl_rc detach(struct rfl_torch_tensor **t, struct rfl_err *err)
{
	struct rfl_torch_tensor *plain = NULL;
	enum rfl_rc rc = rfl_torch__check(rfl_torch_tensor_detach(*t, &plain), "detach", err);

	if (rc != RFL_OK)
		return rc;
	rfl_torch_tensor_free(*t);
	*t = plain;
	return RFL_OK;
}

enum rfl_rc rfl_torch__backward(struct rfl_engine *e, const struct rfl_backward *how,
				struct rfl_err *err)
{
	enum rfl_rc rc;

	if (!e->can_backward)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: backward needs a forward in a training mode before it");
	e->can_backward = false;
	rc = e->marks.fn ? rfl_torch__mark_backward(e, e->net->nnodes, err) : RFL_OK;
	if (rc == RFL_OK)
		rc = rfl_torch__exchange_begin(e, how, err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(
			rfl_torch_optim_backward(e->optim, e->loss, how ? how->weight : 1),
			"backward", err);
	if (rc == RFL_OK && e->marks.failure.rc != RFL_OK)
		rc = rfl_fail(err, e->marks.failure.rc, e->marks.failure.native, "%s",
			      e->marks.failure.msg);
	if (rc == RFL_OK)
		rc = rfl_torch__exchange_finish(e, how, err);
	e->has_grads = rc == RFL_OK;
	if (rc == RFL_OK)
		rc = detach(&e->loss, err);
	if (rc == RFL_OK)
		rc = detach(&e->logits, err);
	return rc;
}

enum rfl_rc rfl_torch__step(struct rfl_engine *e, struct rfl_err *err)
{
	if (!e->has_grads)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: step needs a backward before it");
	e->has_grads = false;
	e->updates++;
	return rfl_torch__check(rfl_torch_optim_step(e->optim, &e->config.optimizer), "step", err);
}

enum rfl_rc rfl_torch__reset_optimizer(struct rfl_engine *e, struct rfl_err *err)
{
	e->has_grads = false;
	e->updates = 0;
	rfl_torch__graph_forget(e);
	return rfl_torch__check(rfl_torch_optim_reset(e->optim), "optimizer", err);
}

enum rfl_rc rfl_torch__scaling(struct rfl_engine *e, struct rfl_loss_scaling *ret,
			       struct rfl_err *err)
{
	if (!e->scaled || e->mode == RFL_ENGINE_EVAL) { /* no gradients, nothing to scale */
		*ret = (struct rfl_loss_scaling){ .scale = (double)NAN, .skipped = -1 };
		return RFL_OK;
	}
	return rfl_torch__check(rfl_torch_optim_scaling(e->optim, &ret->scale, &ret->skipped),
				"scale", err);
}

enum rfl_rc rfl_torch__loss(struct rfl_engine *e, double *ret, struct rfl_err *err)
{
	if (!e->loss)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: no loss before the first forward");
	return rfl_torch__check(rfl_torch_tensor_item(e->loss, ret), "loss", err);
}

enum rfl_rc rfl_torch__logits(struct rfl_engine *e, float *out, int64_t numel, struct rfl_err *err)
{
	if (!e->logits)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: no logits before the first forward");
	return rfl_torch__check(rfl_torch_tensor_read(e->logits, out, numel), "logits", err);
}
