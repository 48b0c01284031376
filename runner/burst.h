/*
 * burst.h - the measured burst: warm-up steps, then a window of steps in which nothing is printed,
 * allocated or waited for that training itself would not.
 */
#ifndef RFL_RUNNER_BURST_H
#define RFL_RUNNER_BURST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/nvtx.h"
#include "data/data.h"
#include "runner/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rfl_run_mode {
	RFL_RUN_TRAIN,   /**< forward, backward, optimizer */
	RFL_RUN_FWD,     /**< forward in evaluation mode: no graph is kept */
	RFL_RUN_FWD_BWD, /**< forward and backward in training mode */
};

/** Steps that run before one is recorded for replay (cuda_graph). */
#define RFL_BURST_GRAPH_WARMUP 3

/** "train", "fwd", "fwd_bwd", NULL. */
extern const char *const rfl_run_mode_names[];

/** How finely the ranges of a step are told apart. */
enum rfl_detail { RFL_DETAIL_OFF, RFL_DETAIL_STEP, RFL_DETAIL_PHASE, RFL_DETAIL_LAYER };

/** "off", "step", "phase", "layer", NULL. */
extern const char *const rfl_detail_names[];

/** One step. A phase that the mode does not have, or that was not timed by itself, is NaN. */
struct rfl_burst_step {
	double data_wait_s, upload_s, forward_s, backward_s, optimizer_s;
	double total_s; /**< together, by one clock */
	double loss;    /**< NaN when it was not read at this step */
};

struct rfl_burst_config {
	enum rfl_run_mode mode;
	int64_t warmup, iters; /**< iters at least 1 */
	/**
	 * The device works while we go on (a GPU). Then the step ends with a sync, phases are not
	 * told apart, and only the last loss is read.
	 */
	bool asynchronous;
	/**
	 * Ranges for a tool that listens, around the steps of the window: "step"; in it "fwd",
	 * "bwd", "opt"; in those one per layer, which needs ops->mark. NULL: none.
	 */
	struct rfl_nvtx *nvtx;
	enum rfl_detail nvtx_detail;
	/** Called after each warm-up step and once more before the window, never in it. May be
	 * NULL. */
	void (*progress)(int64_t done, int64_t total, void *ctx);
	void *ctx;
};

struct rfl_burst {
	int64_t nsteps;
	struct rfl_burst_step *steps; /**< of the window */
	double wall_s;     /**< the window, from before its first step to after its last */
	double ttfb_s;     /**< the very first step, warm-up included */
	double loss_first; /**< of the very first step */
	double loss_last;  /**< of the last step of the window */
};

/** Make room for iters steps; everything "not known". RFL_ENOMEM. */
enum rfl_rc rfl_burst_init(struct rfl_burst *b, int64_t iters, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_burst_fini(struct rfl_burst *b);

/**
 * Run it. The window is also the one that profilers are told of (rfl_profiler_start, _stop).
 * @param burst  initialised for config->iters steps; filled here
 * @return RFL_OK, or what the engine or the data returned
 */
enum rfl_rc rfl_burst_run(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			  struct rfl_data *data, const struct rfl_burst_config *config,
			  struct rfl_burst *burst, struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
