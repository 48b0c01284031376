/*
 * engine.c - the torch engine: executes a net with libtorch through the C shim. What it can
 * do, its life, what it says of itself; engine_parts.h says what the other files are for.
 *
 * Parameters lie in one block of memory that the tensors are parts of; on the CPU inputs and labels
 * are used where the caller has them. A step does what the same loop in Python does, no more.
 */
#include "runner/torch/engine_parts.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runner/torch/shim_precision.h"

static const struct rfl_engine_ops torch_ops;

enum rfl_rc rfl_torch__check(enum rfl_torch_status status, const char *what, struct rfl_err *err)
{
	switch (status) {
	case RFL_TORCH_OK:
		return RFL_OK;
	case RFL_TORCH_NOMEM:
		return rfl_fail(err, RFL_EDEVMEM, 0, "torch: %s: out of memory: %s", what,
				rfl_torch_error());
	case RFL_TORCH_UNSUPPORTED:
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: %s: %s", what, rfl_torch_error());
	case RFL_TORCH_FAILED:
		break;
	}
	return rfl_fail(err, RFL_EFAILED, 0, "torch: %s: %s", what, rfl_torch_error());
}

/* ------------------------------------------------------------------ what it can do */

static enum rfl_rc check_precision(const struct rfl_engine_config *config, struct rfl_err *err)
{
	const enum rfl_cast cast = rfl_precision_cast(config->precision, config->device);
	const char *missing = rfl_torch_cast_missing(config->device, cast);

	if (config->precision == RFL_PRECISION_TF32 && config->device != RFL_DEVICE_CUDA)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: tf32 is a mode of NVIDIA GPUs' matrix units and does not "
				"exist on %s; use fp32 or bf16",
				rfl_device_names[config->device]);
	if (missing)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: %s: %s (this is %s)",
				rfl_precision_names[config->precision], missing,
				rfl_torch_built_version());
	if (cast == RFL_CAST_FP16 && rfl_torch_scaling_since(config->device))
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: fp16 needs loss scaling, which libtorch has on %s from %s "
				"on (this is %s)",
				rfl_device_names[config->device],
				rfl_torch_scaling_since(config->device), rfl_torch_built_version());
	return RFL_OK;
}

/* Which kernels the updates take. */
static enum rfl_rc choose_kernels(const struct rfl_engine_config *config, bool *fused,
				  struct rfl_err *err)
{
	const struct rfl_optimizer *o = &config->optimizer;
	const char *since = rfl_torch_fused_since(o->rule, config->device);

	*fused = o->kernels != RFL_KERNELS_FOREACH && !since;
	if (o->kernels != RFL_KERNELS_FUSED || !since)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNSUPPORTED, 0,
			"torch: this libtorch (%s) has no fused %s on %s: %s is the first that "
			"has; use foreach or auto",
			rfl_torch_built_version(), rfl_optimizer_rule_names[o->rule],
			rfl_device_names[config->device], since);
}

static enum rfl_rc check_config(const struct rfl_net *net, const struct rfl_engine_config *config,
				struct rfl_err *err)
{
	bool fused;
	enum rfl_rc rc = rfl_torch__device_probe(config->device, err);

	if (rc == RFL_OK)
		rc = check_precision(config, err);
	if (rc == RFL_OK)
		rc = choose_kernels(config, &fused, err);
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
	rfl_torch__leave(e);
	rfl_torch__state_fini(e);
	rfl_torch_tensor_free(e->loss);
	rfl_torch_tensor_free(e->logits);
	rfl_torch__run_fini(e);
	rfl_torch__params_fini(e);
	rfl_torch__device_close(e);
	free(e->param);
	free(e->offset);
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
		e->offset = rfl_alloc_array(params, sizeof(*e->offset));
		e->value = rfl_alloc_array(nodes, sizeof(struct rfl_torch_tensor *));
		e->last_use = rfl_alloc_array(nodes, sizeof(*e->last_use));
	}
	if (!e || !e->param || !e->offset || !e->value || !e->last_use) {
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
	const struct rfl_torch_switches switches = {
		.deterministic = config->deterministic,
		.cudnn_benchmark = config->cudnn_benchmark,
		.tf32 = config->precision == RFL_PRECISION_TF32,
	};
	enum rfl_rc rc = rfl_torch__check(rfl_torch_set_threads(config->threads), "threads", err);

	keep_freed_memory();
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_set_switches(&switches), "switches", err);
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
	e->cast = rfl_precision_cast(config->precision, config->device);
	e->scaled = e->cast == RFL_CAST_FP16;
	rc = choose_kernels(config, &e->fused, err);
	if (rc != RFL_OK)
		goto done;
	rfl_torch__plan(e);
	rc = rfl_torch__device_open(e, err);
	if (rc == RFL_OK)
		rc = rfl_torch__make_params(e, err);
	if (rc == RFL_OK)
		rc = rfl_torch__make_optimizer(e, err);
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
	if (e->mode != mode)
		rfl_torch__graph_forget(e);
	e->mode = mode;
	return RFL_OK;
}

static enum rfl_rc set_optimizer(struct rfl_engine *e, const struct rfl_optimizer *optimizer,
				 struct rfl_err *err)
{
	if (optimizer->rule != e->config.optimizer.rule)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: the engine was opened for %s",
				rfl_optimizer_rule_names[e->config.optimizer.rule]);
	if (optimizer->kernels != e->config.optimizer.kernels)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: the engine was opened for %s kernels",
				rfl_optimizer_kernels_names[e->config.optimizer.kernels]);
	rfl_torch__graph_forget(e); /* the numbers are part of its kernels */
	e->config.optimizer = *optimizer;
	return RFL_OK;
}

/* ------------------------------------------------------------------ the record */

static const char *optimizer_kernels(struct rfl_engine *e)
{
	return rfl_optimizer_kernels_names[e->fused ? RFL_KERNELS_FUSED : RFL_KERNELS_FOREACH];
}

static const char *describe(struct rfl_engine *e)
{
	static const char format[] =
		"libtorch %s (built against %s, %s), %d threads, %s by %s operations\n%s";
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
		       rfl_torch_built_version(), RFL_TORCH_VARIANT, threads,
		       rfl_optimizer_rule_names[e->config.optimizer.rule], optimizer_kernels(e),
		       library);
	return e->description;
}

static const struct rfl_engine_ops torch_ops = {
	.name = "torch",
	.version = RFL_TORCH_VERSION,
	.variant = RFL_TORCH_VARIANT,
	.probe = rfl_torch__device_probe,
	.library_version = rfl_torch_library_version,
	.unsupported = rfl_torch__unsupported,
	.open = open_engine,
	.close = close_engine,
	.set_mode = set_mode,
	.set_optimizer = set_optimizer,
	.zero_grad = rfl_torch__zero_grad,
	.forward = rfl_torch__forward,
	.forward_traced = rfl_torch__forward_traced,
	.backward = rfl_torch__backward,
	.step = rfl_torch__step,
	.reset_optimizer = rfl_torch__reset_optimizer,
	.loss = rfl_torch__loss,
	.logits = rfl_torch__logits,
	.set_param = rfl_torch__set_param,
	.get_param = rfl_torch__get_param,
	.get_grad = rfl_torch__get_grad,
	.param_data = rfl_torch__param_data,
	.sync = rfl_torch__device_sync,
	.memory = rfl_torch__device_memory,
	.reset_memory = rfl_torch__reset_memory,
	.device_info = rfl_torch__device_info,
	.host_alloc = rfl_torch__host_alloc,
	.host_free = rfl_torch__host_free,
	.upload = rfl_torch__upload,
	.uploaded = rfl_torch__uploaded,
	.reserve_events = rfl_torch__reserve_events,
	.record_event = rfl_torch__record_event,
	.elapsed = rfl_torch__elapsed,
	.capture = rfl_torch__capture,
	.replay = rfl_torch__replay,
	.join = rfl_torch__join,
	.barrier = rfl_torch__barrier,
	.gather = rfl_torch__gather,
	.snapshot = rfl_torch__snapshot,
	.restore = rfl_torch__restore,
	.mark = rfl_torch__mark,
	.describe = describe,
	.scaling = rfl_torch__scaling,
	.optimizer_kernels = optimizer_kernels,
};

RFL_EXPORT const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi);

RFL_EXPORT const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi)
{
	return abi == RFL_ENGINE_ABI ? &torch_ops : NULL;
}
