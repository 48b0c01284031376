/*
 * standin.c - a libcuda.so.1 with which cuDNN compiles kernels on a machine without a GPU: it
 * accepts every kernel and runs none.
 *
 * cuDNN makes plans for a device that is only described, but its engines that compile kernels with
 * NVRTC also load them, and ask for their attributes. cuInit must fail, as in the stub of a CUDA
 * toolkit: after a success NVRTC expects more of the driver.
 */
#include <stddef.h>

#include "base/compiler.h"

enum { OK = 0, STUB_LIBRARY = 34 };
static char object; /* every handle is its address */

#define CALL(name, arguments, answer, result) \
	RFL_EXPORT int name arguments;        \
	RFL_EXPORT int name arguments         \
	{                                     \
		answer;                       \
		return result;                \
	}
#define EXISTS(name) CALL(name, (void), (void)0, OK)

/* clang-format off */
CALL(cuInit, (unsigned flags), (void)flags, STUB_LIBRARY)
CALL(cuDriverGetVersion, (int *ret), (void)ret, STUB_LIBRARY)
CALL(cuDeviceGetCount, (int *ret), (void)ret, STUB_LIBRARY)
CALL(cuDeviceGet, (int *ret, int index), *ret = index, OK)
CALL(cuGetErrorName, (int result, const char **ret), *ret = result ? "STUB_LIBRARY" : "SUCCESS", OK)
CALL(cuGetErrorString, (int result, const char **ret), *ret = result ? "stand-in" : "success", OK)

CALL(cuCtxGetCurrent, (void **ret), *ret = &object, OK)
CALL(cuCtxPushCurrent, (void *context), (void)context, OK)
CALL(cuCtxPopCurrent, (void **ret), *ret = &object, OK)
CALL(cuCtxGetLimit, (size_t *ret, int limit), (*ret = 1024, (void)limit), OK)
CALL(cuStreamGetCtx, (void *stream, void **ret), (*ret = &object, (void)stream), OK)

/* code and the options of its compiler and linker */
CALL(cuLibraryLoadData,
     (void **ret, const void *code, void *a, void *b, unsigned na, void *c, void *d, unsigned nc),
     (*ret = &object, (void)code, (void)a, (void)b, (void)na, (void)c, (void)d, (void)nc), OK)
CALL(cuLibraryUnload, (void *library), (void)library, OK)
CALL(cuLibraryGetKernel, (void **ret, void *library, const char *name),
     (*ret = &object, (void)library, (void)name), OK)
CALL(cuKernelGetAttribute, (int *ret, int what, void *kernel, int device),
     (*ret = what == 0 ? 1024 : 0, (void)kernel, (void)device), OK) /* 0: threads of a block */
CALL(cuKernelSetAttribute, (int what, int value, void *kernel, int device),
     ((void)what, (void)value, (void)kernel, (void)device), OK)
CALL(cuOccupancyMaxPotentialClusterSize, (int *ret, void *kernel, void *config),
     (*ret = 8, (void)kernel, (void)config), OK)
CALL(cuOccupancyMaxActiveClusters, (int *ret, void *kernel, void *config),
     (*ret = 16, (void)kernel, (void)config), OK)
CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor,
     (int *ret, void *kernel, int threads, size_t shared_bytes),
     (*ret = 1, (void)kernel, (void)threads, (void)shared_bytes), OK)

/* cuDNN loads nothing if one of these does not exist. */
EXISTS(cuLaunchKernel) EXISTS(cuLaunchKernelEx) EXISTS(cuLaunchCooperativeKernel)
EXISTS(cuLibraryLoadFromFile) EXISTS(cuTensorMapEncodeTiled)
EXISTS(cuLinkCreate) EXISTS(cuLinkAddData) EXISTS(cuLinkComplete) EXISTS(cuLinkDestroy)
