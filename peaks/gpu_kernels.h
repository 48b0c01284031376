/*
 * gpu_kernels.h - the loops that measure the ceilings of NVIDIA GPUs, as PTX that the driver
 * compiles, so that neither building nor measuring needs a CUDA compiler.
 *
 * All have the same parameters: u64 to, u64 from, u64 other, u64 size, u64 turns, b32 word. A
 * memory loop moves chunks of 16 KiB; blocks start one chunk apart and wrap around at `size`, the
 * bytes of each array. An arithmetic loop loads its operands from `from` and `other` once. `word`
 * is the factor of the triad, and the value that is written; a result that equals it is stored in
 * `to`, which compilers cannot exclude.
 */
#ifndef RFL_PEAKS_GPU_KERNELS_H
#define RFL_PEAKS_GPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/** Types of operands. */
enum rfl_gpu_type {
	RFL_GPU_F64,
	RFL_GPU_F32,
	RFL_GPU_F16,
	RFL_GPU_BF16,
	RFL_GPU_E4M3,
	RFL_GPU_I8,
};

enum rfl_gpu_kernel_kind {
	RFL_GPU_READ,  /**< result = XOR of all words of `from`; L2 only, never L1 */
	RFL_GPU_WRITE, /**< to[i] = word */
	RFL_GPU_COPY,  /**< to[i] = from[i] */
	RFL_GPU_TRIAD, /**< to[i] = from[i] + word * other[i], in fp32 */
	RFL_GPU_FMA,   /**< chains of x = x * other[0] + other[1] */
	RFL_GPU_MMA,   /**< chains of mma instructions */
};

enum {
	RFL_GPU_THREADS = 256, /**< threads of a block */
	RFL_GPU_CHUNK = 16384, /**< bytes of an array that a block moves in a turn: four vectors of
				  16 bytes per thread */
	RFL_GPU_CHAINS = 8,    /**< independent chains of a thread (FMA) or a warp (MMA) */
	RFL_GPU_FMA_UNROLL = 16,
	RFL_GPU_MMA_UNROLL = 4,
};

struct rfl_gpu_kernel {
	const char *name; /**< name of the entry point */
	const char *summary;
	const char *key; /**< ceiling: "DRAM", "fp32.vector" */
	enum rfl_gpu_kernel_kind kind;
	int min_capability;     /**< 75, 80 */
	enum rfl_gpu_type type; /**< of the operands of arithmetic */
	const char *accumulate; /**< "fp32"; NULL: not arithmetic */
	double bytes_per_turn;  /**< of a block */
	double flops_per_turn;  /**< of a block */
	const char *op;         /**< the PTX instruction of arithmetic */
	int bits;               /**< of its registers */
	int a, b, c;            /**< number of its registers for A, B, C (MMA) */
	uint64_t words[2];      /**< `other`: factor and summand (FMA), sign bits (MMA) */
};

/** The i-th loop; NULL past the end. */
const struct rfl_gpu_kernel *rfl_gpu_kernel_at(size_t i);

/** Whether `mma` reaches the full rate of the Tensor Cores: Hopper and
 * datacenter Blackwell have other instructions for that, except in fp64. */
bool rfl_gpu_mma_is_full(const char *key, int capability);

/** The loop as PTX, for the oldest version and target that has its instructions. */
void rfl_gpu_ptx(const struct rfl_gpu_kernel *k, struct rfl_buf *out);

/** Bytes of an operand. */
size_t rfl_gpu_type_bytes(enum rfl_gpu_type type);
/** Fill memory with operands with random signs and mantissas, of magnitudes from 1/16 to 1, or with
 * random integers. The same each time. */
void rfl_gpu_fill(enum rfl_gpu_type type, void *to, size_t bytes);

#endif
