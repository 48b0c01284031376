/*
 * engine_torch.c - the torch engine: executes a net with libtorch through the C shim. Life and
 * training step; parameters are in engine_torch_params.c, what each operation calls is in
 * engine_torch_run.c, snapshots and marks are in engine_torch_state.c.
 *
 * It computes on the CPU in fp32. Parameters lie in one block of memory that the tensors are views
 * of; images and labels are used where the caller has them. A step does what the same loop in
 * Python does, no more: operations, autograd, SGD.
 */
#include "runner/engine_torch.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const struct rfl_engine_ops torch_ops;

enum rfl_rc rfl_torch__check(enum rfl_torch_status status, const char *what, struct rfl_err *err)
{
	switch (status) {
	case RFL_TORCH_OK:
		return RFL_OK;
	case RFL_TORCH_NOMEM:
		return rfl_fail(err, RFL_EDEVMEM, 0, "torch: %s: out of memory: %s", what,
				rfl_torch_error());
	case RFL_TORCH_FAILED:
		break;
	}
	return rfl_fail(err, RFL_EFAILED, 0, "torch: %s: %s", what, rfl_torch_error());
}

/* ------------------------------------------------------------------ what it can do */

static enum rfl_rc probe(enum rfl_device device, struct rfl_err *err)
{
	if (device == RFL_DEVICE_CPU)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"the torch engine runs on the CPU only; use --backend cpu");
}

static enum rfl_rc check_config(const struct rfl_net *net, const struct rfl_engine_config *config,
				struct rfl_err *err)
{
	enum rfl_rc rc = probe(config->device, err);

	if (rc != RFL_OK)
		return rc;
	if (config->threads < 1 || config->max_batch < 1)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: threads and batch must be at least 1, not %d and %lld",
				config->threads, (long long)config->max_batch);
	for (int i = 0; i < net->nnodes; i++) {
		const char *why = rfl_torch__unsupported_node(&net->nodes[i], config->precision);

		if (why)
			return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: layer '%s': %s",
					net->nodes[i].name, why);
	}
	return RFL_OK;
}

/* ------------------------------------------------------------------ life */

static void close_engine(struct rfl_engine *e)
{
	if (!e)
		return;
	rfl_torch__state_fini(e);
	rfl_torch_tensor_free(e->loss);
	rfl_torch_tensor_free(e->logits);
	rfl_torch__params_fini(e);
	free(e->param);
	free(e->param_data);
	free(e->value);
	free(e->last_use);
	free(e->description);
	free(e);
}

static enum rfl_rc alloc_engine(const struct rfl_net *net, struct rfl_engine **ret,
				struct rfl_err *err)
{
	const size_t nodes = (size_t)net->nnodes, params = (size_t)net->nparams;
	struct rfl_engine *e = calloc(1, sizeof(*e));

	if (e) {
		e->ops = &torch_ops;
		e->net = net;
		e->param = rfl_alloc_array(params, sizeof(struct rfl_torch_tensor *));
		e->param_data = rfl_alloc_array(params, sizeof(*e->param_data));
		e->value = rfl_alloc_array(nodes, sizeof(struct rfl_torch_tensor *));
		e->last_use = rfl_alloc_array(nodes, sizeof(*e->last_use));
	}
	if (!e || !e->param || !e->param_data || !e->value || !e->last_use) {
		close_engine(e);
		return rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
	}
	*ret = e;
	return RFL_OK;
}

/* libtorch's CPU allocator is malloc. Left alone, glibc gives the activations of a step back to the
 * system when the step ends and faults them in again in the next one: a hundred thousand page
 * faults per step of MobileNetV2. Freed memory stays with the process instead, large blocks
 * included. */
static void keep_freed_memory(void)
{
#ifdef __GLIBC__
	(void)mallopt(M_MMAP_MAX, 0);
	(void)mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

/* Threads first: the pools are made by the first operation. */
static enum rfl_rc set_up_library(const struct rfl_engine_config *config, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_torch__check(rfl_torch_set_threads(config->threads), "threads", err);

	keep_freed_memory();
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_set_deterministic(config->deterministic),
				      "determinism", err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_seed(config->seed), "seed", err);
	return rc;
}

static enum rfl_rc open_engine(const struct rfl_net *net, const struct rfl_engine_config *config,
			       struct rfl_engine **ret, struct rfl_err *err)
{
	struct rfl_engine *e = NULL;
	enum rfl_rc rc = check_config(net, config, err);

	if (rc == RFL_OK)
		rc = set_up_library(config, err);
	if (rc == RFL_OK)
		rc = alloc_engine(net, &e, err);
	if (rc != RFL_OK)
		goto done;
	e->config = *config;
	e->mode = RFL_ENGINE_TRAIN;
	rfl_torch__plan(e);
	rc = rfl_torch__map_params(e, err);
	if (rc == RFL_OK)
		rc = rfl_torch__make_params(e, err);
	if (rc == RFL_OK)
		rc = rfl_torch__make_sgd(e, err);
	if (rc != RFL_OK)
		goto done;
	*ret = e;
	e = NULL;
done:
	close_engine(e);
	return rc;
}

static enum rfl_rc set_mode(struct rfl_engine *e, enum rfl_engine_mode mode, struct rfl_err *err)
{
	(void)err;
	e->mode = mode;
	return RFL_OK;
}

static enum rfl_rc set_optimizer(struct rfl_engine *e, const struct rfl_optimizer *optimizer,
				 struct rfl_err *err)
{
	if (optimizer->rule != e->config.optimizer.rule)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: the engine was opened for %s",
				rfl_optimizer_rule_names[e->config.optimizer.rule]);
	e->config.optimizer = *optimizer;
	return RFL_OK;
}

/* ------------------------------------------------------------------ a step */

void rfl_torch__forget_step(struct rfl_engine *e)
{
	rfl_torch_tensor_free(e->loss);
	rfl_torch_tensor_free(e->logits);
	e->loss = e->logits = NULL;
	e->can_backward = false;
}

static enum rfl_rc zero_grad(struct rfl_engine *e, struct rfl_err *err)
{
	(void)err;
	rfl_torch_sgd_zero_grad(e->sgd);
	e->has_grads = false;
	return RFL_OK;
}

static enum rfl_rc check_batch(const struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err)
{
	if (batch->n >= 1 && batch->n <= e->config.max_batch)
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0, "torch: a batch has 1 to %lld samples, not %lld",
			(long long)e->config.max_batch, (long long)batch->n);
}

/* The caller's images, in the order of the engine: a copy only where the two differ. */
static enum rfl_rc wrap_images(const struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_torch_tensor **ret, struct rfl_err *err)
{
	const struct rfl_shape *s = &e->net->nodes[0].shape;
	const int64_t c = s->dim[0], h = s->dim[1], w = s->dim[2];
	const int64_t sizes[4] = { batch->n, c, h, w };
	const int64_t nhwc[4] = { c * h * w, 1, w * c, c };
	struct rfl_torch_tensor *given = NULL;
	enum rfl_torch_status status;

	status = rfl_torch_wrap_f32((float *)(uintptr_t)batch->images, 4, sizes,
				    batch->layout == RFL_LAYOUT_NHWC ? nhwc : NULL, 0, &given);
	if (status == RFL_TORCH_OK && batch->layout == e->config.layout) {
		*ret = given;
		return RFL_OK;
	}
	if (status == RFL_TORCH_OK)
		status = e->config.layout == RFL_LAYOUT_NHWC
				 ? rfl_torch_tensor_channels_last(given, ret)
				 : rfl_torch_tensor_contiguous(given, ret);
	rfl_torch_tensor_free(given);
	return rfl_torch__check(status, "images", err);
}

static enum rfl_rc make_loss(struct rfl_engine *e, const struct rfl_batch *batch,
			     struct rfl_err *err)
{
	struct rfl_torch_tensor *labels = NULL;
	enum rfl_torch_status status;

	status = rfl_torch_wrap_i64((int64_t *)(uintptr_t)batch->labels, batch->n, &labels);
	if (status == RFL_TORCH_OK)
		status = rfl_torch_cross_entropy(e->logits, labels, &e->loss);
	rfl_torch_tensor_free(labels);
	return rfl_torch__check(status, "loss", err);
}

static enum rfl_rc mark_if_asked(struct rfl_engine *e, int node, struct rfl_err *err)
{
	return e->marks.fn ? rfl_torch__mark_forward(e, node, err) : RFL_OK;
}

static enum rfl_rc forward_traced(struct rfl_engine *e, const struct rfl_batch *batch,
				  rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err)
{
	struct rfl_torch_tensor *image = NULL;
	enum rfl_rc rc = check_batch(e, batch, err);

	if (rc == RFL_OK)
		rc = mark_if_asked(e, 0, err);
	if (rc != RFL_OK)
		return rc;
	rfl_torch__forget_step(e); /* nothing of the last may be alive while this one allocates */
	rfl_torch_set_grad_mode(e->mode != RFL_ENGINE_EVAL);
	rc = wrap_images(e, batch, &image, err);
	if (rc == RFL_OK)
		rc = rfl_torch__run(e, image, fn, ctx, err);
	if (rc == RFL_OK)
		rc = mark_if_asked(e, e->net->nnodes, err);
	if (rc == RFL_OK)
		rc = make_loss(e, batch, err);
	rfl_torch_set_grad_mode(0);
	e->can_backward = rc == RFL_OK && e->mode != RFL_ENGINE_EVAL;
	return rc;
}

static enum rfl_rc forward(struct rfl_engine *e, const struct rfl_batch *batch, struct rfl_err *err)
{
	return forward_traced(e, batch, NULL, NULL, err);
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

static enum rfl_rc backward(struct rfl_engine *e, const struct rfl_backward *how,
			    struct rfl_err *err)
{
	enum rfl_rc rc;

	if (!e->can_backward)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: backward needs a forward in a training mode before it");
	if (how && how->weight != 1)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: a loss counts once");
	e->can_backward = false;
	rc = e->marks.fn ? rfl_torch__mark_backward(e, e->net->nnodes, err) : RFL_OK;
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_backward(e->loss), "backward", err);
	if (rc == RFL_OK && e->marks.failure.rc != RFL_OK)
		rc = rfl_fail(err, e->marks.failure.rc, e->marks.failure.native, "%s",
			      e->marks.failure.msg);
	e->has_grads = rc == RFL_OK;
	if (rc == RFL_OK)
		rc = detach(&e->loss, err);
	if (rc == RFL_OK)
		rc = detach(&e->logits, err);
	return rc;
}

static enum rfl_rc step(struct rfl_engine *e, struct rfl_err *err)
{
	const struct rfl_optimizer *sgd = &e->config.optimizer;

	if (!e->has_grads)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: step needs a backward before it");
	e->has_grads = false;
	return rfl_torch__check(
		rfl_torch_sgd_step(e->sgd, sgd->lr, sgd->momentum, sgd->weight_decay), "step", err);
}

static enum rfl_rc reset_optimizer(struct rfl_engine *e, struct rfl_err *err)
{
	(void)err;
	rfl_torch_sgd_reset(e->sgd);
	e->has_grads = false;
	return RFL_OK;
}

static enum rfl_rc get_loss(struct rfl_engine *e, double *ret, struct rfl_err *err)
{
	if (!e->loss)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: no loss before the first forward");
	return rfl_torch__check(rfl_torch_tensor_item(e->loss, ret), "loss", err);
}

static enum rfl_rc get_logits(struct rfl_engine *e, float *out, int64_t numel, struct rfl_err *err)
{
	if (!e->logits)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: no logits before the first forward");
	return rfl_torch__check(rfl_torch_tensor_read(e->logits, out, numel), "logits", err);
}

/* ------------------------------------------------------------------ the record */

static enum rfl_rc sync_engine(struct rfl_engine *e, struct rfl_err *err)
{
	(void)e;
	(void)err;
	return RFL_OK; /* the CPU computes before it returns */
}

static enum rfl_rc memory(struct rfl_engine *e, struct rfl_engine_memory *ret, struct rfl_err *err)
{
	(void)e;
	(void)err;
	/* libtorch's CPU allocator is malloc and keeps no account. */
	*ret = (struct rfl_engine_memory){
		.allocated_peak_bytes = NAN,
		.reserved_peak_bytes = NAN,
	};
	return RFL_OK;
}

static const char *describe(struct rfl_engine *e)
{
	static const char format[] =
		"libtorch %s (built against %s, %s), %d threads, SGD by %s operations\n%s";
	const char *library = rfl_torch_describe();
	const int threads = rfl_torch_get_threads();
	size_t size;

	if (e->description)
		return e->description;
	size = sizeof(format) + strlen(library) + 128;
	e->description = malloc(size);
	if (!e->description)
		return "";
	(void)snprintf(e->description, size, format, rfl_torch_library_version(),
		       rfl_torch_built_version(), RFL_TORCH_VARIANT, threads, rfl_torch_sgd_kind(),
		       library);
	return e->description;
}

static const struct rfl_engine_ops torch_ops = {
	.name = "torch",
	.version = RFL_TORCH_VERSION,
	.variant = RFL_TORCH_VARIANT,
	.summary = "PyTorch's operations and autograd, by libtorch",
	.probe = probe,
	.library_version = rfl_torch_library_version,
	.unsupported = rfl_torch__unsupported,
	.open = open_engine,
	.close = close_engine,
	.set_mode = set_mode,
	.set_optimizer = set_optimizer,
	.zero_grad = zero_grad,
	.forward = forward,
	.forward_traced = forward_traced,
	.backward = backward,
	.step = step,
	.reset_optimizer = reset_optimizer,
	.loss = get_loss,
	.logits = get_logits,
	.set_param = rfl_torch__set_param,
	.get_param = rfl_torch__get_param,
	.get_grad = rfl_torch__get_grad,
	.param_data = rfl_torch__param_data,
	.sync = sync_engine,
	.memory = memory,
	.snapshot = rfl_torch__snapshot,
	.restore = rfl_torch__restore,
	.mark = rfl_torch__mark,
	.describe = describe,
};

RFL_EXPORT const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi);

RFL_EXPORT const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi)
{
	return abi == RFL_ENGINE_ABI ? &torch_ops : NULL;
}
