/*
 * engine_dist.c - the torch engine as one of several processes: gradients are averaged over
 * all of them.
 */
#include "runner/torch/engine_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "runner/torch/shim_dist.h"

/* What exchanges tensors of this engine's device. */
static enum rfl_rc choose(const struct rfl_engine *e, const struct rfl_world *world, int *nccl,
			  struct rfl_err *err)
{
	const bool on_gpu = e->config.device == RFL_DEVICE_CUDA;
	const bool wants_nccl = strcmp(world->interconnect, "nccl") == 0;
	const char *missing;

	if (e->config.device == RFL_DEVICE_MPS)
		return rfl_fail(
			err, RFL_EUNSUPPORTED, 0,
			"torch: several processes train on CPUs or NVIDIA GPUs, not on mps");
	if (wants_nccl && !on_gpu)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: NCCL exchanges memory of GPUs; use --interconnect gloo");
	if (on_gpu && strcmp(world->interconnect, "gloo") == 0)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"torch: gradients on GPUs are exchanged by NCCL; use "
				"--interconnect nccl");
	*nccl = on_gpu;
	missing = rfl_torch_group_missing(*nccl);
	if (missing)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "torch: %s", missing);
	return RFL_OK;
}

/* The trained parameters in the order of the net. @return how many */
static size_t trained(const struct rfl_engine *e, struct rfl_torch_tensor **out)
{
	size_t n = 0;

	for (int i = 0; i < e->net->nparams; i++)
		if (!rfl_param_is_buffer(e->net->params[i].kind))
			out[n++] = e->param[i];
	return n;
}

static enum rfl_rc meet(struct rfl_engine *e, const struct rfl_world *world, int nccl,
			struct rfl_err *err)
{
	struct rfl_torch_tensor **params =
		rfl_alloc_array((size_t)e->net->nparams, sizeof(struct rfl_torch_tensor *));
	const double start = rfl_clock_s();
	enum rfl_torch_status status;
	bool waited;
	struct rfl_torch_group_config config = {
		.rank = world->rank,
		.size = world->size,
		.address = world->address,
		.port = world->port,
		.hosted = world->hosted,
		.timeout_s = world->timeout_s,
		.bucket_bytes = world->bucket_bytes,
		.nccl = nccl,
		.params = params,
	};

	if (!params)
		return rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
	config.nparams = trained(e, params);
	status = rfl_torch_group_join(&config, &e->group);
	free(params);
	if (status == RFL_TORCH_OK)
		return RFL_OK;
	waited = rfl_clock_s() - start >= 0.9 * world->timeout_s;
	return rfl_fail(err, waited ? RFL_ETIMEOUT : RFL_EUNAVAILABLE, 0,
			"torch: rank %d of %d: not all processes met at %s port %d within %g s "
			"(are all of them started, and is the port free?): %s",
			world->rank, world->size, world->address, world->port, world->timeout_s,
			rfl_torch_error());
}

enum rfl_rc rfl_torch__join(struct rfl_engine *e, const struct rfl_world *world,
			    struct rfl_err *err)
{
	int nccl = 0;
	enum rfl_rc rc;

	if (e->group)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: this engine has joined already");
	if (world->size < 1 || world->rank < 0 || world->rank >= world->size ||
	    world->bucket_bytes < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: no rank %d among %d processes",
				world->rank, world->size);
	rc = choose(e, world, &nccl, err);
	return rc ? rc : meet(e, world, nccl, err);
}

void rfl_torch__leave(struct rfl_engine *e)
{
	rfl_torch_group_leave(e->group);
	e->group = NULL;
}

static bool exchanges(const struct rfl_engine *e, const struct rfl_backward *how)
{
	return e->group && (!how || how->last);
}

enum rfl_rc rfl_torch__exchange_begin(struct rfl_engine *e, const struct rfl_backward *how,
				      struct rfl_err *err)
{
	if (!exchanges(e, how))
		return RFL_OK;
	return rfl_torch__check(rfl_torch_group_begin(e->group), "exchange of gradients", err);
}

enum rfl_rc rfl_torch__exchange_finish(struct rfl_engine *e, const struct rfl_backward *how,
				       struct rfl_err *err)
{
	if (!exchanges(e, how))
		return RFL_OK;
	if (rfl_torch_group_finish(e->group) == RFL_TORCH_OK)
		return RFL_OK;
	return rfl_fail(err, RFL_EFAILED, 0,
			"torch: gradients are not exchanged, since another process has ended or "
			"does not answer: %s",
			rfl_torch_error());
}

enum rfl_rc rfl_torch__barrier(struct rfl_engine *e, struct rfl_err *err)
{
	if (!e->group)
		return RFL_OK;
	return rfl_torch__check(rfl_torch_group_barrier(e->group), "barrier", err);
}

enum rfl_rc rfl_torch__gather(struct rfl_engine *e, const double *mine, size_t n, double *all,
			      struct rfl_err *err)
{
	if (!e->group) {
		memcpy(all, mine, n * sizeof(*all));
		return RFL_OK;
	}
	return rfl_torch__check(rfl_torch_group_gather(e->group, mine, n, all), "gather", err);
}
