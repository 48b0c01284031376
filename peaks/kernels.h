/*
 * kernels.h - the loops that measure the ceilings of a CPU. A loop that cannot run here is
 * still listed, with the reason.
 *
 * On x86-64 and 64-bit Arm, loops are in assembly, so that ceilings do not depend on compiler
 * options, nor on the instruction sets that the compiler knows. Every loop computes a result that a
 * test can check.
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
	RFL_LOOP_CHAIN, /**< independent chains of multiply-adds in registers */
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

/** Accumulators in registers, loaded from `x` and stored back after the last iteration. In each
 * iteration every accumulator is updated once, with the same two operands:
 * x = x * a + b (NEON: x = x + a * b), or for dot and tile products x = x + a * b. A loop with
 * additions has one more, x = a + b, as often as there are others: nothing waits for it. */
struct rfl_kernel_chains {
	/** the accumulators one after the other, each `step` numbers of type `accumulate` */
	unsigned char x[6 * 1024] RFL_ALIGNED(64);
	unsigned char a[1024], b[1024]; /**< a register each, of numbers of type `dtype` */
	uint64_t iters;                 /**< at least 1 */
};

struct rfl_peak_kernel {
	const char *name; /**< such as "triad_nt_avx512" */
	const char *summary;
	enum rfl_peak_kernel_kind kind;
	const char *dtype;      /**< "fp64", "fp32", "bf16", "fp16" or "int8" */
	const char *accumulate; /**< type of the accumulators; NULL for arrays */
	const char *unit;       /**< "vector", "matrix" or "scalar"; NULL for arrays */
	const char *modifier;   /**< "nofma", "fmaadd": measures only that ceiling; or NULL */
	const char *isa;        /**< family: "avx512", "avx2", "sse2", "amx", "neon", "plain" ... */
	uint64_t needs;         /**< bits set by RFL_ISA_BIT() */
	bool nt_stores;         /**< stores bypass the caches */
	bool fused;             /**< multiplies and adds in one instruction */
	int step;               /**< elements per iteration (arrays) or per accumulator (chains) */
	int products;           /**< multiply-adds per element of an accumulator; 0 for arrays */
	int accumulators;       /**< number of chains; 0 for arrays */
	bool adds;              /**< as many additions run beside the multiply-adds */
	double bytes_per_iter;  /**< bytes explicitly loaded and stored; 0 for chains */
	double flops_per_iter;
	const char *missing; /**< why it is not built; NULL if it is */
	void (*arrays)(struct rfl_kernel_arrays *k);
	void (*chains)(struct rfl_kernel_chains *k);
};

const struct rfl_peak_kernel *rfl_peak_kernel_at(size_t i);

/** RFL_OK if the loop can run here, otherwise RFL_EUNAVAILABLE with the reason. Asks the operating
 * system for the permission to use AMX, if the loop needs it. */
enum rfl_rc rfl_peak_kernel_probe(const struct rfl_peak_kernel *k,
				  struct rfl_err *err) RFL_WARN_UNUSED;

#define RFL_PEAK_LACKING_MAX 96

/** The instruction sets that the loop needs and this machine lacks: "avx512f, avx512_bf16".
 * @return out */
char *rfl_peak_kernel_lacking(const struct rfl_peak_kernel *k, char out[RFL_PEAK_LACKING_MAX]);

/** The loop measures the ceiling `key` ("bf16.vector.1core") where it can run. */
bool rfl_peak_kernel_measures(const struct rfl_peak_kernel *k, const char *key);

/** Set the accumulators and operands of a chain so that it can run forever: no number overflows,
 * vanishes or becomes denormal. `iters` is not changed. */
void rfl_peak_kernel_prepare(const struct rfl_peak_kernel *k, struct rfl_kernel_chains *c);

#ifdef __x86_64__
#define RFL_KERNELS_X86
#endif
#ifdef __aarch64__
#define RFL_KERNELS_ARM
#endif

#define RFL_KERNEL_ARRAYS(isa)                                       \
	void rfl_kernel__read_##isa(struct rfl_kernel_arrays *k);    \
	void rfl_kernel__copy_##isa(struct rfl_kernel_arrays *k);    \
	void rfl_kernel__copy_nt_##isa(struct rfl_kernel_arrays *k); \
	void rfl_kernel__triad_##isa(struct rfl_kernel_arrays *k);   \
	void rfl_kernel__triad_nt_##isa(struct rfl_kernel_arrays *k);

RFL_KERNEL_ARRAYS(avx512)
RFL_KERNEL_ARRAYS(avx2)
RFL_KERNEL_ARRAYS(sse2)
RFL_KERNEL_ARRAYS(neon)

/* Chains of 64-bit floating point have the name of the 32-bit ones, with fp64. */
#define RFL_KERNEL_CHAINS(loop) void rfl_kernel__##loop(struct rfl_kernel_chains *k);
#define RFL_KERNEL_FP(loop)            \
	RFL_KERNEL_CHAINS(fp32_##loop) \
	RFL_KERNEL_CHAINS(fp64_##loop)

RFL_KERNEL_FP(avx512)
RFL_KERNEL_FP(nofma_avx512)
RFL_KERNEL_FP(fmaadd_avx512)
RFL_KERNEL_CHAINS(bf16_avx512)
RFL_KERNEL_CHAINS(fp16_avx512)
RFL_KERNEL_CHAINS(int8_avx512)
RFL_KERNEL_CHAINS(bf16_amx)
RFL_KERNEL_CHAINS(int8_amx)
RFL_KERNEL_FP(avx2)
RFL_KERNEL_CHAINS(int8_avx2)
RFL_KERNEL_FP(fmaadd_avx2)
RFL_KERNEL_FP(avx)
RFL_KERNEL_FP(sse2)
RFL_KERNEL_FP(scalar_fma)
RFL_KERNEL_FP(scalar_sse2)
RFL_KERNEL_FP(neon)
RFL_KERNEL_FP(nofma_neon)
RFL_KERNEL_FP(fmaadd_neon)
RFL_KERNEL_FP(scalar_neon)
RFL_KERNEL_CHAINS(fp16_neon)
RFL_KERNEL_CHAINS(bf16_neon)
RFL_KERNEL_CHAINS(int8_neon)
RFL_KERNEL_CHAINS(bf16_mmla)
RFL_KERNEL_CHAINS(int8_mmla)

#endif
