/*
 * points.h - roofline_points.csv, written by `roofline points` and drawn by `roofline plot`. The
 * struct, the header row, the writer, the reader and the documentation test are generated from one
 * list of columns.
 */
#ifndef RFL_ROOFLINE_POINTS_H
#define RFL_ROOFLINE_POINTS_H

#include "base/fields.h"

/* X(kind, name, meaning), for RFL_FIELD(). A point is one configuration over its repeats. _lo and
 * _hi are the limits of the uncertainty. */
/* clang-format off */
#define RFL_POINT_COLUMNS(X) \
	X(TEXT, env, "environment") \
	X(TEXT, model, "model name, as listed by 'roofline list models'") \
	X(TEXT, precision, "fp32, amp, ...") \
	X(INT, batch, "samples per step") \
	X(TEXT, mode, "train, fwd or fwd_bwd") \
	X(TEXT, layout, "nchw or nhwc") \
	X(TEXT, backend, "cpu, cuda or mps") \
	X(TEXT, data_mode, "kind of data: synthetic, imagefolder, ...") \
	X(TEXT, engine, "engine and version of its library") \
	X(TEXT, device_name, "device name reported by the system") \
	X(INT, threads, "compute threads") \
	X(TEXT, config_hash, "config_hash of the ledger") \
	X(TEXT, variant, "difference from other points of the same env, model, precision, mode and batch") \
	X(INT, runs, "repeats with status ok") \
	X(INT, steps, "measured steps of all repeats") \
	X(REAL, step_s, "step time: batch / samples_per_s") \
	X(REAL, step_s_lo, "") \
	X(REAL, step_s_hi, "") \
	X(TEXT, step_source, "source of lo and hi: p10-p90 of the steps or min-max of the repeats") \
	X(REAL, step_median_s, "median step time; for several repeats, the median of their medians") \
	X(REAL, samples_per_s, "rate over the whole window; for several repeats, the mean") \
	X(REAL, fwd_ms, "") \
	X(REAL, bwd_ms, "") \
	X(REAL, opt_ms, "") \
	X(REAL, data_wait_ms, "") \
	X(REAL, flops_per_step, "") \
	X(TEXT, flops_source, "source of the FLOPs") \
	X(REAL, bytes_per_step, "") \
	X(TEXT, bytes_source, "source of the bytes: unfused, fused, compulsory, lower-bound or counters") \
	X(REAL, ai, "FLOP per byte, flops_per_step / bytes_per_step") \
	X(REAL, ai_lo, "") \
	X(REAL, ai_hi, "") \
	X(REAL, ai_unfused, "FLOP per byte if every operation reads and writes DRAM") \
	X(REAL, ai_fused, "FLOP per byte with normalisation and activation fused") \
	X(REAL, ai_compulsory, "FLOP per byte if every tensor is moved only once") \
	X(REAL, flops_counters, "FLOPs of a step measured by counters, in all precisions") \
	X(REAL, bytes_counters, "DRAM bytes of a step measured by counters") \
	X(REAL, ai_counters, "FLOP per byte, flops_counters / bytes_counters") \
	X(REAL, flops_measured_over_counted, "flops_counters / FLOPs counted from the network") \
	X(REAL, bytes_over_compulsory, "bytes_counters / compulsory bytes") \
	X(REAL, bytes_over_unfused, "bytes_counters / unfused bytes") \
	X(TEXT, counters_source, "tool or interface: cupti, perf, ncu, nvprof or likwid") \
	X(INT, counters_steps, "steps covered by the capture") \
	X(INT, counters_repeats, "number of captures in the median") \
	X(TEXT, counters_validity, "ok, partial, scaled, estimate, marked, doubtful or unavailable") \
	X(REAL, coverage, "share of kernel time in which FLOPs were counted; without FLOPs, bytes") \
	X(REAL, zero_flop_share, "share of kernel time in kernels without FLOPs") \
	X(TEXT, zero_flop_kernels, "names and shares of kernels without FLOPs, longest time first") \
	X(TEXT, counters_note, "caveats of the counters, and the reason if they are not used") \
	X(REAL, attained_gflops, "flops_per_step x samples_per_s / batch") \
	X(REAL, attained_gflops_lo, "") \
	X(REAL, attained_gflops_hi, "") \
	X(TEXT, compute_key, "key of the compute ceiling in peaks.json") \
	X(REAL, peak_gflops, "") \
	X(TEXT, peak_gflops_status, "measured, spec, derived or user") \
	X(REAL, peak_gbps, "") \
	X(TEXT, peak_gbps_status, "") \
	X(REAL, knee_ai, "peak_gflops / peak_gbps") \
	X(REAL, attainable_gflops, "min(ai x peak_gbps, peak_gflops)") \
	X(REAL, percent_of_attainable, "without FLOPs: of the bandwidth") \
	X(TEXT, bound, "memory, compute, knee, neither, above or by construction") \
	X(SIGNED, headroom_s, "step_s - step time at the attainable rate") \
	X(TEXT, verdict, "one sentence; above the roof, with the ranked causes") \
	X(TEXT, peaks_hash, "hash of the peaks file") \
	X(TEXT, ledger_hash, "hash of the ledger") \
	X(TEXT, part, "layer or kernel; empty: the whole step") \
	X(TEXT, part_kind, "layer or kernel") \
	X(INT, launches, "number of times that the part ran") \
	X(REAL, time_share, "share of the time of all parts of the step, 0 to 1") \
	X(REAL, ai_l2, "FLOP per byte of L2 traffic, from counters") \
	X(REAL, ai_l1, "FLOP per byte of L1 traffic, from counters") \
	X(REAL, samples_per_s_std, "sample standard deviation of samples_per_s over the repeats") \
	X(INT, context_length, "tokens per sample of a language model") \
	X(REAL, attained_gbps, "bytes_per_step / step_s") \
	X(REAL, uncertainty, "relative, of the rate and of the ceiling that limits it")
/* clang-format on */

#define RFL_POINT_MEMBER(kind, name, meaning) RFL_FIELD_C_##kind name;
#define RFL_POINT_INDEX(kind, name, meaning)  RFL_POINT_AT_##name,

struct rfl_point {
	RFL_POINT_COLUMNS(RFL_POINT_MEMBER)
};

enum rfl_point_at { RFL_POINT_COLUMNS(RFL_POINT_INDEX) RFL_POINT_NCOLUMNS };

/** The columns in file order. */
extern const struct rfl_field rfl_point_fields[RFL_POINT_NCOLUMNS];

struct rfl_points {
	size_t n;
	struct rfl_point *points;
	char hash[17];           /**< hash of the file; "" if not read from a file */
	struct rfl_arena *arena; /**< owns the texts */
};

/** Read roofline_points.csv. @param ret  set on success only; release with rfl_points_free() */
enum rfl_rc rfl_points_load(const char *path, struct rfl_points **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Read points from memory; messages use `name` as the file name.
 * @param text  not empty */
enum rfl_rc rfl_points_loads(const char *text, size_t len, const char *name,
			     struct rfl_points **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Write the file atomically. */
enum rfl_rc rfl_points_save(const char *path, const struct rfl_points *points,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Follows the source if existing counters are not used; the reason and ")" come next. */
#define RFL_POINT_NOT_COUNTERS " (counters not used: "

/** The length of a flops_source or bytes_source without this suffix. */
size_t rfl_point_source_len(const char *source);

/** Allocate n points with unknown values. NULL: out of memory. Release with rfl_points_free(). */
struct rfl_points *rfl_points_new(size_t n) RFL_WARN_UNUSED;

/** Append the points to a buffer as CSV. */
void rfl_points_write(struct rfl_buf *out, const struct rfl_points *points);

/** Accepts NULL. */
void rfl_points_free(struct rfl_points *points);

#endif
