/*
 * world.h - several processes that train one network together (data-parallel): who we are among
 * them, as torchrun, srun and mpirun say in the environment. Reading the environment is the
 * caller's: these are values.
 */
#ifndef RFL_RUNNER_WORLD_H
#define RFL_RUNNER_WORLD_H

#include <stdbool.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One process has rank 0, size 1, and needs no address. */
struct rfl_world {
	int rank, size;             /**< of all processes */
	int local_rank, local_size; /**< on this machine; local_size -1: not known */
	char address[256];          /**< where rank 0 listens */
	int port;
	const char *launcher;     /**< "torchrun", "slurm", "openmpi", "mpich"; NULL: one process */
	const char *interconnect; /**< "auto", "gloo", "nccl"; static */
};

/** getenv() or a test's stand-in: NULL when the variable is not set. */
typedef const char *(*rfl_world_env_fn)(const char *name, void *ctx);

/**
 * Who are we? The first launcher of docs/run.md whose variables are set decides; none: one process.
 * @return RFL_OK; RFL_EINVAL naming the variable whose value is not a rank, size or port, or the
 *         one that is missing beside the others
 */
enum rfl_rc rfl_world_from_env(rfl_world_env_fn env, void *ctx, struct rfl_world *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
