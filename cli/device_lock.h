/*
 * device_lock.h - inside cli/: one timed run at a time on each processor and GPU of this machine,
 * and one process at a time for each run of a matrix. Locks end with the process that holds them,
 * however it ends.
 */
#ifndef RFL_CLI_DEVICE_LOCK_H
#define RFL_CLI_DEVICE_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define RFL_DEVICE_LOCKS_MAX 33 /* the processor and 32 GPUs */

/** The locks that a run on a backend needs, always in the same order. */
struct rfl_device_lock {
	char path[RFL_DEVICE_LOCKS_MAX][512];
	int fd[RFL_DEVICE_LOCKS_MAX]; /**< -1: not held */
	int n;
};

/**
 * A GPU or MIG instance has one lock, named by its UUID, however CUDA_VISIBLE_DEVICES names it.
 * Without a driver, its number names the lock.
 * @param backend  "cpu", "cuda", "mps"; "auto" locks the processor and the GPUs
 * @param ngpus    how many GPUs the run uses, from the first that CUDA shows on
 * @param dir      folder of the lock files, which all users of the machine must share
 */
void rfl_device_lock_init(struct rfl_device_lock *l, const char *backend, size_t ngpus,
			  const char *dir);

/**
 * Acquire all locks, or none.
 * @param busy  set to whether another process holds one
 * @return RFL_OK, also when busy; RFL_EIO when a lock file cannot be made
 */
enum rfl_rc rfl_device_lock_try(struct rfl_device_lock *l, bool *busy,
				struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_device_lock_release(struct rfl_device_lock *l);

/** Open the claims of a log folder: a file in which each run has a byte to lock. Open it once per
 * process; release with close(). */
enum rfl_rc rfl_claims_open(const char *log_dir, int *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** @param busy  set to whether another process has this run */
enum rfl_rc rfl_claim_try(int claims, uint64_t run, bool *busy,
			  struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_claim_release(int claims, uint64_t run);

#endif
