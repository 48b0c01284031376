/*
 * run.h - one measured run, from its configuration to its row in the ledger.
 *
 * The parent (rfl_run) starts a child (rfl_run_child), which opens the engine and reports to the
 * parent. The parent writes the row however the child ends.
 */
#ifndef RFL_RUNNER_RUN_H
#define RFL_RUNNER_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "data/data.h"
#include "ledger/epochs.h"
#include "ledger/label.h"
#include "ledger/ledger.h"
#include "profile/source.h"
#include "runner/burst.h"
#include "runner/engine.h"

#define RFL_RUN_DEVICE_AUTO (-1) /**< the best one available */
#define RFL_RUN_DATA_AUTO   (-1) /**< detect it; resolve it before rfl_run() */

/** "auto" (-1), then the devices; "auto" (-1), then the kinds of data. */
extern const char *const rfl_run_device_choices[];
extern const char *const rfl_run_data_choices[];

/** What --env names, and its default, which is the same in all commands. */
#define RFL_ENV_HELP                                                                           \
	"name of the environment in the ledger and the peaks file; default: the device (cpu, " \
	"cuda, mps)"

/** The device of an environment if no engine has chosen one: cuda if the NVIDIA driver finds a GPU,
 * else cpu. */
const char *rfl_run_likely_device(void);

/** How the weights of a language model with a cache are stored: the values of
 * rfl_run_config.weights. */
enum rfl_run_weights {
	RFL_WEIGHTS_PLAIN, /**< in the precision */
	RFL_WEIGHTS_INT8,
};

/** "plain", "int8", NULL. */
extern const char *const rfl_run_weights_names[];

/** Policies for a batch that does not fit in memory: the values of rfl_run_config.oom. */
enum rfl_oom_policy {
	RFL_OOM_RECORD, /**< record "oom" in the row */
	RFL_OOM_SHRINK, /**< try smaller batches until one fits; write a row for each */
	RFL_OOM_SEARCH, /**< find the largest batch that fits; write a row for each */
};

/** "record", "shrink", "search", NULL. */
extern const char *const rfl_oom_policy_names[];

#define RFL_RUN_C_TEXT   const char *
#define RFL_RUN_C_INT    int64_t
#define RFL_RUN_C_REAL   double
#define RFL_RUN_C_FLAG   bool
#define RFL_RUN_C_CHOICE int

/** The configuration of a run: the options listed in run/facts.inc, and members that are not
 * options. Strings are borrowed. */
struct rfl_run_config {
#define FACT(kind, member, ...) RFL_RUN_C_##kind member;
#include "runner/run/facts.inc"
	/* ---- a training run to accuracy instead of a burst; iters is set to its number of steps
	 * ----
	 */
	int64_t epochs;           /**< evaluate after each; 0: a burst */
	int64_t lr_step;          /**< multiply lr by lr_gamma every so many epochs; 0: never */
	double lr_gamma;          /**< see lr_step */
	double rotation;          /**< see struct rfl_data_spec */
	const char *checkpoint;   /**< file that is replaced after each epoch */
	int64_t checkpoint_steps; /**< also replace it every so many steps; 0: never */
	bool resume;              /**< continue from the checkpoint if it exists */

	double until_stdrel;  /**< keep running after iters until the relative standard error of the
				   mean step time is at most this; 0: stop after iters */
	int64_t counter_sets; /**< RFL_SET_*; 0: the default of rfl_counted_sets() */
	struct rfl_world world;
	struct rfl_cupti_places places; /**< where to look for CUPTI */
	const char *nvtx_injection;     /**< library of the tool that receives ranges, or NULL */
	const char *const *plugin_dirs; /**< NULL-terminated */
};

/** The state of a run, or of a training run. */
struct rfl_run_progress {
	/** "setup", those of rfl_burst_config.progress, "memory", "counting"; of a training also
	 * "train" and "test". Borrowed. */
	const char *phase;
	int64_t done, total; /**< steps of the phase, or batches of the evaluation */
	/* training runs only: */
	int64_t epoch, epochs; /**< number of the current epoch, from 1; 0: not a training */
	double loss, accuracy; /**< over the epoch so far, 0 to 1 */
	double left_s;         /**< estimate for all remaining epochs; NaN: unknown */
};

/** Choose the source of counters for a backend, like rfl_source_for(). */
typedef enum rfl_rc (*rfl_run_source_fn)(const char *backend, const struct rfl_source_ops **ret,
					 struct rfl_err *err);

/** The program that starts a run. */
struct rfl_run_host {
	const char *command_line; /**< as the user wrote it, for the time log */
	const char *cell;         /**< id of the matrix cell, for the row; NULL: none */
	/** Append the command that repeats the run, for its row. NULL: unknown */
	void (*command)(const struct rfl_run_config *config, const struct rfl_ledger_row *row,
			struct rfl_buf *out);
	int64_t requested_batch;      /**< requested samples per step; 0: as configured */
	rfl_run_source_fn source_for; /**< for config->in_process only; NULL: rfl_source_for */
	/** NULL-terminated command of the child, which must call rfl_run_child(). */
	const char *const *child_argv;
	const char *const *child_env; /**< NULL-terminated list of "NAME=value", or NULL */
	/** Value of CUDA_VISIBLE_DEVICES, or NULL. Several processes on a machine each get one of
	 * these GPUs. */
	const char *visible_gpus;
	bool (*cancelled)(void *ctx); /**< called ten times a second; may be NULL */
	/** Why cancelled() returned true, for the row; NULL: interrupted by the user. Borrowed. */
	const char *(*why_cancelled)(void *ctx);
	/** Called at most five times a second in each phase. May be NULL. */
	void (*progress)(const struct rfl_run_progress *progress, void *ctx);
	/** An epoch is complete. May be NULL. @param earlier  before the training was continued */
	void (*epoch)(const struct rfl_epoch *row, bool earlier, void *ctx);
	/** Receives a row that could not be written to the ledger, so that it is not lost. May be
	 * NULL; with several processes it is called from several threads. */
	void (*unrecorded)(const char *ledger, const struct rfl_ledger_row *row, void *ctx);
	/** rfl_run_fitting() has written a row and will try another batch. May be NULL. */
	void (*attempt)(const struct rfl_ledger_row *row, int64_t next_batch, void *ctx);
	void *ctx;
};

struct rfl_run_result {
	struct rfl_ledger_row row;
	enum rfl_rc rc;           /**< the reason if status is not "ok", else RFL_OK */
	bool recorded;            /**< the row is in the ledger */
	char time_log[4096];      /**< path of the time log */
	char steps_file[4096];    /**< "" if no step was measured */
	char counters_file[4096]; /**< "" if nothing was counted */
	struct rfl_epochs epochs; /**< of a training run, including those before it was continued */
	char libraries[256];      /**< that compute GEMMs on the CPU; "": unknown */
	char memory_file[4096];   /**< "" if the memory of a step was not recorded */
	double memory_bytes;      /**< of the device, or the limit of the processes; 0: unknown */
};

/**
 * Do one run and write its files: logs/steps/<run_id>.csv, logs/epochs/<run_id>.csv for a training
 * run, logs/time/<label>_<stamp>.txt, rows in logs/counters.csv if counters were requested,
 * logs/memory/<run_id>.csv if the memory of a step was, and finally the row in logs/metrics.csv.
 *
 * If config->world.size exceeds 1, each of several processes calls this and writes the row of its
 * rank, <label>_rank<R>. Rank 0 then writes and returns the combined row, <label>: the samples of
 * all processes over the window of the slowest.
 *
 * @param ret  filled whenever a row was written; always release it with rfl_run_result_fini()
 * @return RFL_OK if the row was written, whatever its status; an error such as RFL_EINVAL or
 *         RFL_ENOTFOUND if the run was refused before it began (no row); otherwise the first
 *         failure, such as a file that could not be written (see ret->recorded and the row's
 *         error_text)
 */
enum rfl_rc rfl_run(const struct rfl_run_config *config, const struct rfl_run_host *host,
		    struct rfl_run_result *ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_run_result_fini(struct rfl_run_result *r);

/**
 * rfl_run() with config->oom, the policy for batches that do not fit: each attempt has its own
 * child and row. A label in the configuration is adapted to each attempt: _bs64 becomes _bs48.
 * A search does not try batches whose predicted memory exceeds the device's.
 * @param ret  the run with the largest batch that fits, else the last attempt; always release it
 */
enum rfl_rc rfl_run_fitting(const struct rfl_run_config *config, const struct rfl_run_host *host,
			    struct rfl_run_result *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Start config->world.size processes on this machine, one rfl_run() for each rank. If one fails,
 * the others are stopped.
 * @param ret  the combined row of all processes; always release it
 */
enum rfl_rc rfl_run_local(const struct rfl_run_config *config, const struct rfl_run_host *host,
			  struct rfl_run_result *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The batch that shrink tries after this one: 64, 48, 32, 24 ... 3, 2, 1; 0 after 1. */
int64_t rfl_oom_smaller(int64_t batch);

/** The batch that search tries next; 0: none is left. @param does_not  0: unknown */
int64_t rfl_oom_between(int64_t fits, int64_t does_not);

/** getenv(), or its replacement in a test. */
typedef const char *(*rfl_world_env_fn)(const char *name, void *ctx);

/**
 * Read rank, size and address from the variables of the active launcher, the first one in the order
 * of docs/reference/run.md. Without a launcher, *ret describes a single process.
 * @return RFL_OK; RFL_EINVAL naming the variable that is missing or is not a rank, size or port
 */
enum rfl_rc rfl_world_from_env(rfl_world_env_fn env, void *ctx, struct rfl_world *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The value of CUDA_VISIBLE_DEVICES that gives a process its own GPU.
 * @param visible  the current value; NULL: not set
 * @return false if the launcher has already given each process its GPU: leave the value unchanged
 */
bool rfl_world_gpu(const char *visible, int local_rank, char ret[64]);

/** The file descriptor on which a child reports. */
#define RFL_RUN_REPORT_FD 3

/**
 * The child: reads a configuration (JSON) from a descriptor, runs it and reports JSON lines. A
 * failure is both reported and returned.
 * @param source_for  for tests; NULL: rfl_source_for
 * @param stopped     whether a training run has to write a checkpoint and end; NULL: never
 */
enum rfl_rc rfl_run_child(int config_fd, int report_fd, rfl_run_source_fn source_for,
			  bool (*stopped)(void), struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the summary of a row as one line: label, status, throughput, step time, phases, loss, but
 * not error_text. */
void rfl_run_summary(const struct rfl_ledger_row *row, struct rfl_buf *out);

/** Whether a measured run with --backend auto used the CPU, because no GPU is usable. */
bool rfl_run_found_no_gpu(const struct rfl_ledger_row *row);

/** Append the command of a ledger row or, if an older version wrote it, a 'roofline run' command
 * with the options that its columns record, except those at their default. */
void rfl_run_command(const struct rfl_ledger_row *row, struct rfl_buf *out);

/** Name the libraries of this process that compute GEMMs on the CPU: "OpenBLAS 0.3.21
 * (Haswell kernels), oneDNN 2.6.3"; "" if none is visible. */
void rfl_run_libraries(char *out, size_t size);

#endif
