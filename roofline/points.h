/*
 * points.h - roofline_points.csv, written by `roofline points` and drawn by `roofline plot`. The
 * struct, the header row, the writer, the reader and the documentation test are generated from one
 * list of columns.
 */
#ifndef RFL_ROOFLINE_POINTS_H
#define RFL_ROOFLINE_POINTS_H

#include "base/fields.h"

RFL_API_BEGIN

/* X(kind, name, meaning), for RFL_FIELD(). A point is one configuration over its repeats. _lo and
 * _hi are the limits of the uncertainty. */
/* clang-format off */
#define RFL_POINT_COLUMNS(X) \
	X(TEXT, env, "environment") \
	X(TEXT, model, "model name, as listed by 'roofline list models'") \
	X(TEXT, precision, "fp32, amp, ...") \
	X(INT, batch, "samples per step") \
	X(TEXT, mode, "train, fwd, fwd_bwd or program") \
	X(TEXT, layout, "nchw or nhwc") \
	X(TEXT, backend, "cpu, cuda or mps") \
	X(TEXT, data_mode, "kind of data: synthetic, imagefolder, ...") \
	X(TEXT, engine, "engine and version of its library") \
	X(TEXT, device_name, "device name reported by the system") \
	X(INT, threads, "compute threads of all processes under the roof") \
	X(TEXT, config_hash, "config_hash of the ledger") \
	X(TEXT, variant, "difference from other points of the same env, model, precision, mode and batch") \
	X(INT, runs, "repeats with status ok") \
	X(INT, steps, "measured steps of all repeats") \
	X(REAL, step_s, "step time: batch / samples_per_s") \
	X(REAL, step_s_lo, "lower end of the uncertainty of step_s") \
	X(REAL, step_s_hi, "upper end") \
	X(TEXT, step_source, "source of lo and hi: p10-p90 of the steps or min-max of the repeats") \
	X(REAL, step_median_s, "median step time; for several repeats, the median of their medians") \
	X(REAL, samples_per_s, "rate over the whole window; for several repeats, the mean") \
	X(REAL, fwd_ms, "time of the forward pass and the loss") \
	X(REAL, bwd_ms, "time of the backward pass") \
	X(REAL, opt_ms, "time of the optimizer update") \
	X(REAL, data_wait_ms, "time spent waiting for data") \
	X(REAL, flops_per_step, "FLOPs of a step") \
	X(TEXT, flops_source, "source of the FLOPs") \
	X(REAL, bytes_per_step, "bytes of a step") \
	X(TEXT, bytes_source, "source of the bytes: unfused, fused, compulsory, plan (of the planned " \
		"engine), lower-bound, counters, tensor shapes or given") \
	X(REAL, ai, "FLOP per byte, flops_per_step / bytes_per_step") \
	X(REAL, ai_lo, "lower end of the uncertainty of ai") \
	X(REAL, ai_hi, "upper end") \
	X(REAL, ai_unfused, "FLOP per byte if every operation reads and writes DRAM") \
	X(REAL, ai_fused, "FLOP per byte with normalisation and activation fused") \
	X(REAL, ai_compulsory, "FLOP per byte if every tensor is moved only once") \
	X(REAL, flops_counters, "FLOPs of a step measured by counters, in all precisions") \
	X(REAL, bytes_counters, "DRAM bytes of a step measured by counters") \
	X(REAL, ai_counters, "FLOP per byte, flops_counters / bytes_counters") \
	X(REAL, flops_measured_over_counted, "flops_counters / FLOPs counted from the network") \
	X(REAL, bytes_over_compulsory, "bytes_counters / compulsory bytes") \
	X(REAL, bytes_over_unfused, "bytes_counters / unfused bytes") \
	X(TEXT, counters_source, "tool or interface, such as cupti, perf or ncu") \
	X(INT, counters_steps, "number of steps by which the totals of a capture were divided") \
	X(INT, counters_repeats, "number of captures in the median") \
	X(TEXT, counters_validity, "ok, partial, scaled, estimate, marked, doubtful or unavailable") \
	X(REAL, coverage, "share of the kernel time (of launches, without times) in which FLOPs of the run's " \
		"precision were counted, or FP32 in kernels not named as a GEMM; without FLOPs, bytes") \
	X(REAL, zero_flop_share, "share of kernel time in kernels without FLOPs") \
	X(TEXT, zero_flop_kernels, "names and shares of kernels without FLOPs, longest time first") \
	X(TEXT, counters_note, "caveats of the counters, and the reason if they are not used") \
	X(REAL, attained_gflops, "flops_per_step x samples_per_s / batch") \
	X(REAL, attained_gflops_lo, "lower end of its uncertainty") \
	X(REAL, attained_gflops_hi, "upper end") \
	X(TEXT, compute_key, "key of the compute ceiling in peaks.json") \
	X(REAL, peak_gflops, "compute ceiling in GFLOP/s") \
	X(TEXT, peak_gflops_status, "measured, spec, derived or user") \
	X(REAL, peak_gbps, "bandwidth ceiling in GB/s") \
	X(TEXT, peak_gbps_status, "the same for peak_gbps") \
	X(REAL, knee_ai, "ridge point: peak_gflops / peak_gbps") \
	X(REAL, attainable_gflops, "min(ai x peak_gbps, ai_l2 x peak_l2_gbps, ai_l1 x peak_l1_gbps, peak_gflops), " \
		"without unknown levels") \
	X(REAL, percent_of_attainable, "attained_gflops / attainable_gflops in percent; without FLOPs, the " \
		"share of the bandwidth") \
	X(TEXT, bound, "memory, L2, L1, compute, ridge, neither, above or by construction") \
	X(SIGNED, headroom_s, "step_s - step time at the attainable rate") \
	X(TEXT, verdict, "one sentence; above the roof, with the ranked causes") \
	X(TEXT, peaks_hash, "hash of the peaks file") \
	X(TEXT, ledger_hash, "hash of the ledger") \
	X(TEXT, part, "layer, phase, kernel or operator; empty: the whole step") \
	X(TEXT, part_kind, "layer, phase, kernel or op") \
	X(INT, launches, "number of times that the part ran") \
	X(REAL, time_share, "share of the time of all parts of the step, 0 to 1") \
	X(REAL, ai_l2, "FLOP per byte of L2 traffic, from counters") \
	X(REAL, ai_l1, "FLOP per byte of L1 traffic, from counters") \
	X(REAL, samples_per_s_std, "sample standard deviation of samples_per_s over the repeats") \
	X(INT, context_length, "tokens per sample of a language model") \
	X(REAL, attained_gbps, "bytes_per_step / step_s; empty if the bytes are a lower bound") \
	X(REAL, uncertainty, "relative uncertainty of the rate and of the ceiling that limits it; a point " \
		"above its roof by less keeps its bound") \
	X(REAL, peak_l2_gbps, "bandwidth ceiling of L2 in GB/s, if ai_l2 is known") \
	X(REAL, peak_l1_gbps, "bandwidth ceiling of L1 in GB/s, if ai_l1 is known") \
	X(TEXT, nearest, "ceiling that is lowest at the point: DRAM, L2, L1, compute or ridge") \
	X(REAL, clock_hz, "clock of the profiled GPU") \
	X(REAL, peak_clock_hz, "clock of the compute ceiling; of a data sheet, the boost clock") \
	X(INT, past, "tokens in the cache of a language model before the first step, in modes decode and prefill")
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

/** The source of FLOPs or bytes that the user, or the program itself, knows. */
#define RFL_POINT_GIVEN "given"

/** The source of FLOPs or bytes that follow from the shapes in a trace of torch.profiler. */
#define RFL_POINT_OF_SHAPES "tensor shapes"
/** Those that the planned engine's steps read and write. */
#define RFL_POINT_OF_PLAN "plan"

/** Follows the source if existing counters are not used; the reason and ")" come next. */
#define RFL_POINT_NOT_COUNTERS " (counters not used: "

/** The flops_source and bytes_source of another program's table. */
#define RFL_POINT_OF_TABLE "the table"

/** The step_source of a profile without a ledger. */
#define RFL_POINT_OF_CAPTURE "the whole profile"

/** The length of a flops_source or bytes_source without this suffix. */
size_t rfl_point_source_len(const char *source);

/** Allocate n points with unknown values. Release with rfl_points_free(). */
struct rfl_points *rfl_points_new(size_t n) RFL_WARN_UNUSED;

/** What texts call a part of this kind: "operator" for "op", and "part" if the kind is unknown. */
const char *rfl_part_word(const char *part_kind);

/** Append the points to a buffer as CSV. */
void rfl_points_write(struct rfl_buf *out, const struct rfl_points *points);

/** Accepts NULL. */
void rfl_points_free(struct rfl_points *points);
RFL_AUTOPTR_TYPE(points, free);

RFL_API_END
#endif
