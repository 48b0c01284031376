/*
 * cuda.h - the part of the CUDA driver that is used, opened at run time by the commands that need
 * it. Building needs no NVIDIA headers; the declarations match CUDA 13.0, and
 * tests/unit/test_profile_cupti_abi.c compares them with the headers if those are installed.
 */
#ifndef RFL_MACHINE_CUDA_H
#define RFL_MACHINE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dl.h"
#include "base/err.h"

struct rfl_arena;
struct rfl_cuda_context;  /* CUctx_st: a CUcontext is a pointer to it */
struct rfl_cuda_event;    /* CUevent */
struct rfl_cuda_module;   /* CUmodule */
struct rfl_cuda_function; /* CUfunction */
struct rfl_cuda_stream;   /* CUstream; NULL: the default stream */

typedef uint64_t rfl_cuda_address; /* CUdeviceptr */

/* X(name, CUDA's name, value, our code, meaning, remedy): results that can occur. Without a
 * meaning, messages contain only the driver's name for the result; remedy NULL: none. */
/* clang-format off */
#define RFL_CUDA_RESULTS(X) \
	X(SUCCESS, CUDA_SUCCESS, 0, OK, NULL, NULL) \
	X(INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, 1, EUNAVAILABLE, NULL, NULL) \
	X(OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, 2, EDEVMEM, \
	  "the device does not have enough free memory", \
	  "end other programs on it (listed by nvidia-smi)") \
	X(NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED, 3, EUNAVAILABLE, NULL, NULL) \
	X(STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY, 34, EUNAVAILABLE, \
	  "libcuda.so.1 is the stub of a CUDA toolkit, not a driver", \
	  "remove the directory lib64/stubs from LD_LIBRARY_PATH, and install the NVIDIA driver") \
	X(DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE, 46, EUNAVAILABLE, \
	  "another process uses the device exclusively", "end it, or run 'nvidia-smi -c DEFAULT'") \
	X(NO_DEVICE, CUDA_ERROR_NO_DEVICE, 100, EUNAVAILABLE, "the driver reports no GPU", \
	  "check nvidia-smi and CUDA_VISIBLE_DEVICES; start containers with '--gpus all'") \
	X(INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE, 101, EUNAVAILABLE, "there is no such device", \
	  "choose one that nvidia-smi lists") \
	X(INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, 201, EUNAVAILABLE, \
	  "the context of the device was destroyed", \
	  "do not call cudaDeviceReset in this process") \
	X(INVALID_PTX, CUDA_ERROR_INVALID_PTX, 218, EUNAVAILABLE, NULL, NULL) \
	X(JIT_COMPILER_NOT_FOUND, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221, EUNAVAILABLE, \
	  "the driver's PTX compiler is not installed", \
	  "install libnvidia-ptxjitcompiler, a part of the driver") \
	X(NOT_FOUND, CUDA_ERROR_NOT_FOUND, 500, EUNAVAILABLE, NULL, NULL) \
	X(ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS, 700, EFAILED, \
	  "a kernel accessed memory that it does not have", NULL) \
	X(LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED, 719, EFAILED, "a kernel failed", NULL) \
	X(NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED, 800, EUNAVAILABLE, \
	  "the driver denies permission", NULL) \
	X(SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY, 802, EUNAVAILABLE, \
	  "the GPUs of this machine are not ready", "start nvidia-fabricmanager") \
	X(SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803, EUNAVAILABLE, \
	  "libcuda.so.1 and the kernel driver have different versions", \
	  "restart the machine after an update; in a container, use the host's libraries") \
	X(COMPAT_NOT_SUPPORTED, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804, EUNAVAILABLE, \
	  "the CUDA compatibility package does not work with this GPU", \
	  "remove its directory from LD_LIBRARY_PATH") \
	X(CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, EFAILED, \
	  "the work cannot be recorded as a graph", "run without --cuda-graph") \
	X(CAPTURE_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, EFAILED, \
	  "the work cannot be recorded as a graph", "run without --cuda-graph") \
	X(UNKNOWN, CUDA_ERROR_UNKNOWN, 999, EUNAVAILABLE, \
	  "the driver failed for an unknown reason", \
	  "load its kernel modules ('nvidia-modprobe -u') and check 'dmesg'")

/* X(name, CUDA's name, value) */
#define RFL_CUDA_ATTRIBUTES(X) \
	X(MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16) \
	X(INTEGRATED, CU_DEVICE_ATTRIBUTE_INTEGRATED, 18) \
	X(ECC_ENABLED, CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 32) \
	X(L2_CACHE_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38) \
	X(CC_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
	X(CC_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)
/* clang-format on */

#define RFL_CUDA_RESULT_ID(name, theirs, value, ...) RFL_CUDA_##name = (value),
#define RFL_CUDA_ATTRIBUTE_ID(name, theirs, value)   RFL_CUDA_ATTRIBUTE_##name = (value),
enum rfl_cuda_result { RFL_CUDA_RESULTS(RFL_CUDA_RESULT_ID) };
enum rfl_cuda_attribute { RFL_CUDA_ATTRIBUTES(RFL_CUDA_ATTRIBUTE_ID) };
#undef RFL_CUDA_RESULT_ID
#undef RFL_CUDA_ATTRIBUTE_ID

/* X(member, symbol, arguments): all return an enum rfl_cuda_result. cuda.h maps the
 * plain names to those with the suffix _v2; plain symbols are older functions with 32-bit
 * addresses. */
/* clang-format off */
#define RFL_CUDA_FUNCTIONS(X) \
	X(init, cuInit, (unsigned flags)) \
	X(driver_version, cuDriverGetVersion, (int *version)) \
	X(error_name, cuGetErrorName, (int result, const char **name)) \
	X(device_count, cuDeviceGetCount, (int *count)) \
	X(device_get, cuDeviceGet, (int *device, int index)) \
	X(device_name, cuDeviceGetName, (char *name, int size, int device)) \
	X(device_uuid, cuDeviceGetUuid_v2, (unsigned char uuid[16], int device)) \
	X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device)) \
	X(device_memory, cuDeviceTotalMem_v2, (size_t *bytes, int device)) \
	X(device_pci, cuDeviceGetPCIBusId, (char *id, int size, int device)) \
	X(primary_retain, cuDevicePrimaryCtxRetain, \
	  (struct rfl_cuda_context **context, int device)) \
	X(primary_release, cuDevicePrimaryCtxRelease_v2, (int device)) \
	X(context_push, cuCtxPushCurrent_v2, (struct rfl_cuda_context *context)) \
	X(context_pop, cuCtxPopCurrent_v2, (struct rfl_cuda_context **context)) \
	X(context_synchronize, cuCtxSynchronize, (void)) \
	X(memory_info, cuMemGetInfo_v2, (size_t *free_bytes, size_t *total_bytes)) \
	X(memory_alloc, cuMemAlloc_v2, (rfl_cuda_address *address, size_t size)) \
	X(memory_free, cuMemFree_v2, (rfl_cuda_address address)) \
	X(host_alloc, cuMemHostAlloc, (void **address, size_t size, unsigned flags)) \
	X(host_free, cuMemFreeHost, (void *address)) \
	X(copy_to_device, cuMemcpyHtoD_v2, (rfl_cuda_address to, const void *from, size_t size)) \
	X(copy_from_device, cuMemcpyDtoH_v2, (void *to, rfl_cuda_address from, size_t size)) \
	X(send, cuMemcpyHtoDAsync_v2, \
	  (rfl_cuda_address to, const void *from, size_t size, struct rfl_cuda_stream *stream)) \
	X(fetch, cuMemcpyDtoHAsync_v2, \
	  (void *to, rfl_cuda_address from, size_t size, struct rfl_cuda_stream *stream)) \
	X(set_words, cuMemsetD32_v2, (rfl_cuda_address address, unsigned value, size_t n)) \
	X(module_load, cuModuleLoadData, (struct rfl_cuda_module **module, const void *image)) \
	X(module_unload, cuModuleUnload, (struct rfl_cuda_module *module)) \
	X(module_function, cuModuleGetFunction, \
	  (struct rfl_cuda_function **function, struct rfl_cuda_module *module, \
	   const char *name)) \
	X(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor, \
	  (int *blocks, struct rfl_cuda_function *function, int threads, size_t shared_bytes)) \
	X(event_create, cuEventCreate, (struct rfl_cuda_event **event, unsigned flags)) \
	X(event_destroy, cuEventDestroy_v2, (struct rfl_cuda_event *event)) \
	X(event_record, cuEventRecord, \
	  (struct rfl_cuda_event *event, struct rfl_cuda_stream *stream)) \
	X(event_synchronize, cuEventSynchronize, (struct rfl_cuda_event *event)) \
	X(event_elapsed, cuEventElapsedTime, \
	  (float *ms, struct rfl_cuda_event *from, struct rfl_cuda_event *to)) \
	X(launch, cuLaunchKernel, \
	  (struct rfl_cuda_function *function, unsigned grid_x, unsigned grid_y, \
	   unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, \
	   unsigned shared_bytes, struct rfl_cuda_stream *stream, void **arguments, \
	   void **extra))
/* clang-format on */

/* Rows of X(member, symbol, arguments) as pointers to the functions, and as their names for
 * messages. */
#define RFL_CUDA_SLOT(member, symbol, arguments)   int(*member) arguments;
#define RFL_CUDA_SYMBOL(member, symbol, arguments) const char *member;
#define RFL_CUDA_NAME(member, symbol, arguments)   .member = #symbol,
struct rfl_cuda_functions {
	RFL_CUDA_FUNCTIONS(RFL_CUDA_SLOT)
};
struct rfl_cuda_symbols {
	RFL_CUDA_FUNCTIONS(RFL_CUDA_SYMBOL)
};
extern const struct rfl_cuda_symbols rfl_cuda_symbols;

/** A result of an NVIDIA library. */
struct rfl_cuda_message {
	int result;
	enum rfl_rc rc;
	const char *meaning, *remedy; /**< NULL: none */
};
#define RFL_CUDA_MESSAGE(name, theirs, value, rc, meaning, remedy) \
	{ value, RFL_##rc, meaning, remedy },

/** Fail with the message of a result. @param name  the library's name for it */
enum rfl_rc rfl_cuda_explain(const struct rfl_cuda_message *messages, size_t n, int result,
			     const char *call, const char *name, struct rfl_err *err);

/** The driver, one device, and the device's primary context, which is current; read only. */
struct rfl_cuda {
	struct rfl_cuda_functions calls;
	struct rfl_dl *dl;
	struct rfl_cuda_context *context;
	int device;
	int version;         /**< CUDA version of the driver: 13000 for CUDA 13.0 */
	int capability;      /**< 90 */
	int multiprocessors; /**< 0: unknown */
	int64_t l2_bytes;    /**< 0: unknown */
	bool ecc;            /**< ECC is enabled */
	bool integrated;     /**< it shares the host's memory */
	char name[256];      /**< "NVIDIA H100 80GB HBM3" */
	bool retained, pushed;
};

/** Open the driver and make the primary context of a device (CUDA's index) current on this thread,
 * which must also close it. The CUDA runtime, and thus libtorch, uses the same context. Returns
 * RFL_EUNAVAILABLE with the reason, the remedy, and the driver's code in err->native.
 * @param no_driver  set on failure if the driver, not the device, is the cause; may be NULL */
enum rfl_rc rfl_cuda_open(int device, bool *no_driver, struct rfl_cuda **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cuda_close(struct rfl_cuda *c); /* accepts NULL */
RFL_AUTOPTR_TYPE(cuda, close);

/** Where the libraries of CUDA may be, in addition to the loader's directories; NULL: not known. */
struct rfl_cuda_places {
	const char *cuda_home; /**< a toolkit, with lib64 and extras/CUPTI/lib64 */
	/** PyTorch's libraries, near the directories nvidia/.../lib of its wheels. */
	const char *beside;
};

/** List the candidates for a library in order of preference: its name, for the loader, then the
 * files that exist. The version of the library is the last number of its name.
 * @param file   "libcupti.so.13"
 * @param wheel  directory of its wheel in nvidia/ before CUDA 13: "cuda_cupti"
 * @param names  gets at most `max` names, which belong to the arena
 * @return their number */
size_t rfl_cuda_library(struct rfl_arena *arena, const char *file, const char *wheel,
			const struct rfl_cuda_places *places, const char **names, size_t max);

#define RFL_CUDA_UUID_MAX 33
/** The UUIDs, in hexadecimal, of the first `max` GPUs and MIG instances that CUDA shows to this
 * process, in CUDA's order (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER); 0 without a working driver.
 * Creates no context. */
size_t rfl_cuda_uuids(char (*ret)[RFL_CUDA_UUID_MAX], size_t max);

/** Turn a CUresult into an error: the code in err->native, the call, its meaning and the remedy in
 * the message. RFL_EDEVMEM if the device is out of memory; RFL_OK for 0. */
enum rfl_rc rfl_cuda_check(const struct rfl_cuda *c, int result, const char *call,
			   struct rfl_err *err) RFL_WARN_UNUSED;
/** Call a function of the driver and check its result; error messages name the function. */
#define RFL_CUDA_CALL(c, member, err, ...) \
	rfl_cuda_check(c, (c)->calls.member(__VA_ARGS__), rfl_cuda_symbols.member, err)

#endif
