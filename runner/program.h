/*
 * program.h - runs any program as one measured "step": times it, counts it with perf events, and
 * records it in the ledger and in counters.csv. program/regions.h has the parts that the program
 * marks itself.
 */
#ifndef RFL_RUNNER_PROGRAM_H
#define RFL_RUNNER_PROGRAM_H

#include "base/buf.h"
#include "base/proc.h"
#include "base/stats.h"
#include "ledger/ledger.h"
#include "profile/capture.h"
#include "profile/source.h"
#include "runner/program/profiler.h"

/** Strings are borrowed. */
struct rfl_program_config {
	const char *const *argv; /**< NULL-terminated */
	const char *name;        /**< the model of the row */
	const char *label, *env; /**< NULL: generated */
	const char *backend;     /**< whose ceilings apply: "cpu" */
	const char *precision;   /**< NULL: in which most FLOPs were counted, else fp32 */
	const char *log_dir;     /**< of the ledger */
	const char *region;      /**< measure this region only; NULL: the whole program */
	const char *root;        /**< of /sys, for RAPL; "" outside tests */
	const char *command;     /**< command that repeats the run, for the row */
	double flops, bytes;     /**< known to the user; NaN: not given */
	int64_t repeats, warmup, batch;
	int all;        /**< wait for all descendants */
	double limit_s; /**< see struct rfl_launch_spec */
	bool multiplex, no_counters;
	/** Runs it once more, after the timed runs, and counts its work. NULL: none. */
	const struct rfl_profiler *profiler;
};

struct rfl_program_result {
	struct rfl_ledger_row row;
	bool ran, recorded, interrupted; /**< interrupted: by a signal to end */
	int status;            /**< as a shell reports it: 0, 1 to 125, 126, 127, 128 + N */
	struct rfl_stats time; /**< seconds, over the runs */
	struct rfl_proc_result process; /**< of the last run */
	struct rfl_captures captures;   /**< one, unless the program failed */
	struct rfl_captures profiled;   /**< of the profiler: one, unless it failed */
	int profiled_status;            /**< of the program under it */
	struct rfl_buf warnings;        /**< lines for the user */
	char ledger[4096], counters[4096];
};

/**
 * Run and record a program.
 * @param ret  filled also on failure; release with rfl_program_result_fini()
 * @return RFL_OK if the row was written, however the program ended; RFL_EUNAVAILABLE if it cannot
 * be executed; RFL_EINVAL if a name is not valid; RFL_EMISSING if it did not begin the region
 */
enum rfl_rc rfl_program_run(const struct rfl_program_config *config, struct rfl_program_result *ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;
/** The capture with the FLOPs and bytes of the program: the profiler's if it has them; NULL: none.
 */
const struct rfl_capture *rfl_program_work(const struct rfl_program_result *r);
void rfl_program_result_fini(struct rfl_program_result *r);

#endif
