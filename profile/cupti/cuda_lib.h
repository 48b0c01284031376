/*
 * cuda_lib.h - the CUDA driver as a guest: opened when counters of a GPU are asked for, never
 * linked. The target part of CUPTI crashes without a driver, so its callers hold one of these
 * first: driver, device and a current context are there then.
 */
#ifndef RFL_PROFILE_CUDA_LIB_H
#define RFL_PROFILE_CUDA_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dl.h"
#include "base/err.h"
#include "profile/cupti/cuda_api.h"

#define RFL_CUDA_UUID_MAX 33

/** The driver, one device, and its primary context made current; read only. */
struct rfl_cuda {
	struct rfl_cuda_functions calls;
	struct rfl_dl *dl;
	struct rfl_cuda_context *context;
	int index, device;
	int version;      /**< of the driver: 13000 for CUDA 13.0 */
	int capability;   /**< 90 */
	int64_t l2_bytes; /**< 0: the driver does not say */
	bool ecc;         /**< its memory keeps check bits, and they are switched on */
	char name[256];   /**< "NVIDIA H100 80GB HBM3" */
	bool retained, pushed;
};

/* The gates in the order in which they are passed; a failure is that of the first one closed. */
enum rfl_cuda_gate {
	RFL_CUDA_GATE_LIBRARY, /**< libcuda.so.1 can be loaded and is not a stub */
	RFL_CUDA_GATE_INIT,    /**< cuInit */
	RFL_CUDA_GATE_DEVICE,  /**< there is a GPU of this index */
	RFL_CUDA_GATE_CONTEXT, /**< its primary context could be made current */
	RFL_CUDA_GATE_OPEN,    /**< all of them */
};

/**
 * Open the driver, take a device and make its primary context current on this thread: the context
 * that the CUDA runtime, and so libtorch, uses.
 *
 * @param device  index of the GPU, as CUDA counts them
 * @param gate    the gate that was closed, or RFL_CUDA_GATE_OPEN; may be NULL
 * @param ret     set on success only; release with rfl_cuda_close() on the same thread
 * @return RFL_OK; RFL_EUNAVAILABLE with what is missing and how to get it, the driver's code in
 *         err->native
 */
enum rfl_rc rfl_cuda_open(int device, enum rfl_cuda_gate *gate, struct rfl_cuda **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cuda_close(struct rfl_cuda *c); /* accepts NULL */

/**
 * The GPUs and MIG instances that CUDA shows to this process, in its order (CUDA_VISIBLE_DEVICES,
 * CUDA_DEVICE_ORDER): their UUIDs in hexadecimal. No context is made.
 * @return how many, at most `max`; 0 where no driver works, or one too old to know UUIDs
 */
size_t rfl_cuda_uuids(char (*ret)[RFL_CUDA_UUID_MAX], size_t max);

/**
 * Turn a CUresult into our error: the code in err->native, the call, the driver's name of it, what
 * it means and the remedy. RFL_OK for 0; RFL_EDEVMEM for a device that is out of memory.
 */
enum rfl_rc rfl_cuda_check(const struct rfl_cuda *c, int result, const char *call,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** What the driver's parameters say of counters without any call. */
enum rfl_counter_access {
	RFL_COUNTERS_UNKNOWN, /**< no such file: no driver of Linux, or a container without it */
	RFL_COUNTERS_ALL,     /**< every user may read counters */
	RFL_COUNTERS_ADMIN,   /**< root and CAP_SYS_ADMIN only */
};
/** @param path  NULL: /proc/driver/nvidia/params */
enum rfl_counter_access rfl_cuda_counter_access(const char *path);

#endif
