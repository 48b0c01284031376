/*
 * gpu.h - measures the ceilings of an NVIDIA GPU, as an environment for peaks.json.
 *
 * A ceiling is the rate that the GPU sustains: its clocks fall when it reaches its power limit.
 */
#ifndef RFL_PEAKS_GPU_H
#define RFL_PEAKS_GPU_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peaks/gpu_bench.h"

/** Ceilings that can be measured, NULL-terminated: "fp32.vector", ..., "L2", "DRAM", "link". */
extern const char *const rfl_gpu_keys[];

struct rfl_gpu_spec {
	const char *const *only; /**< NULL-terminated keys, or NULL for all */
	int repeats;             /**< at least 3; 0: 21 */
	double sustained_s;      /**< least duration of a full run; 0: 2 s */
	struct rfl_cuda_places places; /**< where cuBLASLt may be */
	/** Called before each run. May be NULL. @param when  "3 of 14" */
	void (*progress)(const char *when, const char *what, void *ctx);
	void *ctx;
};

/** A full run, or one of the working sets of a sweep. */
struct rfl_gpu_run {
	const char *key; /**< the ceiling that it measures */
	char what[96];   /**< "copy", "cuBLASLt 13.1.0 product of bf16" */
	const char *accumulate;
	int accumulators;          /**< independent chains; 0: not a loop in registers */
	int64_t working_set_bytes; /**< of all arrays; 0: not a memory loop */
	int64_t n;                 /**< size of the matrices; 0: not a product */
	bool random;               /**< operands are random */
	bool competes;             /**< can be the ceiling */
	bool sweep;
	struct rfl_gpu_timed timed;
};

/** One ceiling, measured or not. */
struct rfl_gpu_cell {
	const char *key;
	size_t best;        /**< index of the run with the highest sustained rate; SIZE_MAX: none */
	const char *status; /**< without a value: "unknown", "unsupported" or "failed" */
	char reason[512];
};

struct rfl_gpu_measurement {
	char name[256];
	char uuid[RFL_CUDA_UUID_MAX], driver[96]; /**< "" if unknown */
	int capability, multiprocessors, cuda_version;
	int64_t memory_bytes, l2_bytes, array_bytes; /**< 0 if unknown */
	bool ecc, mig, capped;
	double power_limit_w; /**< NaN if unknown */
	size_t nruns, ncells;
	struct rfl_gpu_run *runs;
	struct rfl_gpu_cell *cells;
	char measured_at[24];
	double seconds; /**< duration of the measurement */
};

/** The name of the first device, as it is in a peaks file. Errors as rfl_cuda_open(). */
enum rfl_rc rfl_gpu_name(char *out, size_t size, struct rfl_err *err) RFL_WARN_UNUSED;

/** The unit of a ceiling in tables: "GFLOP/s", "Gop/s", "GB/s". */
const char *rfl_gpu_unit(const char *key);

/** Measure the selected ceilings of the first device.
 * @param ret  set on success only; release with rfl_gpu_measurement_free()
 * @return RFL_OK if at least one ceiling was measured, or the device supports none of them;
 *         RFL_EUNAVAILABLE, RFL_ENOMEM */
enum rfl_rc rfl_gpu_measure(const struct rfl_gpu_spec *spec, struct rfl_gpu_measurement **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_gpu_measurement_free(struct rfl_gpu_measurement *m);

/** The measurement as an environment in the long form. New reference; NULL if out of memory. */
json_t *rfl_gpu_measurement_json(const struct rfl_gpu_measurement *m) RFL_WARN_UNUSED;

#endif
