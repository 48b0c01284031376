/*
 * test_planned_cudnn_abi.c - what runner/planned/cuda/cudnn.h declares of cuDNN, NVRTC and the
 * driver is what NVIDIA's headers declare.
 */
#include <stddef.h>
#include <stdio.h>

#include "tests/unit/rfl_test.h"

#ifdef RFL_TEST_CUDNN_HEADERS
#include <cuda.h>
#include <cudnn.h>
#include <nvrtc.h>

#include "base/compiler.h"
#include "runner/planned/cuda/cudnn.h"

#define NUMBER(id, value) { "CUDNN_" #id, RFL_CUDNN_##id, CUDNN_##id },
static const struct {
	const char *what;
	long long ours, theirs;
} numbers[] = {
	RFL_CUDNN_NUMBERS(NUMBER){ "CU_STREAM_NON_BLOCKING", RFL_STREAM_NON_BLOCKING,
				   CU_STREAM_NON_BLOCKING },
	{ "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL", RFL_CAPTURE_MODE_THREAD_LOCAL,
	  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL },
	{ "cudnnBackendDescriptor_t", sizeof(rfl_cudnn_descriptor),
	  sizeof(cudnnBackendDescriptor_t) },
	{ "cudnnStatus_t", sizeof(int), sizeof(cudnnStatus_t) },
	{ "cudnnBackendAttributeName_t", sizeof(int), sizeof(cudnnBackendAttributeName_t) },
	{ "cudnnDataType_t", sizeof(int), sizeof(cudnnDataType_t) },
	{ "cudnnBackendNumericalNote_t", sizeof(int), sizeof(cudnnBackendNumericalNote_t) },
	{ "nvrtcResult", sizeof(int), sizeof(nvrtcResult) },
	{ "CUdeviceptr", sizeof(rfl_cuda_address), sizeof(CUdeviceptr) },
};

static void numbers_are_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(numbers); i++)
		if (numbers[i].ours != numbers[i].theirs)
			fail_msg("%s: %lld here, %lld in NVIDIA's header", numbers[i].what,
				 numbers[i].ours, numbers[i].theirs);
}

/* One call by both declarations, with arguments as wide as the parameters: a narrower or another
 * parameter, or another number of them, does not compile. The table holds each symbol once. */
#define CALL(functions, member, symbol, arguments)                     \
	{                                                              \
		if (0) {                                               \
			(void)symbol arguments;                        \
			(void)functions.member arguments;              \
		}                                                      \
		called += sizeof(&symbol) == sizeof(functions.member); \
	}

#define COUNT(...) +1
static void functions_are_the_same(void **state)
{
	struct rfl_cudnn_functions dnn = { .version = NULL };
	struct rfl_nvrtc_functions rtc = { .create = NULL };
	struct rfl_queue_functions queue = { .create = NULL };
	void *p = NULL;
	int i = 0, called = 0;
	int64_t l = 0;
	size_t size = 0;
	unsigned u = 0;
	unsigned char byte = 0;
	unsigned long long flags = 0;
	CUdeviceptr address = 0;

	(void)state;
	CALL(dnn, version, cudnnGetVersion, ())
	CALL(dnn, error_string, cudnnGetErrorString, (i))
	CALL(dnn, last_error, cudnnGetLastErrorString, (p, size))
	CALL(dnn, create, cudnnCreate, (p))
	CALL(dnn, destroy, cudnnDestroy, (p))
	CALL(dnn, set_stream, cudnnSetStream, (p, p))
	CALL(dnn, descriptor_create, cudnnBackendCreateDescriptor, (i, p))
	CALL(dnn, descriptor_destroy, cudnnBackendDestroyDescriptor, (p))
	CALL(dnn, finalize, cudnnBackendFinalize, (p))
	CALL(dnn, set, cudnnBackendSetAttribute, (p, i, i, l, p))
	CALL(dnn, get, cudnnBackendGetAttribute, (p, i, i, l, p, p))
	CALL(dnn, execute, cudnnBackendExecute, (p, p, p))

	CALL(rtc, create, nvrtcCreateProgram, (p, p, p, i, p, p))
	CALL(rtc, destroy, nvrtcDestroyProgram, (p))
	CALL(rtc, compile, nvrtcCompileProgram, (p, i, p))
	CALL(rtc, cubin_size, nvrtcGetCUBINSize, (p, p))
	CALL(rtc, cubin, nvrtcGetCUBIN, (p, p))
	CALL(rtc, log_size, nvrtcGetProgramLogSize, (p, p))
	CALL(rtc, log, nvrtcGetProgramLog, (p, p))

	CALL(queue, create, cuStreamCreate, (p, u))
	CALL(queue, destroy, cuStreamDestroy_v2, (p))
	CALL(queue, synchronize, cuStreamSynchronize, (p))
	CALL(queue, wait, cuStreamWaitEvent, (p, p, u))
	CALL(queue, copy, cuMemcpyDtoDAsync_v2, (address, address, size, p))
	CALL(queue, fill, cuMemsetD8Async, (address, byte, size, p))
	CALL(queue, begin, cuStreamBeginCapture_v2, (p, i))
	CALL(queue, end, cuStreamEndCapture, (p, p))
	CALL(queue, instantiate, cuGraphInstantiateWithFlags, (p, p, flags))
	CALL(queue, launch, cuGraphLaunch, (p, p))
	CALL(queue, exec_destroy, cuGraphExecDestroy, (p))
	CALL(queue, graph_destroy, cuGraphDestroy, (p))
	assert_int_equal(called, RFL_CUDNN_FUNCTIONS(COUNT) RFL_NVRTC_FUNCTIONS(COUNT)
					 RFL_QUEUE_FUNCTIONS(COUNT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_the_same),
		cmocka_unit_test(functions_are_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	puts("skipped: no headers of cuDNN 9, NVRTC and the CUDA driver were found when this was "
	     "configured");
	return 77;
}

#endif
