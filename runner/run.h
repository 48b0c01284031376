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

#include "base/buf.h"
#include "base/err.h"
#include "data/data.h"
#include "ledger/label.h"
#include "ledger/ledger.h"
#include "profile/source.h"
#include "runner/burst.h"
#include "runner/engine.h"

#define RFL_RUN_DEVICE_AUTO (-1) /**< the best one here */
#define RFL_RUN_DATA_AUTO   (-1) /**< what --data holds; rfl_run() must know it */

/** "auto", then the devices; "auto", then the kinds of data: for options that begin at -1. */
extern const char *const rfl_run_device_choices[];
extern const char *const rfl_run_data_choices[];

/** What to do when a batch does not fit: the values of rfl_run_config.oom. */
enum rfl_oom_policy {
	RFL_OOM_RECORD, /**< the row says oom */
	RFL_OOM_SHRINK, /**< then try smaller batches until one fits: a row each */
	RFL_OOM_SEARCH, /**< find the largest batch that fits: a row each */
};

/** "record", "shrink", "search", NULL. */
extern const char *const rfl_oom_policy_names[];

#define RFL_RUN_C_TEXT   const char *
#define RFL_RUN_C_INT    int64_t
#define RFL_RUN_C_REAL   double
#define RFL_RUN_C_FLAG   bool
#define RFL_RUN_C_CHOICE int

/** What a run is, from the command line to the ledger. Its members are the facts of run/facts.inc,
 * where a new one is a row, and what cannot be written as an option. Texts are borrowed. */
struct rfl_run_config {
#define FACT(kind, member, ...) RFL_RUN_C_##kind member;
#include "runner/run/facts.inc"
	double until_stdrel; /**< keep running after iters until the standard error of the mean step
				  time is no more than this part of it; 0: do not */
	int64_t counter_sets; /**< RFL_SET_*; 0: what rfl_counted_sets() says */
	struct rfl_world world;
	struct rfl_cupti_places places; /**< where to look for CUPTI */
	const char *nvtx_injection;     /**< the library of the tool that listens; NULL: none */
	const char *const *plugin_dirs; /**< NULL-terminated */
};

/** The source of counters that serves a backend: rfl_source_for(). */
typedef enum rfl_rc (*rfl_run_source_fn)(const char *backend, const struct rfl_source_ops **ret,
					 struct rfl_err *err);

/** What surrounds a run: the program that starts it. */
struct rfl_run_host {
	const char *command_line; /**< as the user wrote it, for the time log */
	const char *cell;         /**< id of a matrix's cell, for the row; NULL: none */
	int64_t requested_batch;  /**< samples per step that were asked for; 0: those that run */
	rfl_run_source_fn source_for; /**< for config->in_process only; NULL: rfl_source_for */
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
 * the row of its rank, <label>_rank<R>, and rank 0 after it the row of all, <label>, which is then
 * its result: the samples of all over the window of the slowest.
 *
 * @param ret  filled whenever a row was written; release with rfl_run_result_fini() in any case
 * @return RFL_OK when the row was written, whatever its status says; RFL_EINVAL, RFL_ENOTFOUND and
 *         the like when the run was refused before it began (no row); what failed after it began,
 *         as a file that could not be written: ret->recorded says whether the row was, and its
 *         error_text has the reason where the run itself is ok
 */
enum rfl_rc rfl_run(const struct rfl_run_config *config, const struct rfl_run_host *host,
		    struct rfl_run_result *ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_run_result_fini(struct rfl_run_result *r);

/**
 * rfl_run() under config->oom, the policy for batches that do not fit: a run, a child and a row for
 * each attempt. A label that was given carries the batch of its attempt: _bs64 becomes _bs48.
 * @param ret  of the largest batch that fits, else of the last attempt; release in any case
 */
enum rfl_rc rfl_run_fitting(const struct rfl_run_config *config, const struct rfl_run_host *host,
			    struct rfl_run_result *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * rfl_run() as config->world.size processes on this machine, which it starts: one child for each
 * rank. When one does not end well the others are stopped.
 * @param ret  the row of all; release in any case
 */
enum rfl_rc rfl_run_local(const struct rfl_run_config *config, const struct rfl_run_host *host,
			  struct rfl_run_result *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The batch that shrink tries after this one: 64, 48, 32, 24 ... 3, 2, 1; 0 after 1. */
int64_t rfl_oom_smaller(int64_t batch);

/** The batch that search tries, 0 when there is nothing between. @param does_not  0: none known */
int64_t rfl_oom_between(int64_t fits, int64_t does_not);

/** getenv() or a test's stand-in: NULL when the variable is not set. */
typedef const char *(*rfl_world_env_fn)(const char *name, void *ctx);

/**
 * Who are we? The first launcher of docs/run.md whose variables are set decides; none: one
 * process.
 * @return RFL_OK; RFL_EINVAL naming the variable whose value is not a rank, size or port, or the
 *         one that is missing beside the others
 */
enum rfl_rc rfl_world_from_env(rfl_world_env_fn env, void *ctx, struct rfl_world *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The GPU of a process of several on a machine: what its CUDA_VISIBLE_DEVICES must be.
 * @param visible  what the variable says now; NULL: it is not set
 * @return false: as it is; the launcher has given each process its own
 */
bool rfl_world_gpu(const char *visible, int local_rank, char ret[64]);

/** The descriptor on which a child reports. */
#define RFL_RUN_REPORT_FD 3

/**
 * The child's whole work: reads a configuration (JSON) from a descriptor, runs it and reports JSON
 * lines. A failure is reported as well as returned.
 * @param source_for  a test's choice of sources; NULL: rfl_source_for
 */
enum rfl_rc rfl_run_child(int config_fd, int report_fd, rfl_run_source_fn source_for,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** The summary of a row as one line: label, status, throughput, step time, phases, loss. Not the
 * error_text of a run that failed. */
void rfl_run_summary(const struct rfl_ledger_row *row, struct rfl_buf *out);

#endif
