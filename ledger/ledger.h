/*
 * ledger.h - logs/metrics.csv: an append-only table with one row per run. The struct, the header
 * row, the writer, the reader and the documentation test are generated from one list of columns.
 */
#ifndef RFL_LEDGER_LEDGER_H
#define RFL_LEDGER_LEDGER_H

#include "base/fields.h"
#include "ledger/repeats/row_index.h"

#define RFL_LEDGER_SCHEMA 5

/* clang-format off */
/* Columns added in version 2. They are empty if no steps were counted. */
#define RFL_LEDGER_COUNTER_COLUMNS(X) \
	X(TEXT, counters_source, "cupti or perf") \
	X(INT, counter_passes, "number of executions of the counted step") \
	X(REAL, counted_flops_per_step, "counted FLOPs of a step; empty if the count is partial or an estimate") \
	X(REAL, counted_dram_bytes_per_step, "counted bytes read from and written to memory; empty if the count is partial or an estimate") \
	X(REAL, idle_dram_bytes_per_s, "memory traffic of other programs, measured while the run was idle") \
	X(REAL, ipc, "instructions per cycle of the counted step, on a CPU") \
	X(REAL, cache_misses_per_step, "last-level cache misses of the counted step") \
	X(REAL, effective_clock_hz, "cycles per second of CPU time in the counted step") \
	X(REAL, selftest_flops_ratio, "ratio of counted to known FLOPs of a GEMM; the worst result") \
	X(REAL, selftest_dram_ratio, "ratio of counted to known bytes of a copy; the worst result")

/* X(kind, name, meaning), for RFL_FIELD(). Times are in ms per step unless the name has another
 * unit. */
#define RFL_LEDGER_COLUMNS(X) \
	X(INT, schema_version, "version of the column list") \
	X(TEXT, run_id, "unique id of the attempt") \
	X(TEXT, cell, "id of the configuration in a run matrix; empty for other runs") \
	X(TEXT, config_hash, "hash of all settings that must be equal for runs to be repeats") \
	X(INT, repeat, "N of _runN in the label") \
	X(TEXT, timestamp_utc, "start of the run, ISO 8601") \
	X(TEXT, label, "{env}_{model}_{precision}_bs{batch}_run{N}") \
	X(TEXT, env, "environment, a key of peaks.json") \
	X(TEXT, status, "ok, oom, timeout, failed, crash, nan, unsupported or interrupted") \
	X(INT, error_code, "signal or exit code if status is not ok") \
	X(TEXT, error_text, "error message, one line") \
	X(TEXT, engine, "library that ran the network, such as torch") \
	X(TEXT, engine_id, "plugin, such as torch-1.13-cpu") \
	X(TEXT, engine_version, "version reported by the library") \
	X(INT, plugin_abi, "ABI number of the plugin") \
	X(TEXT, backend, "cpu, cuda or mps") \
	X(TEXT, backend_reason, "why auto chose this backend; empty if it was requested") \
	X(TEXT, device_name, "device name reported by the system") \
	X(TEXT, pci_bus_id, "PCI bus id of the GPU") \
	X(REAL, device_memory_bytes, "memory of the device") \
	X(TEXT, cuda_runtime, "CUDA version with which the engine was built") \
	X(TEXT, cuda_driver, "newest CUDA version supported by the driver") \
	X(TEXT, cudnn_version, "version of the loaded cuDNN library") \
	X(TEXT, model, "model name, as listed by 'roofline list models'") \
	X(INT, params, "number of trainable parameters") \
	X(INT, batch, "samples per optimizer step") \
	X(INT, requested_batch, "requested batch; differs from batch if --oom changed it") \
	X(INT, micro_batch, "samples per forward pass") \
	X(INT, accum, "micro-batches per step") \
	X(INT, img_size, "image width and height in pixels") \
	X(INT, classes, "number of output classes") \
	X(INT, context_length, "tokens per sample of a language model") \
	X(INT, vocab, "vocabulary size of a language model") \
	X(TEXT, precision, "fp32, amp, ...") \
	X(TEXT, autocast, "compute type of autocast; empty without autocast") \
	X(TEXT, layout, "nchw or nhwc") \
	X(TEXT, mode, "train, fwd, fwd_bwd, decode, prefill or program") \
	X(TEXT, optimizer, "sgd, adam or adamw") \
	X(TEXT, optimizer_kernels, "implementation in use: foreach or fused kernels") \
	X(REAL, lr, "learning rate") \
	X(REAL, momentum, "momentum of sgd") \
	X(REAL, weight_decay, "weight decay of the optimizer") \
	X(TEXT, data_mode, "kind of data: synthetic, imagefolder, cifar10, mnist, ...") \
	X(INT, augment, "1: random crop and flip; 0: resize and centre crop; empty without images") \
	X(INT, workers, "loader threads") \
	X(INT, prefetch, "batches loaded ahead by all workers together") \
	X(INT, pin_memory, "1: batches are in page-locked memory") \
	X(INT, threads, "compute threads") \
	X(INT, deterministic, "1: deterministic algorithms were requested") \
	X(INT, cudnn_benchmark, "1: cuDNN selected its algorithms by benchmark") \
	X(INT, cuda_graph, "1: the step was captured as a CUDA graph and replayed, or the run was refused because it could not be") \
	X(INT, sync_each_step, "1: the device was synchronized after every step") \
	X(INT, seed, "random seed") \
	X(INT, world_size, "number of processes") \
	X(INT, rank, "rank of this process; empty in the row for all processes") \
	X(INT, local_rank, "rank among the processes on the same machine") \
	X(TEXT, launcher, "launcher: torchrun, slurm, openmpi, mpich or roofline") \
	X(TEXT, interconnect, "gloo or nccl") \
	X(INT, warmup, "steps before the measured window") \
	X(INT, iters, "steps in the measured window") \
	X(REAL, step_ms_mean, "mean step time") \
	X(REAL, step_ms_std, "sample standard deviation of the step time") \
	X(REAL, step_ms_median, "median step time") \
	X(REAL, step_ms_mad, "median absolute deviation of the step time") \
	X(REAL, step_ms_p10, "10th percentile of the step time") \
	X(REAL, step_ms_p90, "90th percentile of the step time") \
	X(REAL, step_ms_min, "time of the fastest step") \
	X(REAL, step_ms_max, "time of the slowest step") \
	X(INT, outliers, "steps that differ from the median by more than 5 x 1.4826 x MAD") \
	X(SIGNED, lag1, "lag-1 autocorrelation of step times") \
	X(REAL, fwd_ms_mean, "mean time of forward pass and loss") \
	X(REAL, fwd_ms_std, "sample standard deviation of the forward time") \
	X(REAL, bwd_ms_mean, "mean time of the backward pass") \
	X(REAL, bwd_ms_std, "sample standard deviation of the backward time") \
	X(REAL, opt_ms_mean, "mean time of the optimizer update") \
	X(REAL, opt_ms_std, "sample standard deviation of the update time") \
	X(REAL, data_wait_ms_mean, "mean time spent waiting for the data loader") \
	X(REAL, data_wait_ms_std, "sample standard deviation of the waiting time") \
	X(REAL, upload_ms_mean, "mean time to copy the batch to the device") \
	X(REAL, upload_ms_std, "sample standard deviation of the copy time") \
	X(REAL, queue_mean, "mean number of batches ready when a step fetched one") \
	X(INT, queue_min, "smallest number of batches ready when a step fetched one") \
	X(REAL, decode_samples_per_s, "images decoded per second by busy loader threads") \
	X(REAL, wall_s, "duration of the measured window") \
	X(SIGNED, launch_gap, "share of wall_s spent between GPU steps, excluding idle time within a step") \
	X(REAL, samples_per_s, "batch x iters / wall_s") \
	X(SIGNED, compute_samples_per_s, "samples_per_s without data_wait") \
	X(REAL, tokens_per_s, "samples_per_s x context_length") \
	X(INT, model_flops_per_step, "core FLOPs of a step, 2 per multiply-add") \
	X(REAL, tflops, "model_flops_per_step / median step time") \
	X(SIGNED, drift, "median of the last third / median of the first third - 1") \
	X(INT, until_steps, "number of steps after which --until stopped") \
	X(REAL, until_step_ms_mean, "mean step time of the first until_steps steps") \
	X(REAL, until_stdrel, "standard error of until_step_ms_mean / until_step_ms_mean") \
	X(REAL, ttfb_ms, "time of the first step, including warm-up") \
	X(REAL, setup_s, "time to load the library and create the network and its parameters") \
	X(REAL, mem_alloc_peak_bytes, "peak memory allocated by the engine's allocator") \
	X(REAL, mem_reserved_peak_bytes, "peak memory reserved by the engine's allocator") \
	X(REAL, device_memory_peak_bytes, "peak memory in use on the device, including other programs") \
	X(REAL, host_peak_bytes, "peak resident set size of the process") \
	X(REAL, sm_clock_mean_hz, "mean SM clock of the GPU in the window") \
	X(REAL, sm_clock_min_hz, "lowest SM clock of the GPU in the window") \
	X(REAL, memory_clock_mean_hz, "mean memory clock of the GPU in the window") \
	X(REAL, power_mean_w, "mean power of the GPU in the window") \
	X(REAL, energy_j_per_step, "energy of the GPU per step; in mode program, of the CPU packages per run, with all programs") \
	X(REAL, samples_per_j, "samples per joule of this energy") \
	X(SIGNED, temperature_max_c, "highest temperature of the GPU") \
	X(TEXT, throttle, "reasons for GPU throttling; empty if there was none") \
	X(TEXT, unwatched, "reason why GPU clocks, power and temperature are unknown") \
	X(SIGNED, loss_first, "loss of the first step, including warm-up") \
	X(SIGNED, loss_last, "loss of the last measured step") \
	X(TEXT, loss_hash, "hash of the losses of all steps; equal for bit-identical losses") \
	X(REAL, loss_scale, "fp16 loss scale at the end of the run") \
	X(INT, scale_skipped, "steps skipped because a gradient was not finite") \
	X(INT, decode_errors, "number of files skipped by the loader") \
	X(TEXT, flags, "warnings such as unstable, drift and loader_bound, separated by spaces") \
	X(TEXT, counters_status, "status of the step counters; empty if none were requested") \
	RFL_LEDGER_COUNTER_COLUMNS(X) \
	X(TEXT, attention, "attention implementation: composed, naive or sdpa; empty: as in the published model") \
	X(REAL, grad_clip, "largest norm of the gradients; empty without clipping") \
	X(TEXT, mem_status, "whether the memory of a step was recorded: ok, or why not; empty without --profile-memory") \
	X(REAL, mem_model_bytes, "bytes allocated before the profiled step: parameters, buffers, state of the optimizer and the batch") \
	X(REAL, mem_fwd_bytes, "bytes allocated after its forward pass") \
	X(REAL, mem_bwd_bytes, "bytes allocated after its backward pass") \
	X(REAL, mem_opt_bytes, "bytes allocated after its update") \
	X(REAL, mem_step_peak_bytes, "largest number of bytes allocated in the profiled step") \
	X(REAL, mem_predicted_bytes, "predicted value of mem_step_peak_bytes") \
	X(TEXT, mem_peak_at, "layer at the peak, such as bwd/conv1, or opt") \
	X(INT, epochs, "epochs of a training run; empty for a burst") \
	X(INT, lr_step, "epochs after which the learning rate is multiplied by lr_gamma; 0: never") \
	X(REAL, lr_gamma, "see lr_step") \
	X(REAL, rotation, "largest angle of the random rotations of a training run, in degrees") \
	X(REAL, beta1, "beta1 of adam and adamw") \
	X(REAL, beta2, "beta2 of adam and adamw") \
	X(REAL, eps, "eps of adam and adamw") \
	X(INT, bucket_bytes, "size of the buckets in which several processes exchange gradients") \
	X(INT, past, "tokens in the cache of a language model before the first step, in modes decode and prefill") \
	X(TEXT, weights, "how the weights of the layers are stored in these modes: plain (in the precision) or int8") \
	X(REAL, linear_ms, "time of linear layers in a step with a cache, from steps after the window") \
	X(REAL, attention_ms, "time of attention and cache in such a step") \
	X(REAL, other_ms, "time of all other operations in such a step") \
	X(TEXT, net_digest, "digest of the contents of a network file; empty for a model of 'roofline list models'") \
	X(TEXT, data_name, "name of the directory or file of the data; empty for synthetic data") \
	X(INT, data_samples, "training samples in the data, or tokens in the file") \
	X(TEXT, data_digest, "digest of the names and sizes of the files of the data and of their beginnings, not of whole images") \
	X(TEXT, command, "command that repeats the run") \
	X(TEXT, host, "node name") \
	X(TEXT, kernel, "release of the operating system kernel") \
	X(TEXT, version, "version of this program")

/* The mode of a row of `roofline profile`. */
#define RFL_LEDGER_PROGRAM "program"

/* Fields that are read only from tables of other programs, where a row may be for several runs. */
#define RFL_LEDGER_FOREIGN_COLUMNS(X) \
	X(REAL, samples_per_s_std, "sample standard deviation of samples_per_s over the runs of a row") \
	X(INT, samples_per_s_n, "number of these runs") \
	X(REAL, ai, "arithmetic intensity in FLOP per byte of DRAM") \
	X(REAL, ai_l2, "the same for L2") \
	X(REAL, ai_l1, "the same for L1") \
	X(REAL, attained_gflops, "achieved rate in GFLOP/s") \
	X(REAL, attained_gflops_std, "its sample standard deviation")
/* clang-format on */

#define RFL_LEDGER_MEMBER(kind, name, meaning) RFL_FIELD_C_##kind name;

struct rfl_ledger_row {
	RFL_LEDGER_COLUMNS(RFL_LEDGER_MEMBER)
	RFL_LEDGER_FOREIGN_COLUMNS(RFL_LEDGER_MEMBER)
	size_t line; /**< line number in the file; not a column */
};

#define RFL_LEDGER_INDEX(kind, name, meaning) RFL_LEDGER_AT_##name,

/** Indices of the columns: RFL_LEDGER_AT_env and so on. Those from RFL_LEDGER_NCOLUMNS on are not
 * in the ledger. */
enum rfl_ledger_at {
	RFL_LEDGER_COLUMNS(RFL_LEDGER_INDEX) RFL_LEDGER_NCOLUMNS,
	RFL_LEDGER_LAST = RFL_LEDGER_NCOLUMNS - 1,
	RFL_LEDGER_FOREIGN_COLUMNS(RFL_LEDGER_INDEX) RFL_LEDGER_NREAD
};

/** The columns in file order, then those that are only read. */
extern const struct rfl_field rfl_ledger_fields[RFL_LEDGER_NREAD];

/** Set every field to unknown. */
void rfl_ledger_row_init(struct rfl_ledger_row *row);

/** Free the texts, which belong to the row. Accepts a row that was only initialised. */
void rfl_ledger_row_fini(struct rfl_ledger_row *row);

/** Hash some columns of a row, and return whether two rows are equal in these columns. */
uint64_t rfl_ledger_hash(const enum rfl_ledger_at *columns, size_t n,
			 const struct rfl_ledger_row *row);
bool rfl_ledger_same(const enum rfl_ledger_at *columns, size_t n, const struct rfl_ledger_row *a,
		     const struct rfl_ledger_row *b);

/** Return the index of the column with this name, or RFL_LEDGER_NCOLUMNS. */
size_t rfl_ledger_column_find(const char *name);

/** Write a header and a row, as in a new ledger. */
enum rfl_rc rfl_ledger_csv(const struct rfl_ledger_row *row, struct rfl_buf *out,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Append a row in one synced write under a lock. Creates directory and file if they do not exist.
 * Before that, under the same lock, moves an incomplete last row (a power failure) to
 * <name>.torn.csv and upgrades a file of an older version, which is kept as <name>.v<version>.csv.
 * Foreign columns are kept and left empty in the new row. Finally adds the row to the mirror
 * <name>.jsonl.
 * @return RFL_OK; RFL_EFORMAT if the file is not a ledger; RFL_EIO: the file is unchanged
 */
enum rfl_rc rfl_ledger_append(const char *path, const struct rfl_ledger_row *row,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Append n rows at once: either all of them or none. */
enum rfl_rc rfl_ledger_append_rows(const char *path, const struct rfl_ledger_row *rows, size_t n,
				   struct rfl_err *err) RFL_WARN_UNUSED;

/** Repair and upgrade the file as an append does, and add the rows that are missing in the mirror.
 * Does nothing if the file does not exist.
 * @return as rfl_ledger_append() */
enum rfl_rc rfl_ledger_mend(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** Check that a row can be appended, and torn rows set aside: the file is missing, empty or a
 * ledger of any version. Called before a run, so that no results are lost after an hour of work. */
enum rfl_rc rfl_ledger_check(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** Whether the file is the table of another program. */
bool rfl_ledger_is_foreign(const char *path);

/** Rows read from tables. A zeroed struct is empty. */
struct rfl_ledger {
	size_t nrows;
	struct rfl_ledger_row *rows; /**< in file order */
	bool torn;                   /**< an incomplete line was omitted */
	bool hashed;                 /**< input: compute the hash of the next table */
	char hash[17];               /**< hash of the last table read; "" if not computed */
	size_t batch;                /**< rows per read, for a caller that drops them; 0: all */
	size_t cap;                  /**< capacity of rows */
	struct rfl_texts texts;      /**< texts of the rows; equal texts may be shared */
	/** Owns the texts that differ in every row, such as run_id, of the rows of one batch; NULL:
	 * they are with the others. */
	struct rfl_arena *of_batch;
};

/** Read a ledger by the column names in its header. Unknown columns are ignored; missing columns
 * are unknown.
 * @param ret  set on success only; release with rfl_ledger_free() */
enum rfl_rc rfl_ledger_load(const char *path, struct rfl_ledger **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_ledger_free(struct rfl_ledger *ledger);
RFL_AUTOPTR_TYPE(ledger, free);

/** Read only the rows appended since the file had `since` bytes, and only some of their columns,
 * which is faster.
 * @param columns  names separated by blanks; NULL: all columns
 * @param since    0: all rows
 * @return also RFL_EFORMAT if no row ends there, because the file was replaced or repaired */
enum rfl_rc rfl_ledger_load_columns(const char *path, const char *columns, size_t since,
				    struct rfl_ledger **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Called for each row, which is valid until it returns. NULL: forget the rows so far, because the
 * file is read from its beginning (once at first, and again if a row turns out to be torn). */
typedef void rfl_ledger_visitor(const struct rfl_ledger_row *row, void *ctx);

/** Read as rfl_ledger_load_columns() does, but keep only a few rows in memory. */
enum rfl_rc rfl_ledger_each(const char *path, const char *columns, size_t since,
			    rfl_ledger_visitor *visit, void *ctx,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Set the entries of these columns, whose names are separated by blanks. */
void rfl_ledger_want(const char *columns, bool wanted[RFL_LEDGER_NCOLUMNS]);

/** A quantity by which repeats are summarised and compared. */
struct rfl_ledger_metric {
	const char *name;  /**< "samples_per_s" */
	const char *title; /**< "samples/s over the whole window" */
	enum rfl_ledger_at column;
	enum rfl_ledger_at instead; /**< used if `column` is empty; may be the same column */
	int speed;                  /**< 1: higher is faster, -1: lower is faster, 0: neither */
};

/** The metrics in the order of rfl_ledger_metric_names, beginning with the speeds as in
 * rfl_ledger_speed_names. */
extern const struct rfl_ledger_metric rfl_ledger_metrics[];

/** Names for option tables. */
extern const char *const rfl_ledger_metric_names[];
extern const char *const rfl_ledger_speed_names[];

/** The value of a metric in a row. NaN: unknown. */
double rfl_ledger_metric_value(const struct rfl_ledger_metric *m, const struct rfl_ledger_row *row);

#endif
