/*
 * engine_state.c - the parameters of the torch engine: one block of memory, the tensors that are
 * parts of it, and the optimizer over them. For counted steps: going back to a snapshot, and
 * reporting which node is at work.
 */
#include "runner/torch/engine_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/op.h"

#define ALIGN_FLOATS ((int64_t)16) /* 64 bytes */

/* Where a parameter's elements lie: 4-D weights of a channels-last engine in channels-last order,
 * everything else row-major. */
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

size_t rfl_torch__trained(const struct rfl_engine *e, struct rfl_torch_tensor **out)
{
	size_t n = 0;

	for (int i = 0; i < e->net->nparams; i++)
		if (!rfl_param_is_buffer(e->net->params[i].kind))
			out[n++] = e->param[i];
	return n;
}

enum rfl_rc rfl_torch__make_params(struct rfl_engine *e, struct rfl_err *err)
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

		rc = rfl_torch__check(rfl_torch_leaf(e->block, e->offset[i], p->ndim, p->dim,
						     strides_of(e, p, strides) ? strides : NULL,
						     !rfl_param_is_buffer(p->kind), &e->param[i]),
				      p->name, err);
	}
	if (rc != RFL_OK)
		return rc;
	trained = rfl_alloc_array((size_t)e->net->nparams, sizeof(struct rfl_torch_tensor *));
	if (!trained)
		return rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
	rc = rfl_torch__check(rfl_torch_optim_new(trained, rfl_torch__trained(e, trained),
						  e->config.optimizer.rule, e->fused, e->scaled,
						  &e->optim),
			      "optimizer", err);
	free(trained);
	return rc;
}

static enum rfl_rc check_param(const struct rfl_engine *e, int param, int64_t numel,
			       struct rfl_err *err)
{
	if (param < 0 || param >= e->net->nparams)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: no parameter %d", param);
	if (numel != e->net->params[param].numel)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: %s has %lld elements, not %lld",
				e->net->params[param].name, (long long)e->net->params[param].numel,
				(long long)numel);
	return RFL_OK;
}

enum rfl_rc rfl_torch__set_param(struct rfl_engine *e, int param, const float *values,
				 int64_t numel, struct rfl_err *err)
{
	enum rfl_rc rc = check_param(e, param, numel, err);

	if (rc != RFL_OK)
		return rc;
	return rfl_torch__check(rfl_torch_tensor_write(e->param[param], values, numel),
				e->net->params[param].name, err);
}

enum rfl_rc rfl_torch__get_param(struct rfl_engine *e, int param, float *out, int64_t numel,
				 struct rfl_err *err)
{
	enum rfl_rc rc = check_param(e, param, numel, err);

	if (rc != RFL_OK)
		return rc;
	return rfl_torch__check(rfl_torch_tensor_read(e->param[param], out, numel),
				e->net->params[param].name, err);
}

enum rfl_rc rfl_torch__get_grad(struct rfl_engine *e, int param, float *out, int64_t numel,
				struct rfl_err *err)
{
	struct rfl_torch_tensor *grad = NULL;
	const char *name;
	int64_t skipped;
	double scale;
	enum rfl_rc rc = check_param(e, param, numel, err);

	if (rc != RFL_OK)
		return rc;
	name = e->net->params[param].name;
	if (rfl_param_is_buffer(e->net->params[param].kind))
		return rfl_fail(err, RFL_EINVAL, 0, "torch: %s is a buffer: it has no gradient",
				name);
	if (!e->has_grads)
		return rfl_fail(err, RFL_EINVAL, 0,
				"torch: %s: gradients exist between backward and step only", name);
	rc = rfl_torch__check(rfl_torch_tensor_grad(e->param[param], &grad), name, err);
	if (rc == RFL_OK && !grad)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: %s has no gradient", name);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_tensor_read(grad, out, numel), name, err);
	rfl_torch_tensor_free(grad);
	if (rc != RFL_OK || !e->scaled)
		return rc;
	/* until the step they carry the scale of the loss */
	rc = rfl_torch__check(rfl_torch_optim_scaling(e->optim, &scale, &skipped), "scale", err);
	for (int64_t i = 0; rc == RFL_OK && i < numel; i++)
		out[i] = (float)((double)out[i] / scale);
	return rc;
}

/* Memory in PyTorch's order: row-major, or with one channel or one pixel, where both orders are the
 * same memory. */
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

/* ------------------------------------------------------------------ snapshots */

static void drop_snapshot(struct rfl_engine *e)
{
	e->saved.taken = false;
	rfl_torch__drop(&e->saved.block);
	rfl_torch__drop(&e->saved.random);
	rfl_torch_optim_state_free(e->saved.optim);
	e->saved.optim = NULL;
}

enum rfl_rc rfl_torch__snapshot(struct rfl_engine *e, struct rfl_err *err)
{
	enum rfl_torch_status status;

	drop_snapshot(e);
	status = rfl_torch_tensor_as(e->block, RFL_TORCH_COPIED, &e->saved.block);
	if (status == RFL_TORCH_OK)
		status = rfl_torch_optim_save(e->optim, &e->saved.optim);
	if (status == RFL_TORCH_OK)
		status = rfl_torch_random_save(e->block, &e->saved.random);
	e->saved.taken = status == RFL_TORCH_OK;
	if (!e->saved.taken)
		drop_snapshot(e);
	return rfl_torch__check(status, "snapshot", err);
}

enum rfl_rc rfl_torch__restore(struct rfl_engine *e, struct rfl_err *err)
{
	enum rfl_torch_status status;

	if (!e->saved.taken)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: restore needs a snapshot before it");
	rfl_torch__graph_forget(e); /* the optimizer's memory may be another afterwards */
	e->updates = 0;
	rfl_torch__forget_step(e);
	(void)rfl_torch__zero_grad(e, NULL);
	status = rfl_torch_tensor_copy(e->block, e->saved.block);
	if (status == RFL_TORCH_OK)
		status = rfl_torch_optim_restore(e->optim, e->saved.optim);
	if (status == RFL_TORCH_OK)
		status = rfl_torch_random_restore(e->block, e->saved.random);
	return rfl_torch__check(status, "restore", err);
}

/* ------------------------------------------------------------------ marks */

static void drop_marks(struct rfl_engine *e)
{
	struct rfl_torch__node_mark *nodes = e->marks.nodes;

	for (int i = 0; nodes && i <= e->net->nnodes; i++) {
		free(nodes[i].forward);
		free(nodes[i].backward);
	}
	free(nodes);
	e->marks.nodes = NULL;
	e->marks.fn = NULL;
}

void rfl_torch__state_fini(struct rfl_engine *e)
{
	drop_snapshot(e);
	drop_marks(e);
}

/* A step without a module is named after its operation: "fwd/layer1.0.add". */
static char *name_of(const char *phase, const struct rfl_node *node)
{
	const bool is_step = node && node->functional && node->op != RFL_OP_INPUT;
	const char *name = node ? node->name : "loss";
	const char *op = is_step ? rfl_op_info_of(node->op)->name : "";
	const char *dot = is_step && *name ? "." : "";
	const size_t n = strlen(phase) + strlen(name) + strlen(dot) + strlen(op) + 1;
	char *text = malloc(n);

	if (text)
		(void)snprintf(text, n, "%s%s%s%s", phase, name, dot, op);
	return text;
}

enum rfl_rc rfl_torch__mark(struct rfl_engine *e, rfl_engine_mark_fn fn, void *ctx,
			    struct rfl_err *err)
{
	const int nnodes = e->net->nnodes;
	bool named;

	if (e->can_backward) /* its hooks use the names that are freed now */
		rfl_torch__forget_step(e);
	drop_marks(e);
	rfl_torch_set_backward_here(fn != NULL);
	if (!fn)
		return RFL_OK;
	e->marks.nodes = rfl_alloc_array((size_t)nnodes + 1, sizeof(*e->marks.nodes));
	named = e->marks.nodes != NULL;
	for (int i = 0; named && i <= nnodes; i++) { /* the one after the last is the loss */
		const struct rfl_node *node = i < nnodes ? &e->net->nodes[i] : NULL;
		struct rfl_torch__node_mark *m = &e->marks.nodes[i];

		m->e = e;
		m->forward = name_of("fwd/", node);
		m->backward = name_of("bwd/", node);
		named = m->forward && m->backward;
	}
	if (!named) {
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

/* After a failure nothing more is reported; backward() returns it at its end. */
static void on_backward(void *ctx)
{
	const struct rfl_torch__node_mark *m = ctx;
	struct rfl_engine *e = m->e;

	if (e->marks.fn && e->marks.failure.rc == RFL_OK)
		e->marks.failure.rc = e->marks.fn(m->backward, e->marks.ctx, &e->marks.failure);
}

enum rfl_rc rfl_torch__mark_later(struct rfl_engine *e, int node,
				  const struct rfl_torch_tensor *value, struct rfl_err *err)
{
	return rfl_torch__check(rfl_torch_on_backward(value, on_backward, &e->marks.nodes[node]),
				e->net->nodes[node].name, err);
}
