/*
 * activity.h - when each kernel began and ended, from CUPTI's activity API: no counters, so
 * no permission is needed.
 */
#ifndef RFL_PROFILE_CUPTI_ACTIVITY_H
#define RFL_PROFILE_CUPTI_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/capture.h"
#include "profile/cupti/session.h"

struct rfl_kernel_launch {
	const char *name; /**< demangled where that is possible */
	double time_s;
	uint64_t begin_ns, end_ns; /**< by CUPTI's clock */
	int grid[3], block[3];
};

struct rfl_kernel_launches {
	struct rfl_arena *arena;
	struct rfl_kernel_launch *launches; /**< in the order of CUPTI's buffers */
	size_t n;
	size_t lost;    /**< records that CUPTI had no room for */
	size_t untimed; /**< records without begin and end; they are not among the launches */
};
void rfl_kernel_launches_fini(struct rfl_kernel_launches *l); /* accepts a zeroed struct */

/**
 * Run the workload once and note its kernels.
 * @param ranges  those that the workload told, with wall times; release with rfl_counted_fini()
 * @param ret     release with rfl_kernel_launches_fini(); both also after a failure
 * @return RFL_OK; when work->rc is a failure, that one; RFL_EUNAVAILABLE
 */
enum rfl_rc rfl_cupti_kernels(struct rfl_cupti *lib, struct rfl_replay *work,
			      struct rfl_counted *ranges, struct rfl_kernel_launches *ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Add the launches to a capture, and notes: shares of time by class of kernel, the longest
 * kernels, those that only move data, lost records, and the share of a step in which none ran.
 * @param step_s  of a step that nothing was recorded of; 0: not known */
enum rfl_rc rfl_kernel_launches_add(const struct rfl_kernel_launches *l, double step_s,
				    struct rfl_capture_builder *b,
				    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
