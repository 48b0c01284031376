/*
 * gpu_matmul.h - internal: GEMMs by cuBLASLt, opened at run time. Declarations match
 * CUDA 13.0; tests/unit/test_peaks_gpu_abi.c compares them with NVIDIA's headers.
 */
#ifndef RFL_PEAKS_GPU_MATMUL_H
#define RFL_PEAKS_GPU_MATMUL_H

#include <stddef.h>
#include <stdint.h>

#include "peaks/gpu_bench.h"

struct rfl_lt_handle;     /* cublasLtHandle_t */
struct rfl_lt_operation;  /* cublasLtMatmulDesc_t */
struct rfl_lt_layout;     /* cublasLtMatrixLayout_t */
struct rfl_lt_preference; /* cublasLtMatmulPreference_t */

struct rfl_lt_algorithm { /* cublasLtMatmulAlgo_t */
	uint64_t data[8];
};
struct rfl_lt_candidate { /* cublasLtMatmulHeuristicResult_t */
	struct rfl_lt_algorithm algorithm;
	size_t workspace_bytes;
	int state;
	float waves;
	int reserved[4];
};

/* clang-format off */
/* X(member, symbol, arguments): all return a cublasStatus_t. */
#define RFL_LT_FUNCTIONS(X) \
	X(create, cublasLtCreate, (struct rfl_lt_handle **handle)) \
	X(destroy, cublasLtDestroy, (struct rfl_lt_handle *handle)) \
	X(operation_create, cublasLtMatmulDescCreate, \
	  (struct rfl_lt_operation **operation, int compute, int scale_type)) \
	X(operation_destroy, cublasLtMatmulDescDestroy, (struct rfl_lt_operation *operation)) \
	X(operation_set, cublasLtMatmulDescSetAttribute, \
	  (struct rfl_lt_operation *operation, int attribute, const void *value, size_t size)) \
	X(layout_create, cublasLtMatrixLayoutCreate, \
	  (struct rfl_lt_layout **layout, int type, uint64_t rows, uint64_t columns, int64_t ld)) \
	X(layout_destroy, cublasLtMatrixLayoutDestroy, (struct rfl_lt_layout *layout)) \
	X(preference_create, cublasLtMatmulPreferenceCreate, \
	  (struct rfl_lt_preference **preference)) \
	X(preference_destroy, cublasLtMatmulPreferenceDestroy, \
	  (struct rfl_lt_preference *preference)) \
	X(preference_set, cublasLtMatmulPreferenceSetAttribute, \
	  (struct rfl_lt_preference *preference, int attribute, const void *value, size_t size)) \
	X(candidates, cublasLtMatmulAlgoGetHeuristic, \
	  (struct rfl_lt_handle *handle, struct rfl_lt_operation *operation, \
	   struct rfl_lt_layout *a, struct rfl_lt_layout *b, struct rfl_lt_layout *c, \
	   struct rfl_lt_layout *d, struct rfl_lt_preference *preference, int wanted, \
	   struct rfl_lt_candidate *candidates, int *found)) \
	X(multiply, cublasLtMatmul, \
	  (struct rfl_lt_handle *handle, struct rfl_lt_operation *operation, const void *alpha, \
	   const void *a, struct rfl_lt_layout *a_layout, const void *b, \
	   struct rfl_lt_layout *b_layout, const void *beta, const void *c, \
	   struct rfl_lt_layout *c_layout, void *d, struct rfl_lt_layout *d_layout, \
	   const struct rfl_lt_algorithm *algorithm, void *workspace, size_t workspace_bytes, \
	   struct rfl_cuda_stream *stream))

/* X(ID, cuBLAS's name, value) */
#define RFL_LT_NUMBERS(X) \
	X(COMPUTE_16F, CUBLAS_COMPUTE_16F, 64) \
	X(COMPUTE_32F, CUBLAS_COMPUTE_32F, 68) \
	X(COMPUTE_64F, CUBLAS_COMPUTE_64F, 70) \
	X(COMPUTE_32I, CUBLAS_COMPUTE_32I, 72) \
	X(COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32, 77) \
	X(R_32F, CUDA_R_32F, 0) \
	X(R_64F, CUDA_R_64F, 1) \
	X(R_16F, CUDA_R_16F, 2) \
	X(R_8I, CUDA_R_8I, 3) \
	X(R_32I, CUDA_R_32I, 10) \
	X(R_16BF, CUDA_R_16BF, 14) \
	X(R_E4M3, CUDA_R_8F_E4M3, 28) \
	X(OP_T, CUBLAS_OP_T, 1) \
	X(OPERATION_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA, 3) \
	X(OPERATION_FAST, CUBLASLT_MATMUL_DESC_FAST_ACCUM, 25) \
	X(PREFERENCE_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)
/* clang-format on */

#define RFL_LT_ID(id, theirs, value) RFL_LT_##id = (value),
enum rfl_lt_number { RFL_LT_NUMBERS(RFL_LT_ID) };
#undef RFL_LT_ID

struct rfl_lt_functions {
	RFL_LT_FUNCTIONS(RFL_CUDA_SLOT)
};

/** cuBLASLt on the device of a bench. */
struct rfl_gpu_matmul {
	struct rfl_gpu_bench *bench;
	struct rfl_dl *dl;
	struct rfl_lt_functions calls;
	size_t (*version)(void);
	struct rfl_lt_handle *handle;
};

/** A product D = A^T B, of n x n matrices stored by columns. */
struct rfl_gpu_product {
	const char *key;        /**< the ceiling: "bf16.matrix" */
	const char *name;       /**< types of A and B, and of D if it differs */
	const char *accumulate; /**< "fp32" */
	bool fast;              /**< sums are kept in fewer bits, as libraries for training do */
	int min_capability;
	enum rfl_gpu_type type; /**< of A and B */
	int compute, scale_type, in, out;
	size_t out_bytes; /**< of an element of D */
	uint64_t one;     /**< 1 in the scale type */
};

/** The i-th product; NULL past the end. */
const struct rfl_gpu_product *rfl_gpu_product_at(size_t i);

/** Open the library of CUDA 13, 12 or 11. Returns RFL_EUNAVAILABLE if there is none. Release with
 * rfl_gpu_matmul_close(), also after a failure. */
enum rfl_rc rfl_gpu_matmul_open(struct rfl_gpu_matmul *m, struct rfl_gpu_bench *bench,
				const struct rfl_cuda_places *places,
				struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_gpu_matmul_close(struct rfl_gpu_matmul *m);

/** Try several sizes and algorithms, and run the fastest in full. @param n  set to its size */
enum rfl_rc rfl_gpu_matmul_run(struct rfl_gpu_matmul *m, const struct rfl_gpu_product *p,
			       int64_t *n, struct rfl_gpu_timed *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

#endif
