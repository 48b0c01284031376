/*
 * selftest_ptx.h - kernels with an exactly known number of FLOPs, as PTX that the driver compiles
 * for the GPU at hand: no CUDA runtime, no cuBLAS, no compiler at build time.
 *
 * All of them compute C = A x B with A of rows x k, B of columns x k (its transpose, so that both
 * are read along k) and C of fp32, rows x columns, row by row. No element is computed twice and
 * none is padded: exactly 2 x rows x columns x k FLOPs, and no other floating-point instruction.
 */
#ifndef RFL_PROFILE_SELFTEST_PTX_H
#define RFL_PROFILE_SELFTEST_PTX_H

#include <stddef.h>

#include "base/buf.h"
#include "profile/profile.h"

enum rfl_selftest_type { RFL_SELFTEST_F32, RFL_SELFTEST_F16, RFL_SELFTEST_BF16, RFL_SELFTEST_TF32 };

struct rfl_selftest_kernel {
	const char *name;            /**< of the entry: "rfl_selftest_f32" */
	enum rfl_selftest_type type; /**< of A and B */
	int element_bytes;
	int min_capability;          /**< 75, 80 */
	int tile_rows, tile_columns; /**< of C, computed by one block */
	int threads;                 /**< of a block */
	enum rfl_quantity quantity;  /**< that counts its FLOPs */
	const char *step;            /**< the arithmetic on 32 bytes of a row of A and of B */
};

/** The i-th kernel; NULL past the end. The first runs on every GPU that can be counted. */
const struct rfl_selftest_kernel *rfl_selftest_kernel_at(size_t i);

/**
 * The kernel as PTX of the oldest version and target that knows its instructions.
 * Parameters: u64 a, u64 b, u64 c, u32 columns, u32 bytes of k elements (a multiple of 32);
 * grid: columns / tile_columns, rows / tile_rows, and as often as wanted in z: each computes all of
 * C.
 */
void rfl_selftest_ptx(const struct rfl_selftest_kernel *k, struct rfl_buf *out);

/** A kernel that copies: each block so many bytes by so many threads, 16 bytes each. */
#define RFL_SELFTEST_COPY "rfl_selftest_copy"
enum { RFL_SELFTEST_COPY_THREADS = 256, RFL_SELFTEST_COPY_BYTES = 4096 };

/** It as PTX. Parameters: u64 to, u64 from; grid: a block per 4096 bytes. */
void rfl_selftest_copy_ptx(struct rfl_buf *out);

#endif
