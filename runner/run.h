/*
 * run.h - one measured run, from its configuration to its row in the ledger.
 *
 * The parent (rfl_run) never opens an engine: it execs a child, which does (rfl_run_child), and
 * listens to what the child reports. Whatever becomes of the child, the parent writes the row.
 */
#ifndef RFL_RUNNER_RUN_H
#define RFL_RUNNER_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "data/data.h"
#include "profile/source.h"
#include "runner/burst.h"
#include "runner/engine.h"
#include "runner/world.h"
#include "ledger/label.h"
#include "ledger/ledger.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RFL_RUN_DEVICE_AUTO (-1)

/** What to do when a batch does not fit. */
enum rfl_oom_policy {
	RFL_OOM_RECORD, /**< the row says oom */
	RFL_OOM_SHRINK, /**< then try smaller batches until one fits: a row each */
	RFL_OOM_SEARCH, /**< find the largest batch that fits: a row each */
};

/** "record", "shrink", "search", NULL. */
extern const char *const rfl_oom_policy_names[];

/** What is measured. Texts are borrowed. */
struct rfl_run_config {
	const char *arch;
	int64_t image_size; /**< 0: the model's own */
	int64_t batch;      /**< samples of an optimizer step */
	enum rfl_run_mode mode;
	int device; /**< enum rfl_device, or RFL_RUN_DEVICE_AUTO: the best one here */
	enum rfl_precision precision;
	enum rfl_layout layout;
	const char *engine;             /**< "auto", "torch", "torch@2.11", or a plugin's id */
	const char *const *plugin_dirs; /**< NULL-terminated */
	struct rfl_optimizer optimizer;
	uint64_t seed; /**< of dropout */
	bool deterministic;
	int threads; /**< at least 1 */
	struct rfl_data_spec data;
	int64_t warmup, iters;
	int64_t accum; /**< forwards per optimizer step, at least 1; each has batch / accum */
	int64_t context_length; /**< of a language model; 0: the model's own */
	bool cudnn_benchmark;
	bool cuda_graph;     /**< record a step and replay it */
	bool sync_each_step; /**< wait for the device after every step */
	double until_stdrel; /**< go on behind iters until the standard error of the mean step time
				  is no more than this part of it; 0: do not */
	double until_max_s;  /**< and no longer than this */
	struct rfl_world world;
	enum rfl_detail counters;       /**< ranges of the counted steps; off: none are run */
	unsigned counter_sets;          /**< RFL_SET_*; 0: what rfl_counted_sets() says */
	struct rfl_cupti_places places; /**< where to look for CUPTI */
	enum rfl_detail nvtx;           /**< ranges of the window that a tool is told of */
	const char *nvtx_injection;     /**< the tool's library; NULL: nobody listens */
};

/** The source of counters that serves a backend: rfl_source_for(). */
typedef enum rfl_rc (*rfl_run_source_fn)(const char *backend, const struct rfl_source_ops **ret,
					 struct rfl_err *err);

/** What is made of it. */
struct rfl_run_options {
	const char *label; /**< NULL: made, with the next free number */
	const char *env;   /**< NULL: from the label, else the backend */
	const char *log_dir;
	const char *command_line; /**< as the user wrote it, for the time log */
	const char *cell;         /**< id of a matrix's cell, for the row; NULL: none */
	int64_t requested_batch;  /**< what was asked for, when batch is another; 0: it is not */
	double timeout_s;         /**< 0: none */
	bool in_process; /**< no child: for debuggers and profilers. No timeout, and a crash
			      takes the row with it */
	rfl_run_source_fn source_for; /**< in_process only; NULL: rfl_source_for */
	/** Program and arguments of the child, NULL-terminated: what ends in rfl_run_child(). */
	const char *const *child_argv;
	const char *const *child_env; /**< "NAME=value", added to ours; NULL-terminated, or NULL */
	/** What CUDA_VISIBLE_DEVICES says: of several processes on a machine each gets its own of
	 * these GPUs. NULL: it is not set. */
	const char *visible_gpus;
	bool (*cancelled)(void *ctx); /**< asked ten times a second; may be NULL */
	/** Why cancelled() said true, for the row; may be NULL: the user asked for it. Borrowed. */
	const char *(*why_cancelled)(void *ctx);
	/** "setup", "warmup", "window", "until", "counting"; see rfl_burst_config. May be NULL. */
	void (*progress)(const char *phase, int64_t done, int64_t total, void *ctx);
	/** A row that could not be written to the ledger: what was measured would be lost. May be
	 * NULL; of several processes it comes from several threads. */
	void (*unrecorded)(const char *ledger, const struct rfl_ledger_row *row, void *ctx);
	/** Of rfl_run_fitting(): a row was written, another batch size is tried. May be NULL. */
	void (*attempt)(const struct rfl_ledger_row *row, int64_t next_batch, void *ctx);
	void *ctx;
};

struct rfl_run_result {
	struct rfl_ledger_row row;
	enum rfl_rc rc;           /**< why status is not ok; RFL_OK when it is */
	bool recorded;            /**< the row is in the ledger */
	char time_log[4096];      /**< path of the process record */
	char steps_file[4096];    /**< "" when no step was measured */
	char counters_file[4096]; /**< "" when nothing was counted */
};

/**
 * Do one run and write its files: logs/steps/<run_id>.csv, logs/time/<label>_<stamp>.txt, with
 * counters rows of logs/counters.csv and, last, the row in logs/metrics.csv.
 *
 * With config->world.size above 1 this process is one of several, all of which do this: each writes
 * the row of its rank, <label>_rank<R>, and rank 0 behind it the row of all, <label>, which is then
 * its result: the samples of all over the window of the slowest.
 *
 * @param ret  filled whenever a row was written; release with rfl_run_result_fini() in any case
 * @return RFL_OK when the row was written, whatever its status says; RFL_EINVAL, RFL_ENOTFOUND and
 *         the like when the run was refused before it began (no row); what failed after it began,
 *         as a file that could not be written: ret->recorded says whether the row was, and its
 *         error_text has the reason where the run itself is ok
 */
enum rfl_rc rfl_run(const struct rfl_run_config *config, const struct rfl_run_options *options,
		    struct rfl_run_result *ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_run_result_fini(struct rfl_run_result *r);

/**
 * rfl_run() under a policy for batches that do not fit: a run, a child and a row for each attempt.
 * A label that was given carries the batch of its attempt: _bs64 becomes _bs48.
 * @param ret  of the largest batch that fits, else of the last attempt; release in any case
 */
enum rfl_rc rfl_run_fitting(const struct rfl_run_config *config,
			    const struct rfl_run_options *options, enum rfl_oom_policy policy,
			    struct rfl_run_result *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * rfl_run() as config->world.size processes on this machine, which it starts: one child for each
 * rank. When one does not end well the others are stopped.
 * @param ret  the row of all; release in any case
 */
enum rfl_rc rfl_run_local(const struct rfl_run_config *config,
			  const struct rfl_run_options *options, struct rfl_run_result *ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** The batch that shrink tries behind this one: 64, 48, 32, 24 ... 3, 2, 1; 0 behind 1. */
int64_t rfl_oom_smaller(int64_t batch);

/** The batch that search tries, 0 when there is nothing between. @param does_not  0: none known */
int64_t rfl_oom_between(int64_t fits, int64_t does_not);

/** The descriptor on which a child reports. */
#define RFL_RUN_REPORT_FD 3

/**
 * The child's whole work: reads a configuration (JSON) from a descriptor, runs it and reports JSON
 * lines. A failure is reported as well as returned.
 */
enum rfl_rc rfl_run_child(int config_fd, int report_fd, struct rfl_err *err) RFL_WARN_UNUSED;

/** The same with another choice of sources; for tests. */
enum rfl_rc rfl_run_child_with(int config_fd, int report_fd, rfl_run_source_fn source_for,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** The summary of a row as one line: label, status, throughput, step time, phases, loss. Not the
 * error_text of a run that failed. */
struct rfl_buf;
void rfl_run_summary(const struct rfl_ledger_row *row, struct rfl_buf *out);

#ifdef __cplusplus
}
#endif
#endif
