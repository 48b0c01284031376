/*
 * kernels_x86.c - the loops for x86-64: array loops for AVX-512, AVX2 with FMA and SSE2, and the
 * chains of every instruction set.
 *
 * `.irp r,0,1,...` is a loop of the assembler; \r is the number.
 */
#include "peaks/kernels.h"

#ifdef RFL_KERNELS_X86

#define EACH(numbers, line) ".irp r," numbers "\n\t" line "\n\t.endr\n\t"
#define CHAINS_12           "0,1,2,3,4,5,6,7,8,9,10,11"
#define CHAINS_24           "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23"

#define CLOBBERS_16                                                                              \
	"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
		"xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define CLOBBERS_32                                                                          \
	CLOBBERS_16, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", \
		"xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"

/* --- arrays --- */

/* Instructions of AVX-512, AVX and SSE2. On SSE2 there is no fused multiply-add. */
#define EVEX_XOR(from, to)              "vpxorq " from ", " to ", " to
#define VEX_XOR(from, to)               "vpxor " from ", " to ", " to
#define SSE_XOR(from, to)               "pxor " from ", " to
#define VEX_BROADCAST(from, to)         "vbroadcastsd " from ", " to "\n\t"
#define SSE_BROADCAST(from, to)         "movsd " from ", " to "\n\tunpcklpd " to ", " to "\n\t"
#define VEX_TIMES_PLUS(from, scale, to) "vfmadd213pd " from ", " scale ", " to
#define SSE_TIMES_PLUS(from, scale, to) "mulpd " scale ", " to "\n\taddpd " from ", " to

#define EIGHT      "0,1,2,3,4,5,6,7"
#define REG(r)     "%%" r "\\r"
#define AT(p, w)   "\\r*" w "(%[" p "])"
#define NEXT(p, w) "add $8*" w ", %[" p "]\n\t"

/* A pass of the copy loop; `fence` waits for non-temporal stores. */
#define COPY_LOOP(r, w, load, store, fence, ...)                                                  \
	for (size_t pass = 0; pass < k->passes; pass++) {                                         \
		double *a = k->a;                                                                 \
		const double *b = k->b;                                                           \
		const double *const end = b + k->n;                                               \
                                                                                                  \
		__asm__ volatile(".p2align 5\n"                                                   \
				 "1:\n\t" EACH(EIGHT, load " " AT("b", w) ", " REG(r))            \
					 EACH(EIGHT, store " " REG(r) ", " AT("a", w))            \
						 NEXT("b", w) NEXT("a", w) "cmp %[end], %[b]\n\t" \
									   "jne 1b\n\t" fence     \
				 : [a] "+&r"(a), [b] "+&r"(b)                                     \
				 : [end] "r"(end)                                                 \
				 : "memory", "cc", __VA_ARGS__);                                  \
	}

#define TRIAD_LOOP(r, w, load, store, broadcast, times_plus, scale_, fence, ...)                  \
	for (size_t pass = 0; pass < k->passes; pass++) {                                         \
		double *a = k->a;                                                                 \
		const double *b = k->b;                                                           \
		const double *c = k->c;                                                           \
		const double *const end = b + k->n;                                               \
                                                                                                  \
		__asm__ volatile(                                                                 \
			broadcast(                                                                \
				"%[scale]",                                                       \
				"%%" r scale_) ".p2align 5\n"                                     \
					       "1:\n\t" EACH(                                     \
						       EIGHT,                                     \
						       load " " AT("c", w) ", " REG(              \
							       r)) EACH(EIGHT,                    \
									times_plus(AT("b", w),    \
										   "%%" r scale_, \
										   REG(r)))       \
						       EACH(EIGHT,                                \
							    store " " REG(r) ", " AT("a", w))     \
							       NEXT("c", w) NEXT("b", w) NEXT(    \
								       "a",                       \
								       w) "cmp %[end], %[b]\n\t"  \
									  "jne 1b\n\t" fence      \
			: [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c)                                \
			: [end] "r"(end), [scale] "m"(k->scale)                                   \
			: "memory", "cc", __VA_ARGS__);                                           \
	}

#define LOOP(loop, target) RFL_TARGET(target) void rfl_kernel__##loop(struct rfl_kernel_arrays *k)

/* The loops of a family. An iteration uses eight registers `r` of `w` bytes; register `scale` holds
 * the factor of the triad. To read, XOR instead of a sum: exact in any order, and two per cycle on
 * every CPU. */
#define ARRAYS(family, target, r, w, load, store_nt, store_int, xor, broadcast, times_plus, scale, \
	       leave, ...)                                                                         \
	LOOP(read_##family, target)                                                                \
	{                                                                                          \
		uint64_t words[8] RFL_ALIGNED(64) = { 0 };                                         \
		const double *const end = k->b + k->n;                                             \
		const double *p;                                                                   \
		size_t passes = k->passes;                                                         \
                                                                                                   \
		__asm__ volatile(                                                                  \
			EACH(EIGHT,                                                                \
			     xor(REG(r), REG(r))) "2:\n\t"                                         \
						  "mov %[b], %[p]\n\t"                             \
						  ".p2align 5\n"                                   \
						  "1:\n\t" EACH(EIGHT, xor(AT("p", w), REG(r)))    \
							  NEXT("p",                                \
							       w) "cmp %[end], %[p]\n\t"           \
								  "jne 1b\n\t"                     \
								  "dec %[passes]\n\t"              \
								  "jnz 2b\n\t" EACH(               \
									  "1,2,3,4,5,6,7",         \
									  xor(REG(r), "%%" r "0")) \
									  store_int                \
			" %%" r "0, (%[words])\n\t" leave                                          \
			: [p] "=&r"(p), [passes] "+&r"(passes)                                     \
			: [b] "r"(k->b), [end] "r"(end), [words] "r"(words)                        \
			: "memory", "cc", __VA_ARGS__);                                            \
		k->result = 0;                                                                     \
		for (int i = 0; i < 8; i++)                                                        \
			k->result ^= words[i];                                                     \
	}                                                                                          \
	LOOP(copy_##family, target){ COPY_LOOP(r, w, load, load, leave, __VA_ARGS__) } LOOP(       \
		copy_nt_##family, target){ COPY_LOOP(r, w, load, store_nt, "sfence\n\t" leave,     \
						     __VA_ARGS__) } LOOP(triad_##family, target){  \
		TRIAD_LOOP(r, w, load, load, broadcast, times_plus, scale, leave, __VA_ARGS__)     \
	} LOOP(triad_nt_##family, target)                                                          \
	{                                                                                          \
		TRIAD_LOOP(r, w, load, store_nt, broadcast, times_plus, scale, "sfence\n\t" leave, \
			   __VA_ARGS__)                                                            \
	}

ARRAYS(avx512, "avx512f", "zmm", "64", "vmovapd", "vmovntpd", "vmovdqa64", EVEX_XOR, VEX_BROADCAST,
       VEX_TIMES_PLUS, "30", "vzeroupper\n\t", CLOBBERS_32)
ARRAYS(avx2, "avx2,fma", "ymm", "32", "vmovapd", "vmovntpd", "vmovdqa", VEX_XOR, VEX_BROADCAST,
       VEX_TIMES_PLUS, "14", "vzeroupper\n\t", CLOBBERS_16)
ARRAYS(sse2, "sse2", "xmm", "16", "movapd", "movntpd", "movdqa", SSE_XOR, SSE_BROADCAST,
       SSE_TIMES_PLUS, "14", "", CLOBBERS_16)

/* --- chains --- */

/* `step` updates the accumulators: registers 0 and up, each with the operands a and b. The loop
 * contains only the step and its counter. */
#define CHAINS(loop, target, move, reg, ra, rb, width, numbers, leave, clobbers, step)            \
	RFL_TARGET(target) void rfl_kernel__##loop(struct rfl_kernel_chains *k)                   \
	{                                                                                         \
		uint64_t iters = k->iters;                                                        \
                                                                                                  \
		__asm__ volatile(move                                                             \
				 " (%[a]), %%" reg ra "\n\t" move " (%[b]), %%" reg rb            \
				 "\n\t" EACH(numbers, move                                        \
					     " \\r*" width "(%[x]), %%" reg                       \
					     "\\r") ".p2align 5\n"                                \
						    "1:\n\t" step "dec %[iters]\n\t"              \
						    "jnz 1b\n\t" EACH(numbers, move               \
								      " %%" reg "\\r, \\r*" width \
								      "(%[x])") leave             \
				 : [iters] "+&r"(iters)                                           \
				 : [x] "r"(k->x), [a] "r"(k->a), [b] "r"(k->b)                    \
				 : "memory", "cc", clobbers);                                     \
	}

/* 24 chains and two operands in 32 registers. An assembler accepts any instruction, so compilers
 * without the newer sets will do. */
#define ZMM(loop, step) ZMM_OF(loop, CHAINS_24, step)
#define ZMM_OF(loop, numbers, step)                                                   \
	CHAINS(loop##_avx512, "avx512f", "vmovapd", "zmm", "30", "31", "64", numbers, \
	       "vzeroupper\n\t", CLOBBERS_32, step)

ZMM(fp32, EACH(CHAINS_24, "vfmadd213ps %%zmm31, %%zmm30, %%zmm\\r"))
ZMM(fp64, EACH(CHAINS_24, "vfmadd213pd %%zmm31, %%zmm30, %%zmm\\r"))
ZMM(fp16, EACH(CHAINS_24, "vfmadd213ph %%zmm31, %%zmm30, %%zmm\\r"))
ZMM(bf16, EACH(CHAINS_24, "vdpbf16ps %%zmm31, %%zmm30, %%zmm\\r"))
ZMM(int8, EACH(CHAINS_24, "vpdpbusd %%zmm31, %%zmm30, %%zmm\\r"))
ZMM(fp32_nofma, EACH(CHAINS_24, "vmulps %%zmm30, %%zmm\\r, %%zmm\\r")
			EACH(CHAINS_24, "vaddps %%zmm31, %%zmm\\r, %%zmm\\r"))
ZMM(fp64_nofma, EACH(CHAINS_24, "vmulpd %%zmm30, %%zmm\\r, %%zmm\\r")
			EACH(CHAINS_24, "vaddpd %%zmm31, %%zmm\\r, %%zmm\\r"))
/* an addition after each multiply-add, to a register that nothing waits for */
#define FMAADD(chains, type, r, a, b, sum)                                    \
	EACH(chains, "vfmadd213" type " %%" r b ", %%" r a ", %%" r "\\r\n\t" \
		     "vadd" type " %%" r b ", %%" r a ", %%" r sum)
ZMM_OF(fp32_fmaadd, CHAINS_24 ",24", FMAADD(CHAINS_24, "ps", "zmm", "30", "31", "24"))
ZMM_OF(fp64_fmaadd, CHAINS_24 ",24", FMAADD(CHAINS_24, "pd", "zmm", "30", "31", "24"))

/* 12 chains and two operands in 16 registers */
#define YMM(loop, step) YMM_OF(loop, CHAINS_12, step)
#define YMM_OF(loop, numbers, step)                                                        \
	CHAINS(loop, "avx", "vmovapd", "ymm", "14", "15", "32", numbers, "vzeroupper\n\t", \
	       CLOBBERS_16, step)

YMM(fp32_avx2, EACH(CHAINS_12, "vfmadd213ps %%ymm15, %%ymm14, %%ymm\\r"))
YMM(fp64_avx2, EACH(CHAINS_12, "vfmadd213pd %%ymm15, %%ymm14, %%ymm\\r"))
YMM_OF(fp32_fmaadd_avx2, CHAINS_12 ",12", FMAADD(CHAINS_12, "ps", "ymm", "14", "15", "12"))
YMM_OF(fp64_fmaadd_avx2, CHAINS_12 ",12", FMAADD(CHAINS_12, "pd", "ymm", "14", "15", "12"))
YMM(int8_avx2, EACH(CHAINS_12, "%{vex%} vpdpbusd %%ymm15, %%ymm14, %%ymm\\r"))
YMM(fp32_avx, EACH(CHAINS_12, "vmulps %%ymm14, %%ymm\\r, %%ymm\\r")
		      EACH(CHAINS_12, "vaddps %%ymm15, %%ymm\\r, %%ymm\\r"))
YMM(fp64_avx, EACH(CHAINS_12, "vmulpd %%ymm14, %%ymm\\r, %%ymm\\r")
		      EACH(CHAINS_12, "vaddpd %%ymm15, %%ymm\\r, %%ymm\\r"))

#define XMM(loop, move, width, step) \
	CHAINS(loop, "sse2", move, "xmm", "14", "15", width, CHAINS_12, "", CLOBBERS_16, step)

XMM(fp32_sse2, "movapd", "16",
    EACH(CHAINS_12, "mulps %%xmm14, %%xmm\\r") EACH(CHAINS_12, "addps %%xmm15, %%xmm\\r"))
XMM(fp64_sse2, "movapd", "16",
    EACH(CHAINS_12, "mulpd %%xmm14, %%xmm\\r") EACH(CHAINS_12, "addpd %%xmm15, %%xmm\\r"))
XMM(fp32_scalar_sse2, "movss", "4",
    EACH(CHAINS_12, "mulss %%xmm14, %%xmm\\r") EACH(CHAINS_12, "addss %%xmm15, %%xmm\\r"))
XMM(fp64_scalar_sse2, "movsd", "8",
    EACH(CHAINS_12, "mulsd %%xmm14, %%xmm\\r") EACH(CHAINS_12, "addsd %%xmm15, %%xmm\\r"))
XMM(fp32_scalar_fma, "vmovss", "4", EACH(CHAINS_12, "vfmadd213ss %%xmm15, %%xmm14, %%xmm\\r"))
XMM(fp64_scalar_fma, "vmovsd", "8", EACH(CHAINS_12, "vfmadd213sd %%xmm15, %%xmm14, %%xmm\\r"))

/* AMX: all eight tiles have 16 rows of 64 bytes. Six of them accumulate, more than the latency of
 * a product over its rate. */
struct tile_config {
	uint8_t palette, start_row, reserved[14];
	uint16_t row_bytes[16];
	uint8_t rows[16];
};

#define TILES "0,1,2,3,4,5"
#define AMX(loop, product)                                                                                                                                              \
	void rfl_kernel__##loop##_amx(struct rfl_kernel_chains *k)                                                                                                      \
	{                                                                                                                                                               \
		struct tile_config config RFL_ALIGNED(64) = { .palette = 1 };                                                                                           \
		uint64_t iters = k->iters;                                                                                                                              \
                                                                                                                                                                        \
		for (int i = 0; i < 8; i++) {                                                                                                                           \
			config.row_bytes[i] = 64;                                                                                                                       \
			config.rows[i] = 16;                                                                                                                            \
		}                                                                                                                                                       \
		__asm__ volatile(                                                                                                                                       \
			"ldtilecfg (%[config])\n\t"                                                                                                                     \
			"tileloadd (%[a],%[row]), %%tmm6\n\t"                                                                                                           \
			"tileloadd (%[b],%[row]), %%tmm7\n\t" EACH(                                                                                                     \
				TILES,                                                                                                                                  \
				"tileloadd \\r*1024(%[x],%[row]), %%tmm\\r") ".p2align 5\n"                                                                             \
									     "1:\n\t" EACH(TILES,                                                                       \
											   product                                                                      \
											   " %%"                                                                        \
											   "tmm7,"                                                                      \
											   " %%"                                                                        \
											   "tmm6,"                                                                      \
											   " %%"                                                                        \
											   "tmm\\"                                                                      \
											   "r") "dec %[iters]\n\t"                                                      \
												"jnz 1b\n\t" EACH(                                                      \
													TILES,                                                          \
													"tilestored %%tmm\\r, \\r*1024(%[x],%[row])") "tilerelease\n\t" \
			: [iters] "+&r"(iters)                                                                                                                          \
			: [x] "r"(k->x), [a] "r"(k->a), [b] "r"(k->b), [row] "r"((uint64_t)64),                                                                         \
			  [config] "r"(&config)                                                                                                                         \
			: "memory", "cc");                                                                                                                              \
	}

AMX(bf16, "tdpbf16ps")
AMX(int8, "tdpbssd")

#else
typedef int rfl_kernels_x86_not_built; /* a translation unit must not be empty */
#endif
