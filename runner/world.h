/*
 * world.h - several processes that train one network together (data-parallel): who we are among
 * them, as torchrun, srun and mpirun say in the environment. Reading the environment is the
 * caller's: these are values.
 */
#ifndef RFL_RUNNER_WORLD_H
#define RFL_RUNNER_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/** One process has rank 0, size 1, and needs no address. */
struct rfl_world {
	int rank, size;             /**< of all processes */
	int local_rank, local_size; /**< on this machine; local_size -1: not known */
	char address[256];          /**< where rank 0 listens */
	int port;
	bool hosted;          /**< the launcher itself listens there, and rank 0 does not */
	double timeout_s;     /**< for the others to come, and for each exchange */
	int64_t bucket_bytes; /**< gradients are exchanged in pieces of about this size */
	int64_t run_number;   /**< N that this process would give a label that is made */
	const char *launcher; /**< "torchrun", "slurm", "openmpi", "mpich", "roofline" (--world N);
			       NULL: one process */
	const char *interconnect; /**< "auto", "gloo", "nccl"; static */
};

#define RFL_WORLD_TIMEOUT_S    300
#define RFL_WORLD_BUCKET_BYTES ((int64_t)25 << 20) /**< as PyTorch's DDP has it */

/** getenv() or a test's stand-in: NULL when the variable is not set. */
typedef const char *(*rfl_world_env_fn)(const char *name, void *ctx);

/**
 * Who are we? The first launcher of docs/distributed.md whose variables are set decides; none: one
 * process.
 * @return RFL_OK; RFL_EINVAL naming the variable whose value is not a rank, size or port, or the
 *         one that is missing beside the others
 */
enum rfl_rc rfl_world_from_env(rfl_world_env_fn env, void *ctx, struct rfl_world *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The GPU of a process of several on a machine: what its CUDA_VISIBLE_DEVICES must be.
 * @param visible  what the variable says now; NULL: it is not set
 * @return false: as it is; the launcher has given each process its own
 */
bool rfl_world_gpu(const char *visible, int local_rank, char ret[64]);

#endif
