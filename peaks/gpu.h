/*
 * gpu.h - measures the ceilings of an NVIDIA GPU, as an environment for peaks.json.
 *
 * A ceiling is the rate that the GPU sustains: its clocks fall when it reaches its power limit.
 */
#ifndef RFL_PEAKS_GPU_H
#define RFL_PEAKS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peaks/gpu_bench.h"
#include "peaks/measure.h"

/** Ceilings that can be measured, NULL-terminated: "fp32.vector", ..., "L2", "DRAM", "link". */
extern const char *const rfl_gpu_keys[];

struct rfl_gpu_spec {
	const char *const *only;       /**< NULL-terminated keys, or NULL for all */
	int repeats;                   /**< at least 3; 0: 21 */
	double sustained_s;            /**< least duration of a full run; 0: 2 s */
	struct rfl_cuda_places places; /**< where cuBLASLt may be */
	/** Called before each run. May be NULL. @param when  "3 of 14" */
	void (*progress)(const char *when, const char *what, void *ctx);
	void *ctx;
};

/** The name of the first device, as it is in a peaks file. Errors as rfl_cuda_open(). */
enum rfl_rc rfl_gpu_name(char *out, size_t size, struct rfl_err *err) RFL_WARN_UNUSED;

/** Measure the selected ceilings of the first device.
 * @return RFL_OK if at least one ceiling was measured, or the device supports none of them;
 *         RFL_EUNAVAILABLE */
enum rfl_rc rfl_gpu_measure(const struct rfl_gpu_spec *spec, struct rfl_measurement *m,
			    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
