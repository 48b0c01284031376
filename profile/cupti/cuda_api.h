/*
 * cuda_api.h - the part of the CUDA driver that is used here, declared anew, so that no header of
 * NVIDIA is needed to build. tests/unit/test_profile_cupti_abi.c compares it with theirs where they
 * are installed.
 */
#ifndef RFL_PROFILE_CUDA_API_H
#define RFL_PROFILE_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

struct rfl_cuda_context;  /* CUcontext is a pointer to it, and so on */
struct rfl_cuda_module;   /* CUmodule */
struct rfl_cuda_function; /* CUfunction */
struct rfl_cuda_stream;   /* CUstream; NULL: the default stream */

typedef uint64_t rfl_cuda_address; /* CUdeviceptr */

/* X(name, CUDA's name, value) */
/* clang-format off */
#define RFL_CUDA_RESULTS(X) \
	X(SUCCESS, CUDA_SUCCESS, 0) \
	X(INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, 1) \
	X(OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, 2) \
	X(NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED, 3) \
	X(DEINITIALIZED, CUDA_ERROR_DEINITIALIZED, 4) \
	X(STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY, 34) \
	X(REQUIRES_NEWER_DRIVER, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36) \
	X(DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE, 46) \
	X(NO_DEVICE, CUDA_ERROR_NO_DEVICE, 100) \
	X(INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE, 101) \
	X(INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, 201) \
	X(NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU, 209) \
	X(INVALID_PTX, CUDA_ERROR_INVALID_PTX, 218) \
	X(JIT_COMPILER_NOT_FOUND, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221) \
	X(UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222) \
	X(NOT_FOUND, CUDA_ERROR_NOT_FOUND, 500) \
	X(ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS, 700) \
	X(NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED, 800) \
	X(NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED, 801) \
	X(SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY, 802) \
	X(SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803) \
	X(COMPAT_NOT_SUPPORTED, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804) \
	X(UNKNOWN, CUDA_ERROR_UNKNOWN, 999)

/* X(name, CUDA's name, value) */
#define RFL_CUDA_ATTRIBUTES(X) \
	X(ECC_ENABLED, CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 32) \
	X(L2_CACHE_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38) \
	X(CC_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
	X(CC_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)
/* clang-format on */

#define RFL_CUDA_RESULT_ID(name, theirs, value) RFL_CUDA_##name = (value),
enum rfl_cuda_result { RFL_CUDA_RESULTS(RFL_CUDA_RESULT_ID) };
#undef RFL_CUDA_RESULT_ID

#define RFL_CUDA_ATTRIBUTE_ID(name, theirs, value) RFL_CUDA_ATTRIBUTE_##name = (value),
enum rfl_cuda_attribute { RFL_CUDA_ATTRIBUTES(RFL_CUDA_ATTRIBUTE_ID) };
#undef RFL_CUDA_ATTRIBUTE_ID

/* X(needed, member, symbol, arguments): all return an enum rfl_cuda_result. The suffix _v2 is the
 * form that cuda.h gives the plain name; the plain symbol is an older one with 32-bit addresses. */
/* clang-format off */
#define RFL_CUDA_FUNCTIONS(X) \
	X(REQUIRED, init, cuInit, (unsigned flags)) \
	X(REQUIRED, driver_version, cuDriverGetVersion, (int *version)) \
	X(REQUIRED, error_name, cuGetErrorName, (int result, const char **name)) \
	X(REQUIRED, device_count, cuDeviceGetCount, (int *count)) \
	X(REQUIRED, device_get, cuDeviceGet, (int *device, int index)) \
	X(REQUIRED, device_name, cuDeviceGetName, (char *name, int size, int device)) \
	X(OPTIONAL, device_uuid, cuDeviceGetUuid_v2, (unsigned char uuid[16], int device)) \
	X(REQUIRED, device_attribute, cuDeviceGetAttribute, \
	  (int *value, int attribute, int device)) \
	X(REQUIRED, primary_retain, cuDevicePrimaryCtxRetain, \
	  (struct rfl_cuda_context **context, int device)) \
	X(REQUIRED, primary_release, cuDevicePrimaryCtxRelease_v2, (int device)) \
	X(REQUIRED, context_push, cuCtxPushCurrent_v2, (struct rfl_cuda_context *context)) \
	X(REQUIRED, context_pop, cuCtxPopCurrent_v2, (struct rfl_cuda_context **context)) \
	X(REQUIRED, context_synchronize, cuCtxSynchronize, (void)) \
	X(OPTIONAL, memory_info, cuMemGetInfo_v2, (size_t *free_bytes, size_t *total_bytes)) \
	X(REQUIRED, memory_alloc, cuMemAlloc_v2, (rfl_cuda_address *address, size_t size)) \
	X(REQUIRED, memory_free, cuMemFree_v2, (rfl_cuda_address address)) \
	X(REQUIRED, copy_to_device, cuMemcpyHtoD_v2, \
	  (rfl_cuda_address to, const void *from, size_t size)) \
	X(REQUIRED, copy_from_device, cuMemcpyDtoH_v2, \
	  (void *to, rfl_cuda_address from, size_t size)) \
	X(REQUIRED, set_words, cuMemsetD32_v2, \
	  (rfl_cuda_address address, unsigned value, size_t n)) \
	X(REQUIRED, module_load, cuModuleLoadData, \
	  (struct rfl_cuda_module **module, const void *image)) \
	X(REQUIRED, module_unload, cuModuleUnload, (struct rfl_cuda_module *module)) \
	X(REQUIRED, module_function, cuModuleGetFunction, \
	  (struct rfl_cuda_function **function, struct rfl_cuda_module *module, \
	   const char *name)) \
	X(REQUIRED, launch, cuLaunchKernel, \
	  (struct rfl_cuda_function *function, unsigned grid_x, unsigned grid_y, \
	   unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, \
	   unsigned shared_bytes, struct rfl_cuda_stream *stream, void **arguments, \
	   void **extra))
/* clang-format on */

#define RFL_CUDA_FUNCTION_SLOT(needed, member, symbol, arguments) int(*member) arguments;
struct rfl_cuda_functions {
	RFL_CUDA_FUNCTIONS(RFL_CUDA_FUNCTION_SLOT)
};
#undef RFL_CUDA_FUNCTION_SLOT

#endif
