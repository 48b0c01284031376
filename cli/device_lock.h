/* device_lock.h - inside cli/: locks for devices and for the runs of a matrix. */
#ifndef RFL_CLI_DEVICE_LOCK_H
#define RFL_CLI_DEVICE_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cmd.h"

#define RFL_DEVICE_LOCKS_MAX 33 /* the CPU and 32 GPUs */

/** The locks that a run needs, always in the same order. */
struct rfl_device_lock {
	char path[RFL_DEVICE_LOCKS_MAX][512];
	int fd[RFL_DEVICE_LOCKS_MAX]; /**< -1: not held */
	int n;
};

/**
 * Choose the locks for a run. The lock of a GPU or MIG instance is named after its UUID or, without
 * a driver, its number.
 * @param backend  "cpu", "cuda" or "mps"; "auto": the CPU and the GPUs
 * @param ngpus    number of GPUs that the run uses, starting with the first one visible to CUDA
 * @param dir      directory of the lock files, common to all users of the machine
 */
void rfl_device_lock_init(struct rfl_device_lock *l, const char *backend, size_t ngpus,
			  const char *dir);

/**
 * Acquire all locks, or none.
 * @param busy  set to whether another process holds one
 * @return RFL_OK, also if busy; RFL_EIO if a lock file cannot be created
 */
enum rfl_rc rfl_device_lock_try(struct rfl_device_lock *l, bool *busy,
				struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_device_lock_release(struct rfl_device_lock *l);

/** Choose the locks for a run in ROOFLINE_LOCK_DIR (default: /tmp), and wait until all are acquired
 * or rfl_stop_asked(). */
enum rfl_rc rfl_device_lock_wait(struct rfl_device_lock *l, const char *backend, size_t ngpus,
				 struct rfl_cli *cli, struct rfl_err *err) RFL_WARN_UNUSED;

/** Sleep for 50 ms. @param said  whether `what` was logged; set to true */
void rfl_device_pause(struct rfl_cli *cli, bool *said, const char *what);

/** Open the file of claims in a log directory; each run locks a byte in it. Open it once per
 * process; release with close(). */
enum rfl_rc rfl_claims_open(const char *log_dir, int *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Claim a run. @param busy set to whether another process has claimed it */
enum rfl_rc rfl_claim_try(int claims, uint64_t run, bool *busy,
			  struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_claim_release(int claims, uint64_t run);

#endif
