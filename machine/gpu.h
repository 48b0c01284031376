/*
 * gpu.h - the NVIDIA GPUs that the driver shows, by NVML opened on demand.
 */
#ifndef RFL_MACHINE_GPU_H
#define RFL_MACHINE_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_gpu {
	char name[96];          /**< as the driver names it: "NVIDIA L4" */
	char uuid[96];          /**< "" when the driver does not tell */
	int64_t memory_bytes;   /**< 0 when the driver does not tell */
	int cc_major, cc_minor; /**< compute capability; 0, 0 when the driver does not tell */
};

struct rfl_gpus {
	char driver[96]; /**< version of the driver; "" when it does not tell */
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

#ifdef __cplusplus
}
#endif
#endif
