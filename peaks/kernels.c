/*
 * kernels.c - the table of loops, with a check whether each can run here, and array loops in C for
 * CPUs without assembly loops. There are no chains in C, because a compiler may not keep them
 * in registers.
 */
#include "peaks/kernels.h"

#include <stdio.h>
#include <string.h>

#include "base/ieee.h"
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
#ifdef RFL_KERNELS_X86
#define X86(fn) .missing = NULL, fn
#else
#define X86(fn) .missing = "built for another CPU; needs x86-64"
#endif
#ifdef RFL_KERNELS_ARM
#define ARM(fn) .missing = NULL, fn
#else
#define ARM(fn) .missing = "built for another CPU; needs 64-bit Arm"
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

/* `n` accumulators, each of `elements` to which `deep` products are added; or with `beside` 1, as
 * many additions run beside them */
#define CHAIN_ROW(...) CHAINS(0, __VA_ARGS__)
#define CHAINS(beside, loop, TEXT, type, acc, kind_of_unit, family, bits, elements, deep, n,      \
	       BUILT, ...)                                                                        \
	{                                                                                         \
		.name = #loop, .summary = TEXT, .kind = RFL_LOOP_CHAIN, .dtype = type,            \
		.accumulate = acc, .unit = kind_of_unit, .isa = family, .needs = (bits),          \
		.step = (elements), .products = (deep), .accumulators = (n),                      \
		.flops_per_iter = (2.0 * (deep) + (beside)) * (elements) * (n), .adds = (beside), \
		__VA_ARGS__, BUILT(.chains = rfl_kernel__##loop)                                  \
	}

/* fp32 and fp64, with registers of `bytes` */
#define FP_ROWS(...) FPS(0, __VA_ARGS__)
#define FPS(beside, loop, TEXT, unit, family, bits, bytes, n, BUILT, ...)                          \
	CHAINS(beside, fp32_##loop, TEXT, "fp32", "fp32", unit, family, bits, (bytes) / 4, 1, n,   \
	       BUILT, __VA_ARGS__),                                                                \
		CHAINS(beside, fp64_##loop, TEXT, "fp64", "fp64", unit, family, bits, (bytes) / 8, \
		       1, n, BUILT, __VA_ARGS__)
#define FMAADD_ROWS(family, ISA, bits, bytes, n, BUILT)                                        \
	FPS(1, fmaadd_##family, #n " chains of FMA, as many additions beside, " ISA, "vector", \
	    #family, bits, bytes, n, BUILT, FUSED, .modifier = "fmaadd")
/* a scalar has one element of either size */
#define SCALAR_ROWS(loop, TEXT, family, bits, n, BUILT, ...)                                  \
	CHAIN_ROW(fp32_##loop, TEXT, "fp32", "fp32", "scalar", family, bits, 1, 1, n, BUILT,  \
		  __VA_ARGS__),                                                               \
		CHAIN_ROW(fp64_##loop, TEXT, "fp64", "fp64", "scalar", family, bits, 1, 1, n, \
			  BUILT, __VA_ARGS__)

#define BITS_AVX512 RFL_ISA_BIT(AVX512F)
#define BITS_AVX2   (RFL_ISA_BIT(AVX2) | RFL_ISA_BIT(FMA))
#define BITS_SSE2   RFL_ISA_BIT(SSE2)
#define BITS_AMX    RFL_ISA_BIT(AMX_TILE)
#define BITS_NEON   RFL_ISA_BIT(NEON)

#define FUSED .fused = true

/* Sorted by kind within a family; the widest family of an architecture comes first. */
static const struct rfl_peak_kernel kernels[] = {
	ARRAY_ROWS(avx512, "AVX-512", BITS_AVX512, 8, true, X86),
	FP_ROWS(avx512, "24 chains of FMA, AVX-512", "vector", "avx512", BITS_AVX512, 64, 24, X86,
		FUSED),
	CHAIN_ROW(bf16_avx512, "24 chains of dot products, AVX512_BF16", "bf16", "fp32", "vector",
		  "avx512", BITS_AVX512 | RFL_ISA_BIT(AVX512_BF16), 16, 2, 24, X86, FUSED),
	CHAIN_ROW(fp16_avx512, "24 chains of FMA, AVX512_FP16", "fp16", "fp16", "vector", "avx512",
		  BITS_AVX512 | RFL_ISA_BIT(AVX512_FP16), 32, 1, 24, X86, FUSED),
	CHAIN_ROW(int8_avx512, "24 chains of dot products, AVX512_VNNI", "int8", "int32", "vector",
		  "avx512", BITS_AVX512 | RFL_ISA_BIT(AVX512_VNNI), 16, 4, 24, X86, FUSED),
	FP_ROWS(nofma_avx512, "24 chains of multiply and add, AVX-512", "vector", "avx512",
		BITS_AVX512, 64, 24, X86, .modifier = "nofma"),
	FMAADD_ROWS(avx512, "AVX-512", BITS_AVX512, 64, 24, X86),
	CHAIN_ROW(bf16_amx, "6 chains of tile products, AMX_BF16", "bf16", "fp32", "matrix", "amx",
		  BITS_AMX | RFL_ISA_BIT(AMX_BF16), 256, 32, 6, X86, FUSED),
	CHAIN_ROW(int8_amx, "6 chains of tile products, AMX_INT8", "int8", "int32", "matrix", "amx",
		  BITS_AMX | RFL_ISA_BIT(AMX_INT8), 256, 64, 6, X86, FUSED),
	ARRAY_ROWS(avx2, "AVX2", BITS_AVX2, 4, true, X86),
	FP_ROWS(avx2, "12 chains of FMA, AVX2", "vector", "avx2", BITS_AVX2, 32, 12, X86, FUSED),
	FMAADD_ROWS(avx2, "AVX2", BITS_AVX2, 32, 12, X86),
	CHAIN_ROW(int8_avx2, "12 chains of dot products, AVX_VNNI", "int8", "int32", "vector",
		  "avx2", RFL_ISA_BIT(AVX2) | RFL_ISA_BIT(AVX_VNNI), 8, 4, 12, X86, FUSED),
	FP_ROWS(avx, "12 chains of multiply and add, AVX", "vector", "avx", RFL_ISA_BIT(AVX), 32,
		12, X86, .fused = false),
	ARRAY_ROWS(sse2, "SSE2", BITS_SSE2, 2, false, X86),
	FP_ROWS(sse2, "12 chains of multiply and add, SSE2", "vector", "sse2", BITS_SSE2, 16, 12,
		X86, .fused = false),
	SCALAR_ROWS(scalar_fma, "12 chains of scalar FMA", "fma", RFL_ISA_BIT(FMA), 12, X86, FUSED),
	SCALAR_ROWS(scalar_sse2, "12 chains of scalar multiply and add, SSE2", "sse2", BITS_SSE2,
		    12, X86, .fused = false),
	ARRAY_ROWS(neon, "NEON", BITS_NEON, 2, true, ARM),
	FP_ROWS(neon, "24 chains of FMA, NEON", "vector", "neon", BITS_NEON, 16, 24, ARM, FUSED),
	CHAIN_ROW(bf16_neon, "24 chains of dot products, BFDOT", "bf16", "fp32", "vector", "neon",
		  BITS_NEON | RFL_ISA_BIT(ARM_BF16), 4, 2, 24, ARM, FUSED),
	CHAIN_ROW(fp16_neon, "24 chains of FMA, NEON with FP16", "fp16", "fp16", "vector", "neon",
		  BITS_NEON | RFL_ISA_BIT(ARM_FP16), 8, 1, 24, ARM, FUSED),
	CHAIN_ROW(int8_neon, "24 chains of dot products, SDOT", "int8", "int32", "vector", "neon",
		  BITS_NEON | RFL_ISA_BIT(ARM_DOTPROD), 4, 4, 24, ARM, FUSED),
	CHAIN_ROW(bf16_mmla, "24 chains of tile products, BFMMLA", "bf16", "fp32", "matrix", "mmla",
		  BITS_NEON | RFL_ISA_BIT(ARM_BF16), 4, 4, 24, ARM, FUSED),
	CHAIN_ROW(int8_mmla, "24 chains of tile products, SMMLA", "int8", "int32", "matrix", "mmla",
		  BITS_NEON | RFL_ISA_BIT(ARM_I8MM), 4, 8, 24, ARM, FUSED),
	FP_ROWS(nofma_neon, "24 chains of multiply and add, NEON", "vector", "neon", BITS_NEON, 16,
		24, ARM, .modifier = "nofma"),
	FMAADD_ROWS(neon, "NEON", BITS_NEON, 16, 24, ARM),
	SCALAR_ROWS(scalar_neon, "24 chains of scalar FMA", "neon", BITS_NEON, 24, ARM, FUSED),
	ARRAY_ROW(read, RFL_LOOP_READ, "read", plain, "C", 0, 1, false, false, 1, 0, PLAIN),
	ARRAY_ROW(copy, RFL_LOOP_COPY, "copy", plain, "C", 0, 1, false, false, 2, 0, PLAIN),
	ARRAY_ROW(triad, RFL_LOOP_TRIAD, "triad", plain, "C", 0, 1, false, false, 3, 2, PLAIN),
};

const struct rfl_peak_kernel *rfl_peak_kernel_at(size_t i)
{
	return i < RFL_ARRAY_LEN(kernels) ? &kernels[i] : NULL;
}

char *rfl_peak_kernel_lacking(const struct rfl_peak_kernel *k, char out[RFL_PEAK_LACKING_MAX])
{
	const uint64_t absent = k->needs & ~rfl_isa_detect();
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; rfl_isa_name(i) && len < RFL_PEAK_LACKING_MAX; i++) {
		if ((absent >> i) & 1)
			len += (size_t)snprintf(out + len, RFL_PEAK_LACKING_MAX - len, "%s%s",
						len ? ", " : "", rfl_isa_name(i));
	}
	return out;
}

enum rfl_rc rfl_peak_kernel_probe(const struct rfl_peak_kernel *k, struct rfl_err *err)
{
	char lacking[RFL_PEAK_LACKING_MAX];

	if (k->missing)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "kernel '%s': %s", k->name, k->missing);
	if (*rfl_peak_kernel_lacking(k, lacking))
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"kernel '%s': needs %s, which this CPU or its operating "
				"system does not support",
				k->name, lacking);
	return k->needs & BITS_AMX ? rfl_isa_permit_tiles(err) : RFL_OK;
}

bool rfl_peak_kernel_measures(const struct rfl_peak_kernel *k, const char *key)
{
	char base[32];

	if (k->kind != RFL_LOOP_CHAIN)
		return false;
	const size_t len = (size_t)snprintf(base, sizeof(base), "%s.%s", k->dtype, k->unit);

	if (strncmp(key, base, len) != 0 || (key[len] && key[len] != '.'))
		return false;
	if (strcmp(key + len, ".nofma") == 0)
		return !k->fused;
	return k->adds == (strcmp(key + len, ".fmaadd") == 0) && (k->adds || !k->modifier);
}

/* Fill an array with numbers that are exact in their type: `odd` at odd places, else `even`.
 * CPUs with these loops are little-endian. */
static void fill(unsigned char *array, size_t bytes, const char *type, double even, double odd)
{
	static const struct {
		const char *type;
		size_t bytes;
		const struct rfl_ieee *format;
	} types[] = {
		{ "fp64", 8, NULL },           { "fp32", 4, &rfl_ieee_fp32 },
		{ "fp16", 2, &rfl_ieee_fp16 }, { "bf16", 2, &rfl_ieee_bf16 },
		{ "int32", 4, NULL },          { "int8", 1, NULL },
	};
	size_t t = 0;

	while (strcmp(types[t].type, type) != 0)
		t++;
	for (size_t i = 0; i * types[t].bytes < bytes; i++) {
		const double value = i % 2 ? odd : even;
		uint64_t bits = (uint64_t)(int64_t)value;

		if (types[t].format)
			bits = rfl_ieee_pack(types[t].format, value);
		else if (t == 0)
			memcpy(&bits, &value, sizeof(bits));
		memcpy(array + i * types[t].bytes, &bits, types[t].bytes);
	}
}

void rfl_peak_kernel_prepare(const struct rfl_peak_kernel *k, struct rfl_kernel_chains *c)
{
	const bool integer = strcmp(k->dtype, "int8") == 0;
	const double small = strcmp(k->dtype, "fp16") == 0 ? 0x1p-10 : 0x1p-20;
	const double factor = integer ? 85 : 0x1.54p0; /* with as many bits set as not */

	fill(c->x, sizeof(c->x), k->accumulate, 1, 1);
	if (k->products == 1) { /* 1 * (1 - small) + small = 1 */
		fill(c->a, sizeof(c->a), k->dtype, 1 - small, 1 - small);
		fill(c->b, sizeof(c->b), k->dtype, small, small);
	} else { /* each two products cancel */
		fill(c->a, sizeof(c->a), k->dtype, factor, -factor);
		fill(c->b, sizeof(c->b), k->dtype, factor, factor);
	}
}
