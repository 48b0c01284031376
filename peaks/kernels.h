/*
 * kernels.h - the loops that measure the ceilings of a processor. A loop that cannot run here is
 * still listed, with the reason.
 *
 * On x86-64 and 64-bit Arm, loops are in assembly, so that ceilings do not depend on compiler
 * options. Every loop computes a result that a test can check.
 */
#ifndef RFL_PEAKS_KERNELS_H
#define RFL_PEAKS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum rfl_peak_kernel_kind {
	RFL_LOOP_READ,  /**< result = XOR of all 64-bit words of b */
	RFL_LOOP_COPY,  /**< a[i] = b[i] */
	RFL_LOOP_TRIAD, /**< a[i] = b[i] + scale * c[i] */
	RFL_LOOP_CHAIN, /**< independent chains of x = x * mul + add in registers */
};

/** Arrays of doubles, aligned to 64 bytes, not overlapping. */
struct rfl_kernel_arrays {
	double *a;
	const double *b;
	const double *c;
	double scale;
	size_t n; /**< number of elements, a multiple of the kernel's `step`, at least one step */
	size_t passes;   /**< passes over the arrays, at least 1 */
	uint64_t result; /**< result of RFL_LOOP_READ */
};

/** Chains in registers, loaded from `x` and stored back after the last iteration. */
struct rfl_kernel_chains {
	void *x;         /**< accumulators * lanes numbers of type `dtype`, aligned to 64 bytes */
	double mul, add; /**< exact in type `dtype` */
	uint64_t iters;  /**< at least 1 */
};

struct rfl_peak_kernel {
	const char *name; /**< such as "triad_nt_avx512" */
	const char *summary;
	enum rfl_peak_kernel_kind kind;
	const char *dtype; /**< "fp64" or "fp32" */
	const char *isa;   /**< family: "avx512", "avx2", "sse2", "neon", "plain" */
	uint64_t needs;    /**< bits set by RFL_ISA_BIT() */
	bool nt_stores;    /**< stores bypass the caches */
	bool fused;        /**< multiplies and adds in one instruction with a single rounding */
	int step;          /**< elements per iteration (arrays) or lanes per register (chains) */
	int accumulators;  /**< number of chains; 0 for arrays */
	double bytes_per_iter; /**< bytes explicitly loaded and stored; 0 for chains */
	double flops_per_iter;
	const char *missing; /**< why it is not built; NULL if it is */
	void (*arrays)(struct rfl_kernel_arrays *k);
	void (*chains)(struct rfl_kernel_chains *k);
};

/** Row i, or NULL past the end. */
const struct rfl_peak_kernel *rfl_peak_kernel_at(size_t i);

/** RFL_OK if the loop can run here, otherwise RFL_EUNAVAILABLE with the reason. */
enum rfl_rc rfl_peak_kernel_probe(const struct rfl_peak_kernel *k,
				  struct rfl_err *err) RFL_WARN_UNUSED;

#if defined(__x86_64__)
#define RFL_KERNELS_X86 1
#else
#define RFL_KERNELS_X86 0
#endif
#if defined(__aarch64__)
#define RFL_KERNELS_ARM 1
#else
#define RFL_KERNELS_ARM 0
#endif

#define RFL_KERNEL_FAMILY(isa)                                        \
	void rfl_kernel__read_##isa(struct rfl_kernel_arrays *k);     \
	void rfl_kernel__copy_##isa(struct rfl_kernel_arrays *k);     \
	void rfl_kernel__copy_nt_##isa(struct rfl_kernel_arrays *k);  \
	void rfl_kernel__triad_##isa(struct rfl_kernel_arrays *k);    \
	void rfl_kernel__triad_nt_##isa(struct rfl_kernel_arrays *k); \
	void rfl_kernel__fp32_##isa(struct rfl_kernel_chains *k);     \
	void rfl_kernel__fp64_##isa(struct rfl_kernel_chains *k);

RFL_KERNEL_FAMILY(avx512)
RFL_KERNEL_FAMILY(avx2)
RFL_KERNEL_FAMILY(sse2)
RFL_KERNEL_FAMILY(neon)

#endif
