/*
 * engine_graph.c - a whole step recorded once and replayed as one piece of work: what CUDA
 * calls a graph. Its kernels read and write the addresses that they had when they were recorded, so
 * inputs are copied to where it reads, and gradients stay where it made them.
 */
#include "runner/torch/engine_device.h"
#include "runner/torch/graph_rules.h"

static void drop(struct rfl_torch_tensor **t)
{
	rfl_torch_tensor_free(*t);
	*t = NULL;
}

void rfl_torch__graph_forget(struct rfl_engine *e)
{
	struct rfl_torch__recording *r = &e->device->recording;

	rfl_torch_graph_free(r->graph);
	drop(&r->reads.input);
	drop(&r->reads.labels);
	drop(&r->loss);
	drop(&r->logits);
	*r = (struct rfl_torch__recording){ .graph = NULL };
}

/* ------------------------------------------------------------------ recording */

static enum rfl_rc check_recordable(const struct rfl_engine *e, bool backward, bool step,
				    struct rfl_err *err)
{
	const struct rfl_graph_facts facts = {
		.missing = rfl_torch_graph_missing(e->device->on),
		.step = step,
		.rule = e->config.optimizer.rule,
		.fused = e->fused,
		.scaled =
			rfl_precision_cast(e->config.precision, e->config.device) == RFL_CAST_FP16,
		.marked = e->marks.fn != NULL,
		.exchanged = e->group != NULL,
		.steps = e->device->steps,
		.updates = e->updates,
	};
	const char *why;

	if (step && !backward)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: a step needs a backward before it");
	if (backward && e->mode == RFL_ENGINE_EVAL)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: backward needs a training mode");
	why = rfl_graph_refusal(&facts);
	if (!why)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: a step cannot be recorded: %s", why);
}

/* Memory of the recording's own, in the form that the first node wants. */
static enum rfl_rc make_inputs(struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_torch__copy *ret, struct rfl_err *err)
{
	struct rfl_torch_tensor *input = NULL, *labels = NULL;
	enum rfl_rc rc = rfl_torch__take_batch(e, batch, &input, &labels, err);

	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_tensor_clone(input, &ret->input), "inputs", err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_tensor_clone(labels, &ret->labels), "labels", err);
	rfl_torch_tensor_free(input);
	rfl_torch_tensor_free(labels);
	return rc;
}

static enum rfl_rc ask_for_step(struct rfl_engine *e, const struct rfl_torch__recording *r,
				struct rfl_err *err)
{
	struct rfl_torch_tensor *input = NULL;
	enum rfl_rc rc =
		rfl_torch__check(rfl_torch_tensor_dup(r->reads.input, &input), "inputs", err);

	if (rc == RFL_OK)
		rc = rfl_torch__forward_on(e, input, r->reads.labels, NULL, NULL, err);
	if (rc == RFL_OK && r->backward)
		rc = rfl_torch__backward(e, NULL, err);
	if (rc == RFL_OK && r->step)
		rc = rfl_torch__step(e, err);
	return rc;
}

/* What the recording left without computing it: no one may take it for results. */
static void clean_up(struct rfl_engine *e)
{
	rfl_torch__forget_step(e);
	(void)rfl_torch__zero_grad(e, NULL);
	rfl_torch__graph_forget(e);
}

/* Between begin and end nothing may wait for the device, and end comes whatever happened. */
static enum rfl_rc record(struct rfl_engine *e, struct rfl_torch__recording *r, struct rfl_err *err)
{
	enum rfl_rc rc =
		rfl_torch__check(rfl_torch_graph_begin(e->device->on, &r->graph), "recording", err);
	enum rfl_torch_status ended;

	if (rc != RFL_OK)
		return rc;
	rc = ask_for_step(e, r, err);
	ended = rfl_torch_graph_end(r->graph);
	if (rc == RFL_OK)
		rc = rfl_torch__check(ended, "recording", err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_tensor_dup(e->loss, &r->loss), "loss", err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_tensor_dup(e->logits, &r->logits), "logits", err);
	return rc;
}

enum rfl_rc rfl_torch__capture(struct rfl_engine *e, const struct rfl_batch *batch, bool backward,
			       bool step, struct rfl_err *err)
{
	struct rfl_torch__recording *r = &e->device->recording;
	enum rfl_rc rc = check_recordable(e, backward, step, err);

	if (rc != RFL_OK)
		return rc;
	clean_up(e); /* gradients are to be made by the recording, in its own memory */
	r->batch = *batch;
	r->backward = backward;
	r->step = step;
	rc = make_inputs(e, batch, &r->reads, err);
	if (rc == RFL_OK)
		rc = record(e, r, err);
	e->can_backward = e->has_grads = false;
	if (rc == RFL_OK)
		return RFL_OK;
	clean_up(e);
	if (rc == RFL_EDEVMEM)
		return rc;
	if (err) {
		err->rc = RFL_EUNSUPPORTED;
		rfl_err_prefix(err, "torch: a step cannot be recorded");
	}
	return RFL_EUNSUPPORTED;
}

/* ------------------------------------------------------------------ replaying */

/* The values of a batch to where the recording reads them, unless they are there. */
static enum rfl_rc fill_inputs(struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err)
{
	struct rfl_torch__recording *r = &e->device->recording;
	struct rfl_torch_tensor *input = NULL, *labels = NULL;
	enum rfl_rc rc;

	if (batch->id != 0 && batch->id == r->batch.id && batch->images == r->batch.images)
		return RFL_OK;
	r->batch.id = 0;
	rc = rfl_torch__take_batch(e, batch, &input, &labels, err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_tensor_copy(r->reads.input, input), "inputs", err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_tensor_copy(r->reads.labels, labels), "labels",
				      err);
	if (rc == RFL_OK)
		r->batch = *batch;
	rfl_torch_tensor_free(input);
	rfl_torch_tensor_free(labels);
	return rc;
}

enum rfl_rc rfl_torch__replay(struct rfl_engine *e, const struct rfl_batch *batch,
			      struct rfl_err *err)
{
	struct rfl_torch__recording *r = &e->device->recording;
	enum rfl_rc rc;

	if (!r->graph)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: replay needs a recorded step");
	if (batch->n != r->batch.n || batch->kind != r->batch.kind)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: the recorded step is of %lld samples, not %lld",
				(long long)r->batch.n, (long long)batch->n);
	rc = fill_inputs(e, batch, err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_graph_replay(r->graph), "replay", err);
	if (rc != RFL_OK)
		return rc;
	rfl_torch__forget_step(e);
	rc = rfl_torch__check(rfl_torch_tensor_dup(r->loss, &e->loss), "loss", err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_tensor_dup(r->logits, &e->logits), "logits", err);
	e->has_grads = rc == RFL_OK && r->backward && !r->step;
	return rc;
}
