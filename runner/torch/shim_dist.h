/*
 * shim_dist.h - several processes that train together, by c10d: gradients are averaged in
 * buckets while backward still runs.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_DIST_H
#define RFL_RUNNER_TORCH_SHIM_DIST_H

#include "runner/torch/shim.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_torch_group; /* one process's part in it */

struct rfl_torch_group_config {
	int rank, size;
	const char *address; /**< where rank 0 listens */
	int port;
	int hosted;       /**< another process listens there */
	double timeout_s; /**< for the others to come, and for each exchange */
	int64_t bucket_bytes;
	int nccl; /**< 1: NCCL, for tensors on GPUs; 0: Gloo, for those in memory */
	/** The trained parameters in the order of the net; referenced. */
	struct rfl_torch_tensor *const *params;
	size_t nparams;
};

/** NULL when this build can join by Gloo (NCCL), else what it was built without. */
const char *rfl_torch_group_missing(int nccl) RFL_TORCH_NOEXCEPT;

/**
 * Meet the others. Returns when all are there, or RFL_TORCH_FAILED after the timeout.
 * @param ret  set on success only; release with rfl_torch_group_leave()
 */
RFL_TORCH_CALL rfl_torch_group_join(const struct rfl_torch_group_config *config,
				    struct rfl_torch_group **ret) RFL_TORCH_NOEXCEPT;

/** Accepts NULL. */
void rfl_torch_group_leave(struct rfl_torch_group *group) RFL_TORCH_NOEXCEPT;

/** Before a backward whose gradients are to be exchanged: from here on each bucket is sent as soon
 * as its gradients are there. */
RFL_TORCH_CALL rfl_torch_group_begin(struct rfl_torch_group *group) RFL_TORCH_NOEXCEPT;

/** After it: wait for the buckets, and leave the averages in the gradients. */
RFL_TORCH_CALL rfl_torch_group_finish(struct rfl_torch_group *group) RFL_TORCH_NOEXCEPT;

RFL_TORCH_CALL rfl_torch_group_barrier(struct rfl_torch_group *group) RFL_TORCH_NOEXCEPT;

/** Everybody's n numbers in the order of ranks: size * n. */
RFL_TORCH_CALL rfl_torch_group_gather(struct rfl_torch_group *group, const double *mine, size_t n,
				      double *all) RFL_TORCH_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
