/*
 * engine.c - the torch engine: executes a net with libtorch through the C shim. This file handles
 * the table of functions, parameters, marks, several processes, opening and closing.
 *
 * All parameters share one block of memory; on the CPU, inputs and labels are used in place. A step
 * does exactly the work of the same training loop in Python.
 */
#include "runner/torch/engine_parts.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "complexity/op.h"

void rfl_torch__drop(struct rfl_torch_tensor **t)
{
	rfl_torch_tensor_free(*t);
	*t = NULL;
}

/* ------------------------------------------------------------------ parameters */

#define ALIGN_FLOATS ((int64_t)16) /* 64 bytes */

/* In a channels-last engine, 4-D weights are channels-last; all other parameters are row-major.
 * @return false: row-major, strides not set */
static bool strides_of(const struct rfl_engine *e, const struct rfl_param *p,
		       int64_t strides[RFL_NET_MAX_DIMS])
{
	if (e->config.layout != RFL_LAYOUT_NHWC || p->ndim != 4)
		return false;
	strides[0] = p->dim[1] * p->dim[2] * p->dim[3];
	strides[1] = 1;
	strides[2] = p->dim[3] * p->dim[1];
	strides[3] = p->dim[1];
	return true;
}

/* Collect the trained parameters in network order. @return their number */
static size_t trained_of(const struct rfl_engine *e, struct rfl_torch_tensor **out)
{
	size_t n = 0;

	for (int i = 0; i < e->net->nparams; i++)
		if (!rfl_param_is_buffer(e->net->params[i].kind))
			out[n++] = e->param[i];
	return n;
}

/* Create the block, the parameter tensors over it, and the optimizer. */
static enum rfl_rc make_params(struct rfl_engine *e, struct rfl_err *err)
{
	struct rfl_torch_tensor **trained;
	int64_t floats = 0;
	enum rfl_rc rc;

	for (int i = 0; i < e->net->nparams; i++) {
		e->offset[i] = floats;
		floats += (e->net->params[i].numel + ALIGN_FLOATS - 1) & ~(ALIGN_FLOATS - 1);
	}
	rc = rfl_torch__device_block(e, floats, err);
	for (int i = 0; i < e->net->nparams && rc == RFL_OK; i++) {
		const struct rfl_param *p = &e->net->params[i];
		int64_t strides[RFL_NET_MAX_DIMS];

		rc = rfl_torch_leaf(e->block, e->offset[i], p->ndim, p->dim,
				    strides_of(e, p, strides) ? strides : NULL,
				    !rfl_param_is_buffer(p->kind), &e->param[i], p->name, err);
	}
	if (rc != RFL_OK)
		return rc;
	trained = rfl_alloc_array((size_t)e->net->nparams, sizeof(struct rfl_torch_tensor *));
	if (!trained)
		return rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
	rc = rfl_torch_optim_new(trained, trained_of(e, trained), e->config.optimizer.rule,
				 e->fused, e->scaled, &e->optim, err);
	free(trained);
	return rc;
}

/* Return the memory only if it is in PyTorch's order: row-major, or one channel or one pixel, for
 * which both orders are equal. */
float *rfl_torch__param_data(struct rfl_engine *e, int param)
{
	int64_t strides[RFL_NET_MAX_DIMS];
	const struct rfl_param *p;

	if (!e->slab || param < 0 || param >= e->net->nparams)
		return NULL;
	p = &e->net->params[param];
	if (strides_of(e, p, strides) && p->dim[1] != 1 && p->dim[2] * p->dim[3] != 1)
		return NULL;
	return e->slab + e->offset[param];
}

/* ------------------------------------------------------------------ marks */

static void drop_marks(struct rfl_engine *e)
{
	rfl_arena_free(e->marks.arena);
	e->marks.arena = NULL;
	e->marks.fn = NULL;
}

enum rfl_rc rfl_torch__mark(struct rfl_engine *e, rfl_engine_mark_fn fn, void *ctx,
			    struct rfl_err *err)
{
	const int nnodes = e->net->nnodes;
	struct rfl_torch__node_mark *m;
	char name[512] = "";

	if (e->can_backward) /* the hooks of the step use the names freed below */
		rfl_torch__forget_step(e);
	drop_marks(e);
	rfl_torch_set_backward_here(fn != NULL);
	if (!fn)
		return RFL_OK;
	e->marks.arena = rfl_arena_new();
	m = e->marks.arena ? rfl_arena_array(e->marks.arena, (size_t)nnodes + 1, sizeof(*m)) : NULL;
	e->marks.nodes = m;
	for (int i = 0; m && i <= nnodes; i++) { /* the entry after the last node is the loss */
		if (i < nnodes)
			(void)rfl_op_layer_name(&e->net->nodes[i], name, sizeof(name));
		else
			snprintf(name, sizeof(name), "loss");
		m[i].forward = rfl_arena_printf(e->marks.arena, "fwd/%s", name);
		m[i].backward = rfl_arena_printf(e->marks.arena, "bwd/%s", name);
		if (!m[i].forward || !m[i].backward)
			m = NULL;
	}
	if (!m) {
		drop_marks(e);
		return rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
	}
	e->marks.fn = fn;
	e->marks.ctx = ctx;
	return RFL_OK;
}

enum rfl_rc rfl_torch__mark_forward(struct rfl_engine *e, int node, struct rfl_err *err)
{
	return e->marks.fn ? e->marks.fn(e->marks.nodes[node].forward, e->marks.ctx, err) : RFL_OK;
}

/* ------------------------------------------------------------------ several processes */

enum rfl_rc rfl_torch__join(struct rfl_engine *e, const struct rfl_world *world,
			    struct rfl_err *err)
{
	const bool nccl = e->config.device == RFL_DEVICE_CUDA; /* NCCL is for GPUs, Gloo for CPUs */
	const char *missing = rfl_torch_group_missing(nccl);
	const double start = rfl_clock_s();
	struct rfl_torch_tensor **params;
	struct rfl_err why = RFL_ERR_INIT;
	char port[sizeof(world->address) + 32] = "";
	enum rfl_rc rc;
	bool waited;

	if (e->group)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: this engine has already joined");
	if (world->size < 1 || world->rank < 0 || world->rank >= world->size ||
	    world->bucket_bytes < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: rank %d is not valid for %d processes",
				world->rank, world->size);
	if (e->config.device == RFL_DEVICE_MPS)
		return rfl_fail(
			err, RFL_EUNSUPPORTED, 0,
			"torch: several processes cannot train on mps; use CPUs or NVIDIA GPUs");
	if (!nccl && strcmp(world->interconnect, "nccl") == 0)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: NCCL exchanges only GPU memory; use --interconnect gloo");
	if (nccl && strcmp(world->interconnect, "gloo") == 0)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: gradients on GPUs require NCCL; use --interconnect nccl");
	if (missing)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "torch: %s", missing);
	params = rfl_alloc_array((size_t)e->net->nparams, sizeof(struct rfl_torch_tensor *));
	if (!params)
		return rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
	rc = rfl_torch_group_join(world, nccl, params, trained_of(e, params), &e->group, &why);
	free(params);
	if (rc == RFL_OK)
		return RFL_OK;
	waited = rfl_clock_s() - start >= 0.9 * world->timeout_s;
	if (world->port)
		(void)snprintf(port, sizeof(port), " at %s port %d", world->address, world->port);
	return rfl_fail(err, waited ? RFL_ETIMEOUT : RFL_EUNAVAILABLE, 0,
			"torch: rank %d of %d: not all processes joined%s within %g s: %s; start "
			"all of them%s",
			world->rank, world->size, port, world->timeout_s, why.msg,
			world->port ? " and use a free port" : "");
}

/* ------------------------------------------------------------------ opening and closing */

static const struct rfl_engine_ops torch_ops = { .name = "torch",
						 .version = RFL_TORCH_VERSION,
						 .variant = RFL_TORCH_VARIANT,
#define MEMBER(member) .member = rfl_torch__##member,
						 RFL_TORCH__OPS(MEMBER)
#undef MEMBER
};

/* @param fused  set to whether an update is one pass */
static enum rfl_rc check_config(const struct rfl_net *net, const struct rfl_engine_config *config,
				bool *fused, struct rfl_err *err)
{
	const struct rfl_optimizer *o = &config->optimizer;
	const char *device = rfl_device_names[config->device], *since, *missing;
	const enum rfl_cast cast = rfl_precision_cast(config->precision, config->device);
	enum rfl_rc rc = rfl_torch__probe(config->device, err);

	if (rc != RFL_OK)
		return rc;
	if (config->precision == RFL_PRECISION_TF32 && config->device != RFL_DEVICE_CUDA)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: tf32 requires the matrix units of an NVIDIA GPU and does "
				"not exist on %s; use fp32 or bf16",
				device);
	missing = rfl_torch_cast_missing(config->device, cast);
	if (missing)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: %s: %s (this is libtorch " RFL_TORCH_VERSION ")",
				rfl_precision_names[config->precision], missing);
	since = rfl_torch_scaling_since(config->device);
	if (cast == RFL_CAST_FP16 && since)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: on %s, fp16 requires loss scaling, which needs libtorch %s "
				"or newer (this is " RFL_TORCH_VERSION "); use fp32",
				device, since);
	since = rfl_torch_fused_since(o->rule, config->device);
	*fused = o->kernels != RFL_KERNELS_FOREACH && !since;
	if (o->kernels == RFL_KERNELS_FUSED && since)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: libtorch " RFL_TORCH_VERSION
				" has no fused %s on %s; use libtorch %s or newer, or the kernels "
				"foreach or auto",
				rfl_optimizer_rule_names[o->rule], device, since);
	if (config->threads < 1 || config->max_batch < 1)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: threads and batch must be at least 1, not %d and %lld",
				config->threads, (long long)config->max_batch);
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		const char *why = rfl_torch__unsupported(node->op, config->precision);

		if (!why)
			why = rfl_torch__unknown_table(node);
		if (why)
			return rfl_fail(err, RFL_EUNSUPPORTED, 0, "torch: layer '%s': %s",
					node->name, why);
	}
	return RFL_OK;
}

void rfl_torch__close(struct rfl_engine *e)
{
	if (!e)
		return;
	rfl_torch_group_leave(e->group);
	rfl_torch_snapshot_free(e->saved);
	drop_marks(e);
	rfl_torch__forget_step(e);
	rfl_torch__drop(&e->score);
	rfl_torch__run_fini(e);
	rfl_torch_optim_free(e->optim);
	for (int i = 0; e->param && i < e->net->nparams; i++)
		rfl_torch_tensor_free(e->param[i]);
	rfl_torch_tensor_free(e->block);
	rfl_torch__device_close(e);
	free(e->param);
	free(e->offset);
	free(e->value);
	free(e->last_use);
	free(e);
}

enum rfl_rc rfl_torch__open(const struct rfl_net *net, const struct rfl_engine_config *config,
			    struct rfl_engine **ret, struct rfl_err *err)
{
	const size_t nodes = (size_t)net->nnodes, params = (size_t)net->nparams;
	struct rfl_engine *e = NULL;
	bool fused = false;
	enum rfl_rc rc = check_config(net, config, &fused, err);

	if (rc != RFL_OK)
		return rc;
#ifdef __GLIBC__
	/* libtorch's CPU allocator is malloc. By default, glibc returns the memory of the
	 * activations to the system after each step, and the next step faults it in again: a
	 * hundred thousand page faults per step of MobileNetV2. Keep freed memory, large blocks
	 * included. */
	(void)mallopt(M_MMAP_MAX, 0);
	(void)mallopt(M_TRIM_THRESHOLD, -1);
#endif
	rc = rfl_torch_set_up(config, err);
	if (rc != RFL_OK)
		return rc;
	e = calloc(1, sizeof(*e));
	if (e) {
		e->ops = &torch_ops;
		e->net = net;
		e->config = *config;
		e->mode = RFL_ENGINE_TRAIN;
		e->cast = rfl_precision_cast(config->precision, config->device);
		e->scaled = e->cast == RFL_CAST_FP16;
		e->fused = fused;
		e->param = rfl_alloc_array(params, sizeof(struct rfl_torch_tensor *));
		e->offset = rfl_alloc_array(params, sizeof(*e->offset));
		e->value = rfl_alloc_array(nodes, sizeof(struct rfl_torch_tensor *));
		e->last_use = rfl_alloc_array(nodes, sizeof(*e->last_use));
	}
	if (!e || !e->param || !e->offset || !e->value || !e->last_use) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
		goto done;
	}
	rfl_torch__plan(e);
	if ((rc = rfl_torch__device_open(e, err)) || (rc = make_params(e, err)))
		goto done;
	*ret = e;
	e = NULL;
done:
	rfl_torch__close(e);
	return rc;
}

enum rfl_rc rfl_torch__set_mode(struct rfl_engine *e, enum rfl_engine_mode mode,
				struct rfl_err *err)
{
	(void)err;
	if (e->mode != mode) {
		rfl_torch__graph_forget(e);
		e->steps = 0; /* recording requires earlier ordinary steps in the same mode */
	}
	e->mode = mode;
	return RFL_OK;
}

enum rfl_rc rfl_torch__set_optimizer(struct rfl_engine *e, const struct rfl_optimizer *optimizer,
				     struct rfl_err *err)
{
	const struct rfl_optimizer *old = &e->config.optimizer;

	if (optimizer->rule != old->rule)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: the optimizer cannot change from %s; open a new engine",
				rfl_optimizer_rule_names[old->rule]);
	if (optimizer->kernels != old->kernels)
		return rfl_fail(
			err, RFL_EUNSUPPORTED, 0,
			"torch: the optimizer kernels of an open engine stay %s; open a new engine",
			rfl_optimizer_kernels_names[old->kernels]);
	rfl_torch__graph_forget(e); /* the recorded kernels contain the old settings */
	e->config.optimizer = *optimizer;
	return RFL_OK;
}

const char *rfl_torch__optimizer_kernels(struct rfl_engine *e)
{
	return rfl_optimizer_kernels_names[e->fused ? RFL_KERNELS_FUSED : RFL_KERNELS_FOREACH];
}

/* ------------------------------------------------------------------ the plugin */

RFL_EXPORT const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi);

RFL_EXPORT const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi)
{
	return abi == RFL_ENGINE_ABI ? &torch_ops : NULL;
}
