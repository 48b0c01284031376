/*
 * gpu.h - the NVIDIA GPUs that the driver shows, by NVML opened on demand.
 */
#ifndef RFL_MACHINE_GPU_H
#define RFL_MACHINE_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/machine.h"

struct rfl_gpu {
	char name[96];                               /**< as the driver names it: "NVIDIA L4" */
	char uuid[96];                               /**< "" when not known */
	int64_t memory_bytes;                        /**< 0 when not known */
	int cc_major, cc_minor;                      /**< compute capability; 0, 0 when not known */
	double sm_clock_max_hz, memory_clock_max_hz; /**< NaN when not known */
	double power_limit_w;                        /**< in force; NaN likewise */
	enum rfl_known ecc, persistence;             /**< modes that are switched on */
};

struct rfl_gpus {
	char driver[96]; /**< version of the driver; "" when not known */
	size_t n;        /**< at least 1 */
	struct rfl_gpu *gpus;
};

/**
 * Ask the driver for its GPUs.
 * @param ret  set on success only; release with rfl_gpus_free()
 * @return RFL_OK; RFL_EUNAVAILABLE with the reason: no library, no driver, no permission, no device
 */
enum rfl_rc rfl_gpus_new(struct rfl_gpus **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_gpus_free(struct rfl_gpus *g);

#endif
