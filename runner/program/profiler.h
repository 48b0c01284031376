/*
 * profiler.h - runs a program under another profiler, ncu or nsys, and reads the file that it
 * writes. Its counts are of the GPU; times of the program itself are measured without it
 * (program.c).
 */
#ifndef RFL_RUNNER_PROGRAM_PROFILER_H
#define RFL_RUNNER_PROGRAM_PROFILER_H

#include <stdbool.h>

#include "base/buf.h"
#include "profile/capture.h"
#include "profile/cupti/lib.h"

/** Strings are borrowed. */
struct rfl_profiler_config {
	const char *tool; /**< "ncu" or "nsys" */
	/* of ncu: */
	const char *chip;      /**< whose metrics are counted; NULL: of the first GPU */
	const char *precision; /**< of the matrix FLOPs; NULL: all */
	const char *replay;    /**< "kernel", "application" */
	const char *nvtx;      /**< filter of ranges; NULL: all kernels */

	int from_call;                  /**< only from cudaProfilerStart() to cudaProfilerStop() */
	struct rfl_cupti_places places; /**< where to look for CUPTI, which checks the metrics */
};

struct rfl_profiler;

/** Find the profiler and choose its options. Returns RFL_EUNAVAILABLE if it is not installed or the
 * chip is not known. */
enum rfl_rc rfl_profiler_new(const struct rfl_profiler_config *config, struct rfl_profiler **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_profiler_free(struct rfl_profiler *p); /* accepts NULL */
RFL_AUTOPTR_TYPE(profiler, free);

/** Why FLOPs and bytes are not counted on the CPU, and how to count them. */
const char *rfl_profiler_no_work(const struct rfl_profiler *p);

/** Run a command under the profiler.
 * @param log_dir,run_id  the files are log_dir/ncu/run_id.csv and similar
 * @param captures  one is added on success
 * @param status    set if the command itself failed under the profiler: as a shell reports it
 * @param warnings  lines for the user
 * @return RFL_OK; RFL_EUNAVAILABLE if nothing was counted, with the reason and the remedy;
 *         RFL_EFAILED if the command or the profiler failed */
enum rfl_rc rfl_profiler_run(const struct rfl_profiler *p, const char *const *argv,
			     const char *log_dir, const char *run_id, struct rfl_captures *captures,
			     int *status, struct rfl_buf *warnings,
			     struct rfl_err *err) RFL_WARN_UNUSED;

#endif
