/*
 * kernels_x86.c - the loops for x86-64: array loops for AVX-512, AVX2 with FMA and SSE2, all
 * generated from kernels_x86_loops.inc, and the chains of every instruction set.
 *
 * `.irp r,0,1,...` is a loop of the assembler; \r is the number.
 */
#include "peaks/kernels.h"

#if RFL_KERNELS_X86

#define EACH(numbers, line) ".irp r," numbers "\n\t" line "\n\t.endr\n\t"
#define SEVEN_AND_0         "0,1,2,3,4,5,6,7"
#define CHAINS_12           "0,1,2,3,4,5,6,7,8,9,10,11"
#define CHAINS_24           "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23"

#define CLOBBERS_16                                                                              \
	"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
		"xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define CLOBBERS_32                                                                          \
	CLOBBERS_16, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", \
		"xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"

#define NAME(loop)                 rfl_kernel__##loop##_avx512
#define TARGET                     "avx512f"
#define R                          "zmm"
#define W                          "64"
#define LOAD                       "vmovapd"
#define STORE                      "vmovapd"
#define STORE_NT                   "vmovntpd"
#define STORE_INT                  "vmovdqa64"
#define XOR(from, to)              "vpxorq " from ", " to ", " to
#define SCALE                      "%%zmm30"
#define BROADCAST64(from, to)      "vbroadcastsd " from ", " to "\n\t"
#define TIMES_SCALE_PLUS(from, to) "vfmadd213pd " from ", " SCALE ", " to
#define LEAVE                      "vzeroupper\n\t"
#define CLOBBERS                   CLOBBERS_32
#include "peaks/kernels_x86_loops.inc"

#define NAME(loop)                 rfl_kernel__##loop##_avx2
#define TARGET                     "avx2,fma"
#define R                          "ymm"
#define W                          "32"
#define LOAD                       "vmovapd"
#define STORE                      "vmovapd"
#define STORE_NT                   "vmovntpd"
#define STORE_INT                  "vmovdqa"
#define XOR(from, to)              "vpxor " from ", " to ", " to
#define SCALE                      "%%ymm14"
#define BROADCAST64(from, to)      "vbroadcastsd " from ", " to "\n\t"
#define TIMES_SCALE_PLUS(from, to) "vfmadd213pd " from ", " SCALE ", " to
#define LEAVE                      "vzeroupper\n\t"
#define CLOBBERS                   CLOBBERS_16
#include "peaks/kernels_x86_loops.inc"

/* SSE2, on every x86-64 processor: no fused multiply-add. */
#define NAME(loop)                 rfl_kernel__##loop##_sse2
#define TARGET                     "sse2"
#define R                          "xmm"
#define W                          "16"
#define LOAD                       "movapd"
#define STORE                      "movapd"
#define STORE_NT                   "movntpd"
#define STORE_INT                  "movdqa"
#define XOR(from, to)              "pxor " from ", " to
#define SCALE                      "%%xmm14"
#define BROADCAST64(from, to)      "movsd " from ", " to "\n\tunpcklpd " to ", " to "\n\t"
#define TIMES_SCALE_PLUS(from, to) "mulpd " SCALE ", " to "\n\taddpd " from ", " to
#define LEAVE                      ""
#define CLOBBERS                   CLOBBERS_16
#include "peaks/kernels_x86_loops.inc"

/* --- chains --- */

/* `step` updates the accumulators: registers 0 and up, each with the operands a and b. The loop
 * contains only the step and its counter. */
#define CHAINS(loop, target, move, reg, ra, rb, width, numbers, leave, clobbers, step)         \
	RFL_TARGET(target) void rfl_kernel__##loop(struct rfl_kernel_chains *k)                \
	{                                                                                      \
		uint64_t iters = k->iters;                                                     \
                                                                                               \
		__asm__ volatile(move " (%[a]), %%" reg ra "\n\t"                              \
				 move " (%[b]), %%" reg rb "\n\t"                              \
				 EACH(numbers, move " \\r*" width "(%[x]), %%" reg "\\r")      \
				 ".p2align 5\n"                                                \
				 "1:\n\t"                                                      \
				 step                                                          \
				 "dec %[iters]\n\t"                                            \
				 "jnz 1b\n\t"                                                  \
				 EACH(numbers, move " %%" reg "\\r, \\r*" width "(%[x])")      \
				 leave                                                         \
				 : [iters] "+&r"(iters)                                        \
				 : [x] "r"(k->x), [a] "r"(k->a), [b] "r"(k->b)                 \
				 : "memory", "cc", clobbers);                                  \
	}

/* 24 chains and two operands in 32 registers. An assembler accepts any instruction, so compilers
 * without the newer sets will do. */
#define ZMM(loop, step)                                                                 \
	CHAINS(loop##_avx512, "avx512f", "vmovapd", "zmm", "30", "31", "64", CHAINS_24, \
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

/* 12 chains and two operands in 16 registers */
#define YMM(loop, step)                                                                      \
	CHAINS(loop, "avx", "vmovapd", "ymm", "14", "15", "32", CHAINS_12, "vzeroupper\n\t", \
	       CLOBBERS_16, step)

YMM(fp32_avx2, EACH(CHAINS_12, "vfmadd213ps %%ymm15, %%ymm14, %%ymm\\r"))
YMM(fp64_avx2, EACH(CHAINS_12, "vfmadd213pd %%ymm15, %%ymm14, %%ymm\\r"))
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
#define AMX(loop, product)                                                                     \
	void rfl_kernel__##loop##_amx(struct rfl_kernel_chains *k)                             \
	{                                                                                      \
		struct tile_config config RFL_ALIGNED(64) = { .palette = 1 };                  \
		uint64_t iters = k->iters;                                                     \
                                                                                               \
		for (int i = 0; i < 8; i++) {                                                  \
			config.row_bytes[i] = 64;                                              \
			config.rows[i] = 16;                                                   \
		}                                                                              \
		__asm__ volatile("ldtilecfg (%[config])\n\t"                                   \
				 "tileloadd (%[a],%[row]), %%tmm6\n\t"                         \
				 "tileloadd (%[b],%[row]), %%tmm7\n\t"                         \
				 EACH(TILES, "tileloadd \\r*1024(%[x],%[row]), %%tmm\\r")      \
				 ".p2align 5\n"                                                \
				 "1:\n\t"                                                      \
				 EACH(TILES, product " %%tmm7, %%tmm6, %%tmm\\r")              \
				 "dec %[iters]\n\t"                                            \
				 "jnz 1b\n\t"                                                  \
				 EACH(TILES, "tilestored %%tmm\\r, \\r*1024(%[x],%[row])")     \
				 "tilerelease\n\t"                                             \
				 : [iters] "+&r"(iters)                                        \
				 : [x] "r"(k->x), [a] "r"(k->a), [b] "r"(k->b),                \
				   [row] "r"((uint64_t)64), [config] "r"(&config)              \
				 : "memory", "cc");                                            \
	}

AMX(bf16, "tdpbf16ps")
AMX(int8, "tdpbssd")

#else
typedef int rfl_kernels_x86_not_built; /* a translation unit must not be empty */
#endif
