/*
 * gpu_check.h - whether counters of a GPU can be read here: every condition in its order, with what
 * was found, why it does not hold, and what to do. It is what `roofline counters check` prints, and
 * what a run checks before it counts.
 */
#ifndef RFL_PROFILE_GPU_CHECK_H
#define RFL_PROFILE_GPU_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/cupti/lib.h"

enum rfl_gpu_check_state {
	RFL_GPU_CHECK_OK,
	RFL_GPU_CHECK_FAILED,
	RFL_GPU_CHECK_SKIPPED, /**< not asked: a condition before it does not hold */
};
/** "ok", "failed", "skipped", NULL. */
extern const char *const rfl_gpu_check_state_names[];

struct rfl_gpu_check_row {
	const char *what; /**< "driver", "device", "permission", ... */
	enum rfl_gpu_check_state state;
	const char *detail; /**< what was found: "CUDA 13.0"; NULL: nothing */
	const char *reason; /**< why it does not hold, and what to do; NULL when it does */
	enum rfl_rc rc;     /**< of a failure: RFL_EUNAVAILABLE when no counter can be read because
			     *   of it; RFL_EFAILED when some can, or read something wrong */
};

struct rfl_gpu_check_request {
	struct rfl_cupti_places places;
	int device;              /**< index of the GPU */
	const char *precision;   /**< of the core session; NULL: "fp32" */
	bool self_test;          /**< also run the copy and the matrix products of known size */
	const char *params_path; /**< NULL: /proc/driver/nvidia/params. For tests */
};

/** The report; read only. */
struct rfl_gpu_check {
	struct rfl_arena *arena;
	struct rfl_gpu_check_row rows[24]; /**< in order */
	size_t n;
	bool no_memory;
};

/**
 * Check everything.
 * @param ret  set on success only; release with rfl_gpu_check_free()
 * @return RFL_OK whenever there is a report, whatever it says; RFL_ENOMEM
 */
enum rfl_rc rfl_gpu_check_new(const struct rfl_gpu_check_request *request,
			      struct rfl_gpu_check **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_gpu_check_free(struct rfl_gpu_check *c); /* accepts NULL */

#endif
