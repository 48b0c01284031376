/*
 * kernels.c - the table of loops, with a check whether each can run here, and array loops in C for
 * processors without assembly loops. There are no chains in C, because a compiler may not keep them
 * in registers.
 */
#include "peaks/kernels.h"

#include <stdio.h>
#include <string.h>

#include "machine/isa.h"

/* Without optimisation, the loops in C would measure the compiler. */
#ifdef __OPTIMIZE__

static void rfl_kernel__read_plain(struct rfl_kernel_arrays *k)
{
	uint64_t result = 0;

	for (size_t pass = 0; pass < k->passes; pass++) {
		for (size_t i = 0; i < k->n; i++) {
			uint64_t word;

			memcpy(&word, &k->b[i], sizeof(word));
			result ^= word;
		}
	}
	k->result = result;
}

static void rfl_kernel__copy_plain(struct rfl_kernel_arrays *k)
{
	double *restrict const a = k->a;
	const double *restrict const b = k->b;

	for (size_t pass = 0; pass < k->passes; pass++) {
		/* not memcpy(), which may use non-temporal stores */
		for (size_t i = 0; i < k->n; i++) {
			a[i] = b[i];
			__asm__ volatile("" ::: "memory");
		}
	}
}

static void rfl_kernel__triad_plain(struct rfl_kernel_arrays *k)
{
	double *restrict const a = k->a;
	const double *restrict const b = k->b;
	const double *restrict const c = k->c;
	const double scale = k->scale;

	for (size_t pass = 0; pass < k->passes; pass++) {
		for (size_t i = 0; i < k->n; i++)
			a[i] = b[i] + scale * c[i];
	}
}

#define PLAIN(fn) .missing = NULL, fn
#else
#define PLAIN(fn) \
	.missing = "built without optimisation (configure with -DCMAKE_BUILD_TYPE=Release)"
#endif
#if RFL_KERNELS_X86
#define X86(fn) .missing = NULL, fn
#else
#define X86(fn) .missing = "built for another processor; needs x86-64"
#endif
#if RFL_KERNELS_ARM
#define ARM(fn) .missing = NULL, fn
#else
#define ARM(fn) .missing = "built for another processor; needs 64-bit Arm"
#endif
/* `width` is the number of doubles per register; an iteration uses eight registers. */
#define ARRAY_ROW(loop, LOOP_KIND, TEXT, family, ISA, bits, width, nt, is_fused, streams, flops, \
		  BUILT)                                                                         \
	{                                                                                        \
		.name = #loop "_" #family, .summary = TEXT ", " ISA, .kind = LOOP_KIND,          \
		.dtype = "fp64", .isa = #family, .needs = (bits), .nt_stores = (nt),             \
		.fused = (is_fused), .step = 8 * (width),                                        \
		.bytes_per_iter = 8.0 * (width)*8.0 * (streams),                                 \
		.flops_per_iter = 8.0 * (width) * (flops),                                       \
		BUILT(.arrays = rfl_kernel__##loop##_##family)                                   \
	}

#define ARRAY_ROWS(family, ISA, bits, width, fused, BUILT)                                        \
	ARRAY_ROW(read, RFL_LOOP_READ, "read", family, ISA, bits, width, false, false, 1, 0,      \
		  BUILT),                                                                         \
		ARRAY_ROW(copy, RFL_LOOP_COPY, "copy", family, ISA, bits, width, false, false, 2, \
			  0, BUILT),                                                              \
		ARRAY_ROW(copy_nt, RFL_LOOP_COPY, "copy, non-temporal stores", family, ISA, bits, \
			  width, true, false, 2, 0, BUILT),                                       \
		ARRAY_ROW(triad, RFL_LOOP_TRIAD, "triad", family, ISA, bits, width, false, fused, \
			  3, 2, BUILT),                                                           \
		ARRAY_ROW(triad_nt, RFL_LOOP_TRIAD, "triad, non-temporal stores", family, ISA,    \
			  bits, width, true, fused, 3, 2, BUILT)

#define CHAIN_ROW(type, TEXT, family, ISA, bits, lanes, nchains, is_fused, BUILT)            \
	{                                                                                    \
		.name = #type "_" #family, .summary = TEXT ", " ISA, .kind = RFL_LOOP_CHAIN, \
		.dtype = #type, .isa = #family, .needs = (bits), .fused = (is_fused),        \
		.step = (lanes), .accumulators = (nchains),                                  \
		.flops_per_iter = 2.0 * (lanes) * (nchains),                                 \
		BUILT(.chains = rfl_kernel__##type##_##family)                               \
	}

#define BITS_AVX512 RFL_ISA_BIT(AVX512F)
#define BITS_AVX2   (RFL_ISA_BIT(AVX2) | RFL_ISA_BIT(FMA))
#define BITS_SSE2   RFL_ISA_BIT(SSE2)
#define BITS_NEON   RFL_ISA_BIT(NEON)

/* Sorted by kind within a family; the widest family of an architecture comes first. */
static const struct rfl_peak_kernel kernels[] = {
	ARRAY_ROWS(avx512, "AVX-512", BITS_AVX512, 8, true, X86),
	CHAIN_ROW(fp32, "24 chains of FMA", avx512, "AVX-512", BITS_AVX512, 16, 24, true, X86),
	CHAIN_ROW(fp64, "24 chains of FMA", avx512, "AVX-512", BITS_AVX512, 8, 24, true, X86),
	ARRAY_ROWS(avx2, "AVX2", BITS_AVX2, 4, true, X86),
	CHAIN_ROW(fp32, "12 chains of FMA", avx2, "AVX2", BITS_AVX2, 8, 12, true, X86),
	CHAIN_ROW(fp64, "12 chains of FMA", avx2, "AVX2", BITS_AVX2, 4, 12, true, X86),
	ARRAY_ROWS(sse2, "SSE2", BITS_SSE2, 2, false, X86),
	CHAIN_ROW(fp32, "12 chains of multiply and add", sse2, "SSE2", BITS_SSE2, 4, 12, false,
		  X86),
	CHAIN_ROW(fp64, "12 chains of multiply and add", sse2, "SSE2", BITS_SSE2, 2, 12, false,
		  X86),
	ARRAY_ROWS(neon, "NEON", BITS_NEON, 2, true, ARM),
	CHAIN_ROW(fp32, "24 chains of FMA", neon, "NEON", BITS_NEON, 4, 24, true, ARM),
	CHAIN_ROW(fp64, "24 chains of FMA", neon, "NEON", BITS_NEON, 2, 24, true, ARM),
	ARRAY_ROW(read, RFL_LOOP_READ, "read", plain, "C", 0, 1, false, false, 1, 0, PLAIN),
	ARRAY_ROW(copy, RFL_LOOP_COPY, "copy", plain, "C", 0, 1, false, false, 2, 0, PLAIN),
	ARRAY_ROW(triad, RFL_LOOP_TRIAD, "triad", plain, "C", 0, 1, false, false, 3, 2, PLAIN),
};

const struct rfl_peak_kernel *rfl_peak_kernel_at(size_t i)
{
	return i < RFL_ARRAY_LEN(kernels) ? &kernels[i] : NULL;
}

enum rfl_rc rfl_peak_kernel_probe(const struct rfl_peak_kernel *k, struct rfl_err *err)
{
	char lacking[128] = "";
	size_t len = 0;

	if (k->missing)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "kernel '%s': %s", k->name, k->missing);

	const uint64_t absent = k->needs & ~rfl_isa_detect();

	if (absent == 0)
		return RFL_OK;
	for (size_t i = 0; rfl_isa_name(i) && len < sizeof(lacking); i++) {
		if ((absent >> i) & 1)
			len += (size_t)snprintf(lacking + len, sizeof(lacking) - len, "%s%s",
						len ? ", " : "", rfl_isa_name(i));
	}
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"kernel '%s': needs %s, which this processor or its operating system does "
			"not support",
			k->name, lacking);
}
