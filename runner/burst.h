/*
 * burst.h - the measured burst: warm-up steps, then a window of steps. In the window nothing is
 * printed, allocated or waited for beyond what training itself does, except to report progress.
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
	RFL_RUN_FWD,     /**< forward in evaluation mode, without recording for backward */
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
 * One step. A phase that the mode does not have, or that was not timed separately, is NaN.
 *
 * On a processor all times are by the host's clock, and the phases add up to the step. On a GPU
 * data_wait_s and upload_s are host time, which overlaps with the GPU's work; the others are the
 * GPU's own time between two events in its queue.
 */
struct rfl_burst_step {
	double data_wait_s, upload_s, forward_s, backward_s, optimizer_s;
	double total_s; /**< the whole step, by one clock */
	double loss;    /**< mean over its forwards; NaN if it was not read at this step */
};

struct rfl_burst_config {
	enum rfl_run_mode mode;
	int64_t warmup, iters; /**< iters at least 1 */
	int64_t accum;         /**< forwards (and batches) per step; 0 is 1 */
	/** The device works asynchronously (a GPU). Steps are timed by events in its queue without
	 * waiting in the window, and only the last loss is read. A device without events is waited
	 * for at the end of every step, and phases are not distinguished. */
	bool asynchronous;
	bool sync_each_step; /**< wait nevertheless; steps are timed by the host's clock */
	bool cuda_graph;     /**< record a step after RFL_BURST_GRAPH_WARMUP and replay it */
	/** Keep running after the window until the relative standard error of the mean step time,
	 * corrected for autocorrelation, is at most this; 0: do not. */
	double until_stdrel;
	double until_max_s; /**< but no longer than this */
	/** NVTX ranges for a tool that listens (rfl_nvtx_open()): "step" for each step of the
	 * window; in it "fwd", "bwd", "opt"; in those one per layer, which needs ops->mark. */
	enum rfl_detail nvtx_detail;
	/** Called after each step of the "warmup", before the "window", and at most five times a
	 * second between its steps and those added by until_stdrel ("until", total 0). On an
	 * asynchronous device a queued step counts as done. May be NULL. */
	void (*progress)(const char *phase, int64_t done, int64_t total, void *ctx);
	/** Called before the window to wait for other processes. May be NULL. */
	enum rfl_rc (*meet)(void *ctx, struct rfl_err *err);
	/** Called right before the window, and right after it. May be NULL. */
	void (*window)(bool begins, void *ctx);
	/** Called when all of the burst except the until_ members is filled. May be NULL. */
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
	double launch_gap; /**< 1 - the GPU's time in steps / wall_s; NaN without events */
	bool synced;       /**< waited for a GPU after every step */
	/** With until_stdrel: over the window and the steps after it; 0 and NaN without. */
	int64_t until_steps;
	double until_step_s, until_stdrel;
	bool until_missed; /**< until_max_s passed first */
};

/** Make room for iters steps and set all results to unknown. RFL_ENOMEM. */
enum rfl_rc rfl_burst_init(struct rfl_burst *b, int64_t iters, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_burst_fini(struct rfl_burst *b);

/**
 * Run it. Profilers record the same window (rfl_profiler_start, _stop).
 * @param burst  initialised for config->iters steps; filled here
 * @return RFL_OK, or the error of the engine or the data
 */
enum rfl_rc rfl_burst_run(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			  struct rfl_data *data, const struct rfl_burst_config *config,
			  struct rfl_burst *burst, struct rfl_err *err) RFL_WARN_UNUSED;

/* The standard error of a mean; public for its test. */

#define RFL_BURST__FEWEST  16 /* the error of fewer steps is NaN */
#define RFL_BURST__BATCHES 64

/** Times, added one by one, as means of at most RFL_BURST__BATCHES batches of consecutive times.
 * Initialise with zeros. */
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
