/*
 * ledger.h - logs/metrics.csv: one row per run, append-only. The struct, the header row, writer,
 * reader and documentation test are generated from one list of columns.
 */
#ifndef RFL_LEDGER_LEDGER_H
#define RFL_LEDGER_LEDGER_H

#include "base/fields.h"
#include "ledger/repeats/row_index.h"

#define RFL_LEDGER_SCHEMA 3

/* clang-format off */
/* Added in version 2; empty in a run without counted steps. */
#define RFL_LEDGER_COUNTER_COLUMNS(X) \
	X(TEXT, counters_source, "cupti or perf") \
	X(INT, counter_passes, "number of times that the counted step was run") \
	X(REAL, counted_flops_per_step, "counted FLOPs of a step; empty if only a part or an estimate is known") \
	X(REAL, counted_dram_bytes_per_step, "counted bytes to and from memory; empty likewise") \
	X(REAL, idle_dram_bytes_per_s, "memory traffic of other programs, measured while idle") \
	X(REAL, ipc, "instructions per cycle of the counted step, on a CPU") \
	X(REAL, cache_misses_per_step, "last-level cache misses of the counted step") \
	X(REAL, effective_clock_hz, "cycles per second of processor time in the counted step") \
	X(REAL, selftest_flops_ratio, "counted over known FLOPs of a matrix product; the worst ratio") \
	X(REAL, selftest_dram_ratio, "counted over known bytes of a copy; the worst ratio")

/* X(kind, name, meaning), for RFL_FIELD(). Times are in ms per step unless the name has another unit. */
#define RFL_LEDGER_COLUMNS(X) \
	X(INT, schema_version, "version of this list of columns") \
	X(TEXT, run_id, "unique id of the attempt") \
	X(TEXT, cell, "id of the matrix cell; empty outside a matrix") \
	X(TEXT, config_hash, "hash of everything that must be equal for runs to be repeats") \
	X(INT, repeat, "N of _runN in the label") \
	X(TEXT, timestamp_utc, "start of the run, ISO 8601") \
	X(TEXT, label, "{env}_{model}_{precision}_bs{batch}_run{N}") \
	X(TEXT, env, "environment; the key into peaks.json") \
	X(TEXT, status, "ok, oom, timeout, failed, crash, nan, unsupported or interrupted") \
	X(INT, error_code, "signal or exit code if status is not ok") \
	X(TEXT, error_text, "error message, one line") \
	X(TEXT, engine, "library that ran the network, such as torch") \
	X(TEXT, engine_id, "plugin, such as torch-1.13-cpu") \
	X(TEXT, engine_version, "version that the library reports") \
	X(INT, plugin_abi, "ABI number of the plugin") \
	X(TEXT, backend, "cpu, cuda or mps") \
	X(TEXT, backend_reason, "why auto chose this backend; empty if it was requested") \
	X(TEXT, device_name, "device name that the system reports") \
	X(TEXT, pci_bus_id, "PCI bus id of the GPU") \
	X(REAL, device_memory_bytes, "memory of the device") \
	X(TEXT, cuda_runtime, "CUDA version that the engine was built with") \
	X(TEXT, cuda_driver, "newest CUDA version that the driver supports") \
	X(TEXT, cudnn_version, "version of the loaded cuDNN") \
	X(TEXT, model, "model name, as in roofline list models") \
	X(INT, params, "number of trainable parameters") \
	X(INT, batch, "samples per optimizer step") \
	X(INT, requested_batch, "requested batch; differs from batch if --oom chose another") \
	X(INT, micro_batch, "samples per forward pass") \
	X(INT, accum, "micro-batches per step") \
	X(INT, img_size, "image width and height in pixels") \
	X(INT, classes, "number of output classes") \
	X(INT, context_length, "tokens per sample of a language model") \
	X(INT, vocab, "vocabulary size of a language model") \
	X(TEXT, precision, "fp32, amp, ...") \
	X(TEXT, autocast, "compute type of autocast; empty without autocast") \
	X(TEXT, layout, "nchw or nhwc") \
	X(TEXT, mode, "train, fwd or fwd_bwd") \
	X(TEXT, optimizer, "sgd, adam or adamw") \
	X(TEXT, optimizer_kernels, "foreach or fused kernels, as used") \
	X(REAL, lr, "learning rate") \
	X(REAL, momentum, "momentum of sgd") \
	X(REAL, weight_decay, "weight decay of the optimizer") \
	X(TEXT, data_mode, "kind of data: synthetic, imagefolder, cifar10, mnist, ...") \
	X(INT, augment, "1: random crop and flip; 0: resize and centre crop; empty without images") \
	X(INT, workers, "loader threads") \
	X(INT, prefetch, "batches loaded ahead, over all workers") \
	X(INT, pin_memory, "1: batches in page-locked memory") \
	X(INT, threads, "compute threads") \
	X(INT, deterministic, "0 or 1") \
	X(INT, cudnn_benchmark, "1: cuDNN benchmarked its algorithms first") \
	X(INT, cuda_graph, "1: the step was captured as a CUDA graph and replayed") \
	X(INT, sync_each_step, "1: the device was synchronized after every step") \
	X(INT, seed, "random seed") \
	X(INT, world_size, "number of processes") \
	X(INT, rank, "rank of this process; empty in the row of all processes") \
	X(INT, local_rank, "rank on its machine") \
	X(TEXT, launcher, "torchrun, slurm, openmpi, mpich or roofline") \
	X(TEXT, interconnect, "gloo or nccl") \
	X(INT, warmup, "steps before the measured window") \
	X(INT, iters, "steps in the measured window") \
	X(REAL, step_ms_mean, "mean time of a step") \
	X(REAL, step_ms_std, "sample standard deviation") \
	X(REAL, step_ms_median, "median time of a step") \
	X(REAL, step_ms_mad, "median absolute deviation") \
	X(REAL, step_ms_p10, "10th percentile") \
	X(REAL, step_ms_p90, "90th percentile") \
	X(REAL, step_ms_min, "fastest step") \
	X(REAL, step_ms_max, "slowest step") \
	X(INT, outliers, "steps more than 5 x 1.4826 x MAD from the median") \
	X(REAL, lag1, "lag-1 autocorrelation of step times") \
	X(REAL, fwd_ms_mean, "forward pass and loss") \
	X(REAL, fwd_ms_std, "sample standard deviation") \
	X(REAL, bwd_ms_mean, "backward pass") \
	X(REAL, bwd_ms_std, "sample standard deviation") \
	X(REAL, opt_ms_mean, "optimizer step") \
	X(REAL, opt_ms_std, "sample standard deviation") \
	X(REAL, data_wait_ms_mean, "time spent waiting for the loader") \
	X(REAL, data_wait_ms_std, "sample standard deviation") \
	X(REAL, upload_ms_mean, "copy of the batch to the device") \
	X(REAL, upload_ms_std, "sample standard deviation") \
	X(REAL, queue_mean, "batches ready when a step fetched one, on average") \
	X(INT, queue_min, "batches ready when a step fetched one, at least") \
	X(REAL, decode_samples_per_s, "rate at which busy loader threads decode images") \
	X(REAL, wall_s, "length of the measured window") \
	X(REAL, launch_gap, "share of wall_s between the steps of a GPU, without idle time inside a step") \
	X(REAL, samples_per_s, "batch x iters / wall_s") \
	X(REAL, compute_samples_per_s, "samples_per_s without data_wait") \
	X(REAL, tokens_per_s, "samples_per_s x context_length") \
	X(INT, model_flops_per_step, "core FLOPs of a step, 2 per MAC") \
	X(REAL, tflops, "model_flops_per_step / median step time") \
	X(REAL, drift, "median of the last third over the median of the first, minus 1") \
	X(INT, until_steps, "steps at which --until stopped") \
	X(REAL, until_step_ms_mean, "mean time of these steps") \
	X(REAL, until_stdrel, "standard error of that mean over the mean") \
	X(REAL, ttfb_ms, "time of the very first step, warm-up included") \
	X(REAL, setup_s, "time to load the library and to create network and parameters") \
	X(REAL, mem_alloc_peak_bytes, "peak memory allocated by the engine's allocator") \
	X(REAL, mem_reserved_peak_bytes, "peak memory reserved by the engine's allocator") \
	X(REAL, device_memory_peak_bytes, "peak memory in use on the device, by all programs") \
	X(REAL, host_peak_bytes, "peak resident set of the process") \
	X(REAL, sm_clock_mean_hz, "mean SM clock of the GPU in the window") \
	X(REAL, sm_clock_min_hz, "lowest SM clock sampled") \
	X(REAL, memory_clock_mean_hz, "mean memory clock of the GPU in the window") \
	X(REAL, power_mean_w, "mean power of the GPU in the window") \
	X(REAL, energy_j_per_step, "energy of the GPU per step") \
	X(REAL, samples_per_j, "samples per joule of GPU energy") \
	X(REAL, temperature_max_c, "highest temperature of the GPU") \
	X(TEXT, throttle, "reasons why the GPU was throttled; empty if it was not") \
	X(TEXT, unwatched, "why clocks, power and temperature of the GPU are unknown") \
	X(REAL, loss_first, "loss of the very first step, warm-up included") \
	X(REAL, loss_last, "loss of the last measured step") \
	X(TEXT, loss_hash, "hash of the losses of all steps, equal for bit-identical losses") \
	X(REAL, loss_scale, "loss scale of fp16 at the end") \
	X(INT, scale_skipped, "steps skipped because a gradient was not finite") \
	X(INT, decode_errors, "files that the loader skipped") \
	X(TEXT, flags, "unstable, drift, loader_bound, ..., separated by spaces") \
	X(TEXT, counters_status, "status of the counted steps; empty if none were requested") \
	RFL_LEDGER_COUNTER_COLUMNS(X) \
	X(TEXT, host, "node name") \
	X(TEXT, kernel, "release of the operating system kernel") \
	X(TEXT, version, "version of this program")
/* clang-format on */

#define RFL_LEDGER_MEMBER(kind, name, meaning) RFL_FIELD_C_##kind name;

struct rfl_ledger_row {
	RFL_LEDGER_COLUMNS(RFL_LEDGER_MEMBER)
	size_t line; /**< line number in the file; not a column */
};

#define RFL_LEDGER_INDEX(kind, name, meaning) RFL_LEDGER_AT_##name,

/** Indices of the columns: RFL_LEDGER_AT_env and so on. */
enum rfl_ledger_at { RFL_LEDGER_COLUMNS(RFL_LEDGER_INDEX) RFL_LEDGER_NCOLUMNS };

/** The columns in file order. */
extern const struct rfl_field rfl_ledger_fields[RFL_LEDGER_NCOLUMNS];

/** Make every field unknown. */
void rfl_ledger_row_init(struct rfl_ledger_row *row);

/** Free the texts, which belong to the row. Accepts a row that was only initialised. */
void rfl_ledger_row_fini(struct rfl_ledger_row *row);

/** A hash of some columns of a row, and whether two rows are equal in them. */
uint64_t rfl_ledger_hash(const enum rfl_ledger_at *columns, size_t n,
			 const struct rfl_ledger_row *row);
bool rfl_ledger_same(const enum rfl_ledger_at *columns, size_t n, const struct rfl_ledger_row *a,
		     const struct rfl_ledger_row *b);

/** The column with this name, or RFL_LEDGER_NCOLUMNS. */
size_t rfl_ledger_column_find(const char *name);

/** Write the header and a row as a new ledger would have them. */
enum rfl_rc rfl_ledger_csv(const struct rfl_ledger_row *row, struct rfl_buf *out,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Append a row: locked, in one write, synced. Creates folder and file if they do not exist. First,
 * under the same lock, moves an incomplete last row (a power cut) to <name>.torn.csv and upgrades a
 * file of an older version, which is kept as <name>.v<version>.csv. Foreign columns stay; the new
 * row leaves them empty. Finally adds the row to the mirror <name>.jsonl.
 * @return RFL_OK; RFL_EFORMAT if the file is not a ledger; RFL_EIO: the file is unchanged
 */
enum rfl_rc rfl_ledger_append(const char *path, const struct rfl_ledger_row *row,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Append n rows at once: all of them or none. */
enum rfl_rc rfl_ledger_append_rows(const char *path, const struct rfl_ledger_row *rows, size_t n,
				   struct rfl_err *err) RFL_WARN_UNUSED;

/** Do what an append does before it writes the row, and add rows that a killed process could not
 * write to the mirror. Does nothing if there is no file. @return as rfl_ledger_append() */
enum rfl_rc rfl_ledger_mend(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** Can a row be appended: is the file missing, empty or a ledger of any version? Checked before a
 * run, so that the row of an hour's work is not refused afterwards. */
enum rfl_rc rfl_ledger_check(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** Rows read from tables. A zeroed struct is empty. */
struct rfl_ledger {
	size_t nrows;
	struct rfl_ledger_row *rows; /**< in file order */
	bool torn;                   /**< an incomplete line (power cut) was left out */
	bool hashed;                 /**< set before a table is read: compute its hash */
	char hash[17];               /**< of the bytes of the last table; "" if not computed */
	size_t batch;           /**< rows to read at a time, for a caller that drops them; 0: all */
	size_t cap;             /**< of rows */
	struct rfl_texts texts; /**< of the rows; equal texts may be shared */
};

/** Read a ledger by header names; unknown columns are ignored, missing ones are unknown.
 * @param ret  set on success only; release with rfl_ledger_free() */
enum rfl_rc rfl_ledger_load(const char *path, struct rfl_ledger **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_ledger_free(struct rfl_ledger *ledger);

/** Read only some columns, which is faster. @param wanted  one entry per column */
enum rfl_rc rfl_ledger_load_columns(const char *path, const bool wanted[RFL_LEDGER_NCOLUMNS],
				    struct rfl_ledger **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** A quantity by which repeats are summarised and compared. */
struct rfl_ledger_metric {
	const char *name;  /**< "samples_per_s" */
	const char *title; /**< "samples per second" */
	enum rfl_ledger_at column;
	enum rfl_ledger_at instead; /**< used if that is empty; or the same column */
	int speed;                  /**< 1: more is faster, -1: less is faster, 0: neither */
};

/** In the order of rfl_ledger_metric_names; the speeds come first, as in rfl_ledger_speed_names. */
extern const struct rfl_ledger_metric rfl_ledger_metrics[];

/** For option rows. */
extern const char *const rfl_ledger_metric_names[];
extern const char *const rfl_ledger_speed_names[];

/** NaN: unknown. */
double rfl_ledger_metric_value(const struct rfl_ledger_metric *m, const struct rfl_ledger_row *row);

#endif
