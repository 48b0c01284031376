/*
 * burst.h - the measured burst: warm-up steps, then a window of timed steps. Apart from progress
 * reports, nothing but training runs in the window.
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
	RFL_RUN_FWD,     /**< forward in evaluation mode, without an autograd graph */
	RFL_RUN_FWD_BWD, /**< forward and backward in training mode */
	RFL_RUN_DECODE,  /**< a language model with a cache: one token of each sequence */
	RFL_RUN_PREFILL, /**< the same: several tokens, the prompt */
};

/** Whether a language model runs with a cache, in decode and prefill. */
bool rfl_run_mode_caches(enum rfl_run_mode mode);
/** Whether a step has a backward pass. */
bool rfl_run_mode_backward(enum rfl_run_mode mode);

/** Largest number of steps between two calls of rfl_burst_config.lapped. */
#define RFL_BURST_LAP 256

/** Number of steps to run before one is recorded for replay (cuda_graph). */
#define RFL_BURST_GRAPH_WARMUP 3

/** "train", "fwd", "fwd_bwd", "decode", "prefill", NULL. */
extern const char *const rfl_run_mode_names[];

/** Granularity of the ranges in a step. */
enum rfl_detail { RFL_DETAIL_OFF, RFL_DETAIL_STEP, RFL_DETAIL_PHASE, RFL_DETAIL_LAYER };

/** "off", "step", "phase", "layer", NULL. */
extern const char *const rfl_detail_names[];

/**
 * Measurements of one step. A phase is NaN if the mode lacks it or it was not timed separately.
 *
 * On a CPU, all times come from the host's clock, and the phases add up to the step. On a GPU,
 * data_wait_s and upload_s are host time, which overlaps the GPU's work; the other times are
 * measured between events in the GPU's queue.
 */
struct rfl_burst_step {
	double data_wait_s, upload_s, forward_s, backward_s, optimizer_s;
	double total_s; /**< duration of the step, measured by one clock */
	double loss;    /**< mean over the forward passes; NaN if it was not read */
};

struct rfl_burst_config {
	enum rfl_run_mode mode;
	int64_t warmup, iters; /**< iters: at least 1 */
	int64_t accum;         /**< forward passes (and batches) per step; 0 means 1 */
	int64_t past; /**< with a cache: tokens in it before the first step of the window, and
			   before each warm-up step; each step of a decode adds one */
	/** The device works asynchronously (a GPU). Steps are timed by events in its queue, without
	 * waiting for it, and only the last loss is read. Without events, every step ends with a
	 * sync, and phases are not timed. */
	bool asynchronous;
	bool sync_each_step; /**< sync after every step; the host's clock times the steps */
	bool cuda_graph;     /**< record a step after RFL_BURST_GRAPH_WARMUP steps, and replay it */
	/** Keep running after the window until the relative standard error of the mean step time,
	 * corrected for autocorrelation, is at most this; 0: stop after the window. */
	double until_stdrel;
	double until_max_s; /**< time limit for until_stdrel */
	/** NVTX ranges, if a tool receives them (rfl_nvtx_open()): "step" for each step of the
	 * window, in it "fwd", "bwd" and "opt", and in these one per layer (requires ops->mark). */
	enum rfl_detail nvtx_detail;
	/** Reports progress: after each "warmup" step, before the "window", and at most five times
	 * a second during the window and the steps added by until_stdrel ("until", total 0). On an
	 * asynchronous device, a queued step counts as done. May be NULL. */
	void (*progress)(const char *phase, int64_t done, int64_t total, void *ctx);
	/** For a training run, which does more than its steps, the window consists of laps. lap()
	 * returns the length of the next lap, 1 to RFL_BURST_LAP steps; lapped() is called after
	 * each one, with the device idle, and its time is not part of the window. Both NULL: one
	 * lap. */
	int64_t (*lap)(int64_t done, void *ctx);
	enum rfl_rc (*lapped)(int64_t done, double wall_s, void *ctx, struct rfl_err *err);
	/** Steps of the window that were measured earlier: the burst already has them and wall_s.
	 */
	int64_t done;
	/** Called before the window to wait for other processes. May be NULL. */
	enum rfl_rc (*meet)(void *ctx, struct rfl_err *err);
	/** Called right before and right after the window. May be NULL. */
	void (*window)(bool begins, void *ctx);
	/** Called once all members of the burst except until_* are filled. May be NULL. */
	enum rfl_rc (*measured)(void *ctx, struct rfl_err *err);
	void *ctx;
};

struct rfl_burst {
	int64_t nsteps;
	struct rfl_burst_step *steps; /**< the steps of the window */
	double wall_s;                /**< duration of the window */
	double ttfb_s;                /**< duration of the very first step, warm-up included */
	double loss_first;            /**< loss of the very first step */
	double loss_last;             /**< loss of the last step of the window */
	double launch_gap; /**< 1 - (GPU time of all steps) / wall_s; NaN without events */
	bool synced;       /**< a GPU was synced after every step */
	/** Results over the window and the steps added by until_stdrel; 0 and NaN without it. */
	int64_t until_steps;
	double until_step_s, until_stdrel;
	bool until_missed; /**< until_max_s expired first */
};

/** Allocate iters steps and set all results to unknown. @return RFL_OK or RFL_ENOMEM */
enum rfl_rc rfl_burst_init(struct rfl_burst *b, int64_t iters, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_burst_fini(struct rfl_burst *b);

/**
 * Run a burst. Profilers record its window (rfl_profiler_start, rfl_profiler_stop).
 * @param burst  initialised for config->iters steps; filled here
 * @return RFL_OK, or the error of the engine or the data
 */
enum rfl_rc rfl_burst_run(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			  struct rfl_data *data, const struct rfl_burst_config *config,
			  struct rfl_burst *burst, struct rfl_err *err) RFL_WARN_UNUSED;

/* The standard error of a mean; public for tests. */

#define RFL_BURST__FEWEST  16 /* with fewer steps, the error is NaN */
#define RFL_BURST__BATCHES 64

/** Accumulates times as means of at most RFL_BURST__BATCHES batches of consecutive times.
 * Initialise to zero. */
struct rfl_burst__mean {
	int64_t n;
	double sum;
	int64_t per_batch; /* a power of two */
	size_t nbatches;
	double batches[RFL_BURST__BATCHES]; /* means */
	double open_sum;                    /* sum and size of the incomplete batch */
	int64_t open_n;
};

void rfl_burst__mean_add(struct rfl_burst__mean *m, double time_s);
/** Standard error divided by the mean; NaN with too few steps. */
double rfl_burst__mean_error(const struct rfl_burst__mean *m);

#endif
