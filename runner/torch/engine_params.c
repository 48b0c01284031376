/*
 * engine_params.c - the parameters of the torch engine: one block of memory, the tensors that
 * are parts of it, the optimizer over them, and what callers write and read.
 */
#include "runner/torch/engine_parts.h"

#include <stdlib.h>

#include "base/alloc.h"

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

/* With one channel, or one pixel, both orders are the same memory. */
static bool is_row_major(const struct rfl_engine *e, const struct rfl_param *p)
{
	int64_t strides[RFL_NET_MAX_DIMS];

	return !strides_of(e, p, strides) || p->dim[1] == 1 || p->dim[2] * p->dim[3] == 1;
}

enum rfl_rc rfl_torch__make_params(struct rfl_engine *e, struct rfl_err *err)
{
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
	return rc;
}

enum rfl_rc rfl_torch__make_optimizer(struct rfl_engine *e, struct rfl_err *err)
{
	struct rfl_torch_tensor **trained =
		rfl_alloc_array((size_t)e->net->nparams, sizeof(struct rfl_torch_tensor *));
	const struct rfl_torch_optim_config config = {
		.rule = e->config.optimizer.rule,
		.fused = e->fused,
		.scaled = e->scaled,
	};
	size_t n = 0;
	enum rfl_rc rc;

	if (!trained)
		return rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
	for (int i = 0; i < e->net->nparams; i++)
		if (!rfl_param_is_buffer(e->net->params[i].kind))
			trained[n++] = e->param[i];
	rc = rfl_torch__check(rfl_torch_optim_new(trained, n, &config, &e->optim), "optimizer",
			      err);
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

	return rc != RFL_OK
		       ? rc
		       : rfl_torch__check(rfl_torch_tensor_write(e->param[param], values, numel),
					  e->net->params[param].name, err);
}

enum rfl_rc rfl_torch__get_param(struct rfl_engine *e, int param, float *out, int64_t numel,
				 struct rfl_err *err)
{
	enum rfl_rc rc = check_param(e, param, numel, err);

	return rc != RFL_OK ? rc
			    : rfl_torch__check(rfl_torch_tensor_read(e->param[param], out, numel),
					       e->net->params[param].name, err);
}

/* Until the step they carry the scale of the loss. */
static enum rfl_rc unscale(const struct rfl_engine *e, float *values, int64_t n,
			   struct rfl_err *err)
{
	int64_t skipped;
	double scale;
	enum rfl_rc rc;

	if (!e->scaled)
		return RFL_OK;
	rc = rfl_torch__check(rfl_torch_optim_scaling(e->optim, &scale, &skipped), "scale", err);
	for (int64_t i = 0; rc == RFL_OK && i < n; i++)
		values[i] = (float)((double)values[i] / scale);
	return rc;
}

enum rfl_rc rfl_torch__get_grad(struct rfl_engine *e, int param, float *out, int64_t numel,
				struct rfl_err *err)
{
	struct rfl_torch_tensor *grad = NULL;
	const char *name;
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
	return rc == RFL_OK ? unscale(e, out, numel, err) : rc;
}

float *rfl_torch__param_data(struct rfl_engine *e, int param)
{
	if (!e->slab || param < 0 || param >= e->net->nparams ||
	    !is_row_major(e, &e->net->params[param]))
		return NULL;
	return e->slab + e->offset[param];
}

void rfl_torch__params_fini(struct rfl_engine *e)
{
	rfl_torch_optim_free(e->optim);
	for (int i = 0; e->param && i < e->net->nparams; i++)
		rfl_torch_tensor_free(e->param[i]);
	rfl_torch_tensor_free(e->block);
}
