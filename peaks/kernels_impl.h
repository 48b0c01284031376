/* kernels_impl.h - internal: the loops of the rows of kernels.c. */
#ifndef RFL_PEAKS_KERNELS_IMPL_H
#define RFL_PEAKS_KERNELS_IMPL_H

#include "peaks/kernels.h"

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
