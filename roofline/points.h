/*
 * points.h - points under a roof: what `roofline points` makes of ledger, counts and ceilings, and
 * what `roofline plot` draws. The columns are one list, from which the struct, the header row, the
 * writer, the reader and the documentation test are made.
 */
#ifndef RFL_ROOFLINE_POINTS_H
#define RFL_ROOFLINE_POINTS_H

#include "base/fields.h"

/* X(kind, name, meaning) as RFL_FIELD() takes it. A point stands for one configuration over its
 * repeats. _lo and _hi are the ends of the uncertainty. */
/* clang-format off */
#define RFL_POINT_COLUMNS(X) \
	X(TEXT, env, "environment") \
	X(TEXT, model, "zoo name") \
	X(TEXT, precision, "") \
	X(INT, batch, "samples per step") \
	X(TEXT, mode, "train, fwd, fwd_bwd") \
	X(TEXT, layout, "nchw or nhwc") \
	X(TEXT, backend, "cpu, cuda, mps") \
	X(TEXT, data_mode, "synthetic or imagefolder") \
	X(TEXT, engine, "engine and its library's version") \
	X(TEXT, device_name, "") \
	X(INT, threads, "compute threads") \
	X(TEXT, config_hash, "as in the ledger") \
	X(TEXT, variant, "what distinguishes it from others of its env, model, precision, mode and batch") \
	X(INT, runs, "repeats with status ok") \
	X(INT, steps, "measured steps over all repeats") \
	X(REAL, step_s, "batch / samples_per_s: the window over its steps") \
	X(REAL, step_s_lo, "") \
	X(REAL, step_s_hi, "") \
	X(TEXT, step_source, "what lo and hi are: p10-p90 of the steps, or min-max of the repeats") \
	X(REAL, step_median_s, "median step; over repeats the median of their medians") \
	X(REAL, samples_per_s, "over the whole window; over repeats the mean, as in the summary") \
	X(REAL, fwd_ms, "") \
	X(REAL, bwd_ms, "") \
	X(REAL, opt_ms, "") \
	X(REAL, data_wait_ms, "") \
	X(REAL, flops_per_step, "") \
	X(TEXT, flops_source, "where the FLOPs come from") \
	X(REAL, bytes_per_step, "") \
	X(TEXT, bytes_source, "where the bytes come from: unfused, fused, compulsory, lower-bound, counters") \
	X(REAL, ai, "FLOP per byte, flops_per_step / bytes_per_step") \
	X(REAL, ai_lo, "") \
	X(REAL, ai_hi, "") \
	X(REAL, ai_unfused, "counted analytically, every operation reads and writes DRAM") \
	X(REAL, ai_fused, "counted analytically, normalisation and activation fused") \
	X(REAL, ai_compulsory, "counted analytically, every tensor that must move, once") \
	X(REAL, flops_counters, "FLOPs of a step that counters saw, of every precision") \
	X(REAL, bytes_counters, "DRAM bytes of a step that counters saw") \
	X(REAL, ai_counters, "FLOP per byte, flops_counters / bytes_counters") \
	X(REAL, flops_measured_over_counted, "flops_counters / the FLOPs counted from the network") \
	X(REAL, bytes_over_compulsory, "bytes_counters / the bytes that must move") \
	X(REAL, bytes_over_unfused, "bytes_counters / the bytes of operation after operation") \
	X(TEXT, counters_source, "cupti, perf, ncu, nvprof, likwid: who counted") \
	X(INT, counters_steps, "steps that the totals of a capture were divided by") \
	X(INT, counters_repeats, "captures in the median") \
	X(TEXT, counters_validity, "ok, partial, scaled, estimate, marked, doubtful, unavailable") \
	X(REAL, coverage, "share of the kernels' time whose FLOPs, else bytes, were counted") \
	X(REAL, zero_flop_share, "share of the kernels' time in kernels without a FLOP") \
	X(TEXT, zero_flop_kernels, "their names and shares, longest first") \
	X(TEXT, counters_note, "what to know of the counters, and why they were not used") \
	X(REAL, attained_gflops, "flops_per_step x samples_per_s / batch") \
	X(REAL, attained_gflops_lo, "") \
	X(REAL, attained_gflops_hi, "") \
	X(TEXT, compute_key, "which ceiling of peaks.json it stands under") \
	X(REAL, peak_gflops, "") \
	X(TEXT, peak_gflops_status, "measured, spec, derived, user") \
	X(REAL, peak_gbps, "") \
	X(TEXT, peak_gbps_status, "") \
	X(REAL, knee_ai, "peak_gflops / peak_gbps") \
	X(REAL, attainable_gflops, "min(ai x peak_gbps, peak_gflops)") \
	X(REAL, percent_of_attainable, "") \
	X(TEXT, bound, "memory, compute, knee") \
	X(REAL, headroom_s, "step_s minus the step time at the attainable rate") \
	X(TEXT, verdict, "one sentence; above the roof: the ranked causes") \
	X(TEXT, peaks_hash, "fingerprint of the peaks file") \
	X(TEXT, ledger_hash, "fingerprint of the ledger")
/* clang-format on */

#define RFL_POINT_MEMBER(kind, name, meaning) RFL_FIELD_C_##kind name;
#define RFL_POINT_COUNT(kind, name, meaning)  +1

struct rfl_point {
	RFL_POINT_COLUMNS(RFL_POINT_MEMBER)
};

#define RFL_POINT_NCOLUMNS (0 RFL_POINT_COLUMNS(RFL_POINT_COUNT))

/** The columns in the order of the file. */
extern const struct rfl_field rfl_point_fields[RFL_POINT_NCOLUMNS];

struct rfl_points {
	size_t n;
	struct rfl_point *points;
	char hash[17]; /**< fingerprint of the bytes that were read; "" for points that were made */
};

/** Read roofline_points.csv. @param ret  set on success only; release with rfl_points_free() */
enum rfl_rc rfl_points_load(const char *path, struct rfl_points **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Write it, atomically. */
enum rfl_rc rfl_points_save(const char *path, const struct rfl_points *points,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** What follows a source where there are counters that it is not of; then the reason and ")". */
#define RFL_POINT_NOT_COUNTERS " (counters not used: "

/** The length of a flops_source or bytes_source without that. */
size_t rfl_point_source_len(const char *source);

/** n points that know nothing; NULL out of memory. Release with rfl_points_free(). */
struct rfl_points *rfl_points_new(size_t n) RFL_WARN_UNUSED;

/** The same rows as CSV text, appended to a buffer. */
void rfl_points_write(struct rfl_buf *out, const struct rfl_points *points);

/** Accepts NULL. */
void rfl_points_free(struct rfl_points *points);

#endif
