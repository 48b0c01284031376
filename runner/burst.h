/*
 * burst.h - the measured burst: warm-up steps, then a window of steps in which nothing is printed,
 * allocated or waited for that training itself would not, except to report progress.
 */
#ifndef RFL_RUNNER_BURST_H
#define RFL_RUNNER_BURST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/cupti/nvtx.h"
#include "data/data.h"
#include "runner/engine.h"

enum rfl_run_mode {
	RFL_RUN_TRAIN,   /**< forward, backward, optimizer */
	RFL_RUN_FWD,     /**< forward in evaluation mode: no graph is kept */
	RFL_RUN_FWD_BWD, /**< forward and backward in training mode */
};

/** Steps that run before one is recorded for replay (cuda_graph). */
#define RFL_BURST_GRAPH_WARMUP 3

/** "train", "fwd", "fwd_bwd", NULL. */
extern const char *const rfl_run_mode_names[];

/** How fine the ranges of a step are. */
enum rfl_detail { RFL_DETAIL_OFF, RFL_DETAIL_STEP, RFL_DETAIL_PHASE, RFL_DETAIL_LAYER };

/** "off", "step", "phase", "layer", NULL. */
extern const char *const rfl_detail_names[];

/**
 * One step. A phase that the mode does not have, or that was not timed by itself, is NaN.
 *
 * On a processor all of it is by the clock of this machine, and the phases add up to the step. On a
 * GPU data_wait_s and upload_s are what this thread spent on them, beside the GPU's work; the rest
 * is the GPU's own time between two marks in its queue.
 */
struct rfl_burst_step {
	double data_wait_s, upload_s, forward_s, backward_s, optimizer_s;
	double total_s; /**< together, by one clock */
	double loss;    /**< mean over its forwards; NaN when it was not read at this step */
};

struct rfl_burst_config {
	enum rfl_run_mode mode;
	int64_t warmup, iters; /**< iters at least 1 */
	int64_t accum;         /**< forwards (and batches) per step; 0 is 1 */
	/**
	 * The device works on its own (a GPU). Steps are timed by marks in its queue and no one
	 * waits in the window; only the last loss is read. A device without marks is waited for at
	 * the end of every step, and phases are not distinguished.
	 */
	bool asynchronous;
	bool sync_each_step; /**< wait all the same; steps are timed by the clock */
	bool cuda_graph;     /**< record a step after RFL_BURST_GRAPH_WARMUP and replay it */
	/** Keep running after the window until the standard error of the mean step time, which
	 * allows for neighbours that are alike, is no more than this part of it; 0: do not. */
	double until_stdrel;
	double until_max_s; /**< and no longer than this */
	/**
	 * Ranges for a tool that listens, around the steps of the window: "step"; in it "fwd",
	 * "bwd", "opt"; in those one per layer, which needs ops->mark. NULL: none.
	 */
	struct rfl_nvtx *nvtx;
	enum rfl_detail nvtx_detail;
	/** Called after each step of the "warmup", before the "window" and at most five times a
	 * second between its steps and those added by until_stdrel ("until", total 0). A step is
	 * done when a device that works on its own was asked for it. May be NULL. */
	void (*progress)(const char *phase, int64_t done, int64_t total, void *ctx);
	/** Called before the window: wait until other processes are there, too. May be NULL. */
	enum rfl_rc (*meet)(void *ctx, struct rfl_err *err);
	/** Called right before the window, and right after it. May be NULL. */
	void (*window)(bool begins, void *ctx);
	/** Called when the burst has everything but its until_ members. May be NULL. */
	enum rfl_rc (*measured)(void *ctx, struct rfl_err *err);
	void *ctx;
};

struct rfl_burst {
	int64_t nsteps;
	struct rfl_burst_step *steps; /**< of the window */
	double wall_s;     /**< the window, from before its first step to after its last */
	double ttfb_s;     /**< the very first step, warm-up included */
	double loss_first; /**< of the very first step */
	double loss_last;  /**< of the last step of the window */
	double launch_gap; /**< 1 - the GPU's time in steps / wall_s; NaN without marks */
	bool synced;       /**< a GPU was waited for after every step */
	/** With until_stdrel: over the window and the steps after it; 0 and NaN without. */
	int64_t until_steps;
	double until_step_s, until_stdrel;
	bool until_missed; /**< the time was up before the error was so small */
};

/** Make room for iters steps; everything "not known". RFL_ENOMEM. */
enum rfl_rc rfl_burst_init(struct rfl_burst *b, int64_t iters, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_burst_fini(struct rfl_burst *b);

/**
 * Run it. The window is also the one that profilers record (rfl_profiler_start, _stop).
 * @param burst  initialised for config->iters steps; filled here
 * @return RFL_OK, or what the engine or the data returned
 */
enum rfl_rc rfl_burst_run(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			  struct rfl_data *data, const struct rfl_burst_config *config,
			  struct rfl_burst *burst, struct rfl_err *err) RFL_WARN_UNUSED;

/* How well a mean is known; here for its test. */

#define RFL_BURST__FEWEST  16 /* with fewer steps nothing is said */
#define RFL_BURST__BATCHES 64

/** Times that come one by one, in batches of so many neighbours that there are never more than
 * RFL_BURST__BATCHES of them. Begins as zeros. */
struct rfl_burst__mean {
	int64_t n;
	double sum;
	int64_t per_batch; /* a power of two */
	size_t nbatches;
	double batches[RFL_BURST__BATCHES]; /* means */
	double open_sum;                    /* of the batch that is not full yet */
	int64_t open_n;
};

void rfl_burst__mean_add(struct rfl_burst__mean *m, double time_s);
/** Standard error of the mean over the mean; NaN with too few steps. */
double rfl_burst__mean_error(const struct rfl_burst__mean *m);

#endif
