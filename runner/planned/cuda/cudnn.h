/*
 * cudnn.h - the part of cuDNN 9's backend API that is used, of NVRTC and of the driver's streams
 * and graphs, opened at run time so that building needs no NVIDIA headers. The declarations match
 * cuDNN 9.19 and CUDA 13.0; tests/unit/test_planned_cudnn_abi.c compares them with NVIDIA's headers
 * if those are installed.
 */
#ifndef RFL_RUNNER_PLANNED_CUDA_CUDNN_H
#define RFL_RUNNER_PLANNED_CUDA_CUDNN_H

#include <stddef.h>
#include <stdint.h>

#include "machine/cuda.h"

struct rfl_cudnn_handle;            /* cudnnContext: a cudnnHandle_t is a pointer to it */
typedef void *rfl_cudnn_descriptor; /* cudnnBackendDescriptor_t */
struct rfl_nvrtc_program;           /* _nvrtcProgram */
struct rfl_cuda_graph;              /* CUgraph_st */
struct rfl_cuda_graph_exec;         /* CUgraphExec_st */

/* X(ID, cuDNN's name without CUDNN_, value) */
/* clang-format off */
#define RFL_CUDNN_NUMBERS(X) \
	/* cudnnDataType_t */ \
	X(DATA_FLOAT, 0) X(DATA_HALF, 2) X(DATA_BFLOAT16, 9) X(DATA_BOOLEAN, 11) \
	/* cudnnBackendAttributeType_t */ \
	X(TYPE_HANDLE, 0) X(TYPE_DATA_TYPE, 1) X(TYPE_BOOLEAN, 2) X(TYPE_INT64, 3) X(TYPE_FLOAT, 4) \
	X(TYPE_VOID_PTR, 6) X(TYPE_CONVOLUTION_MODE, 7) X(TYPE_HEUR_MODE, 8) \
	X(TYPE_NUMERICAL_NOTE, 11) X(TYPE_POINTWISE_MODE, 14) X(TYPE_BACKEND_DESCRIPTOR, 15) \
	X(TYPE_CHAR, 24) X(TYPE_NORM_MODE, 27) X(TYPE_NORM_FWD_PHASE, 28) \
	/* cudnnBackendDescriptorType_t */ \
	X(BACKEND_POINTWISE_DESCRIPTOR, 0) X(BACKEND_CONVOLUTION_DESCRIPTOR, 1) \
	X(BACKEND_ENGINE_DESCRIPTOR, 2) X(BACKEND_ENGINECFG_DESCRIPTOR, 3) \
	X(BACKEND_ENGINEHEUR_DESCRIPTOR, 4) X(BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5) \
	X(BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10) \
	X(BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11) \
	X(BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12) \
	X(BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13) X(BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15) \
	X(BACKEND_VARIANT_PACK_DESCRIPTOR, 16) X(BACKEND_TENSOR_DESCRIPTOR, 17) \
	X(BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, 29) \
	X(BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, 30) X(BACKEND_DEVICEPROP_DESCRIPTOR, 38) \
	/* cudnnConvolutionMode_t, cudnnPointwiseMode_t, cudnnBackendHeurMode_t */ \
	X(CROSS_CORRELATION, 1) X(POINTWISE_ADD, 0) X(POINTWISE_MUL, 1) X(POINTWISE_RELU_FWD, 100) \
	X(POINTWISE_CMP_GT, 302) X(HEUR_MODE_FALLBACK, 2) X(HEUR_MODE_A, 3) \
	/* cudnnBackendNormMode_t, cudnnBackendNormFwdPhase_t */ \
	X(BATCH_NORM, 2) X(NORM_FWD_TRAINING, 1) \
	/* cudnnBackendNumericalNote_t */ \
	X(NUMERICAL_NOTE_TENSOR_CORE, 0) X(NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1) \
	X(NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2) X(NUMERICAL_NOTE_NONDETERMINISTIC, 4) \
	X(NUMERICAL_NOTE_TYPE_COUNT, 10) \
	/* cudnnBackendAttributeName_t */ \
	X(ATTR_POINTWISE_MODE, 0) X(ATTR_POINTWISE_MATH_PREC, 1) \
	X(ATTR_CONVOLUTION_COMP_TYPE, 100) X(ATTR_CONVOLUTION_CONV_MODE, 101) \
	X(ATTR_CONVOLUTION_DILATIONS, 102) X(ATTR_CONVOLUTION_FILTER_STRIDES, 103) \
	X(ATTR_CONVOLUTION_POST_PADDINGS, 104) X(ATTR_CONVOLUTION_PRE_PADDINGS, 105) \
	X(ATTR_CONVOLUTION_SPATIAL_DIMS, 106) \
	X(ATTR_ENGINEHEUR_MODE, 200) X(ATTR_ENGINEHEUR_OPERATION_GRAPH, 201) \
	X(ATTR_ENGINEHEUR_RESULTS, 202) X(ATTR_ENGINEHEUR_DEVICEPROP, 204) \
	X(ATTR_ENGINECFG_ENGINE, 300) \
	X(ATTR_EXECUTION_PLAN_HANDLE, 400) X(ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401) \
	X(ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402) X(ATTR_EXECUTION_PLAN_DEVICEPROP, 407) \
	X(ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700) \
	X(ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701) \
	X(ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702) \
	X(ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703) X(ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704) \
	X(ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709) X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717) \
	X(ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750) X(ATTR_OPERATION_POINTWISE_XDESC, 751) \
	X(ATTR_OPERATION_POINTWISE_BDESC, 752) X(ATTR_OPERATION_POINTWISE_YDESC, 753) \
	X(ATTR_OPERATIONGRAPH_HANDLE, 800) X(ATTR_OPERATIONGRAPH_OPS, 801) \
	X(ATTR_TENSOR_BYTE_ALIGNMENT, 900) X(ATTR_TENSOR_DATA_TYPE, 901) \
	X(ATTR_TENSOR_DIMENSIONS, 902) X(ATTR_TENSOR_STRIDES, 903) X(ATTR_TENSOR_UNIQUE_ID, 906) \
	X(ATTR_TENSOR_IS_VIRTUAL, 907) X(ATTR_TENSOR_IS_BY_VALUE, 908) \
	X(ATTR_VARIANT_PACK_UNIQUE_IDS, 1000) X(ATTR_VARIANT_PACK_DATA_POINTERS, 1001) \
	X(ATTR_VARIANT_PACK_WORKSPACE, 1003) \
	X(ATTR_ENGINE_NUMERICAL_NOTE, 1303) \
	X(ATTR_OPERATION_NORM_FWD_MODE, 2000) X(ATTR_OPERATION_NORM_FWD_PHASE, 2001) \
	X(ATTR_OPERATION_NORM_FWD_XDESC, 2002) X(ATTR_OPERATION_NORM_FWD_MEAN_DESC, 2003) \
	X(ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, 2004) \
	X(ATTR_OPERATION_NORM_FWD_SCALE_DESC, 2005) X(ATTR_OPERATION_NORM_FWD_BIAS_DESC, 2006) \
	X(ATTR_OPERATION_NORM_FWD_EPSILON_DESC, 2007) \
	X(ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, 2008) \
	X(ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, 2009) \
	X(ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, 2010) \
	X(ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, 2011) \
	X(ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, 2012) \
	X(ATTR_OPERATION_NORM_FWD_YDESC, 2013) \
	X(ATTR_OPERATION_NORM_BWD_MODE, 2100) X(ATTR_OPERATION_NORM_BWD_XDESC, 2101) \
	X(ATTR_OPERATION_NORM_BWD_MEAN_DESC, 2102) \
	X(ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, 2103) \
	X(ATTR_OPERATION_NORM_BWD_DYDESC, 2104) X(ATTR_OPERATION_NORM_BWD_SCALE_DESC, 2105) \
	X(ATTR_OPERATION_NORM_BWD_DSCALE_DESC, 2107) X(ATTR_OPERATION_NORM_BWD_DBIAS_DESC, 2108) \
	X(ATTR_OPERATION_NORM_BWD_DXDESC, 2109) \
	X(ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702)

/* X(member, symbol, result, arguments) */
#define RFL_CUDNN_FUNCTIONS(X) \
	X(version, cudnnGetVersion, size_t, (void)) \
	X(error_string, cudnnGetErrorString, const char *, (int status)) \
	X(last_error, cudnnGetLastErrorString, void, (char *message, size_t size)) \
	X(create, cudnnCreate, int, (struct rfl_cudnn_handle **handle)) \
	X(destroy, cudnnDestroy, int, (struct rfl_cudnn_handle *handle)) \
	X(set_stream, cudnnSetStream, int, \
	  (struct rfl_cudnn_handle *handle, struct rfl_cuda_stream *stream)) \
	X(descriptor_create, cudnnBackendCreateDescriptor, int, \
	  (int type, rfl_cudnn_descriptor *descriptor)) \
	X(descriptor_destroy, cudnnBackendDestroyDescriptor, int, (rfl_cudnn_descriptor descriptor)) \
	X(finalize, cudnnBackendFinalize, int, (rfl_cudnn_descriptor descriptor)) \
	X(set, cudnnBackendSetAttribute, int, \
	  (rfl_cudnn_descriptor descriptor, int name, int type, int64_t n, const void *values)) \
	X(get, cudnnBackendGetAttribute, int, \
	  (rfl_cudnn_descriptor descriptor, int name, int type, int64_t wanted, int64_t *n, \
	   void *values)) \
	X(execute, cudnnBackendExecute, int, \
	  (struct rfl_cudnn_handle *handle, rfl_cudnn_descriptor plan, rfl_cudnn_descriptor pack))

/* X(member, symbol, arguments): all return an nvrtcResult. */
#define RFL_NVRTC_FUNCTIONS(X) \
	X(create, nvrtcCreateProgram, \
	  (struct rfl_nvrtc_program **program, const char *source, const char *name, int nheaders, \
	   const char *const *headers, const char *const *names)) \
	X(destroy, nvrtcDestroyProgram, (struct rfl_nvrtc_program **program)) \
	X(compile, nvrtcCompileProgram, \
	  (struct rfl_nvrtc_program *program, int noptions, const char *const *options)) \
	X(cubin_size, nvrtcGetCUBINSize, (struct rfl_nvrtc_program *program, size_t *size)) \
	X(cubin, nvrtcGetCUBIN, (struct rfl_nvrtc_program *program, char *cubin)) \
	X(log_size, nvrtcGetProgramLogSize, (struct rfl_nvrtc_program *program, size_t *size)) \
	X(log, nvrtcGetProgramLog, (struct rfl_nvrtc_program *program, char *log))

/* More of the driver than machine/cuda.h has. X(member, symbol, arguments): all return an enum
 * rfl_cuda_result. */
#define RFL_QUEUE_FUNCTIONS(X) \
	X(create, cuStreamCreate, (struct rfl_cuda_stream **stream, unsigned flags)) \
	X(destroy, cuStreamDestroy_v2, (struct rfl_cuda_stream *stream)) \
	X(synchronize, cuStreamSynchronize, (struct rfl_cuda_stream *stream)) \
	X(wait, cuStreamWaitEvent, \
	  (struct rfl_cuda_stream *stream, struct rfl_cuda_event *event, unsigned flags)) \
	X(copy, cuMemcpyDtoDAsync_v2, \
	  (rfl_cuda_address to, rfl_cuda_address from, size_t size, struct rfl_cuda_stream *stream)) \
	X(fill, cuMemsetD8Async, \
	  (rfl_cuda_address to, unsigned char value, size_t size, struct rfl_cuda_stream *stream)) \
	X(begin, cuStreamBeginCapture_v2, (struct rfl_cuda_stream *stream, int mode)) \
	X(end, cuStreamEndCapture, (struct rfl_cuda_stream *stream, struct rfl_cuda_graph **graph)) \
	X(instantiate, cuGraphInstantiateWithFlags, \
	  (struct rfl_cuda_graph_exec **exec, struct rfl_cuda_graph *graph, \
	   unsigned long long flags)) \
	X(launch, cuGraphLaunch, (struct rfl_cuda_graph_exec *exec, struct rfl_cuda_stream *stream)) \
	X(exec_destroy, cuGraphExecDestroy, (struct rfl_cuda_graph_exec *exec)) \
	X(graph_destroy, cuGraphDestroy, (struct rfl_cuda_graph *graph))
/* clang-format on */

#define RFL_CUDNN_NUMBER(id, value) RFL_CUDNN_##id = (value),
enum { RFL_CUDNN_NUMBERS(RFL_CUDNN_NUMBER) };
#undef RFL_CUDNN_NUMBER

/* Flags of the driver. */
enum {
	RFL_STREAM_NON_BLOCKING = 1,       /* CU_STREAM_NON_BLOCKING */
	RFL_CAPTURE_MODE_THREAD_LOCAL = 1, /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
};

#define RFL_CUDNN_SLOT(member, symbol, result, arguments) result(*member) arguments;
struct rfl_cudnn_functions {
	RFL_CUDNN_FUNCTIONS(RFL_CUDNN_SLOT)
};
struct rfl_nvrtc_functions {
	RFL_NVRTC_FUNCTIONS(RFL_CUDA_SLOT)
};
struct rfl_queue_functions {
	RFL_QUEUE_FUNCTIONS(RFL_CUDA_SLOT)
};
struct rfl_queue_symbols {
	RFL_QUEUE_FUNCTIONS(RFL_CUDA_SYMBOL)
};
extern const struct rfl_queue_symbols rfl_queue_symbols;

/** Open the first of a library's files ("libcudnn.so.9") that loads: from the loader's directories,
 * from CUDA's, or from PyTorch's wheels. */
enum rfl_rc rfl_cuda_load(const char *const *files, size_t nfiles, const char *wheel,
			  const struct rfl_dl_symbol *symbols, size_t nsymbols, struct rfl_dl **ret,
			  struct rfl_err *err);

#endif
