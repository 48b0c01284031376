/*
 * kernels_x86.c - the loops for AVX-512, AVX2 with FMA, and SSE2, all generated from
 * kernels_x86_loops.inc.
 */
#include "peaks/kernels.h"

#if RFL_KERNELS_X86

#define SEVEN_AND_0 "0,1,2,3,4,5,6,7"
#define CHAINS_12   "0,1,2,3,4,5,6,7,8,9,10,11"
#define CHAINS_24   "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23"

#define CLOBBERS_16                                                                             \
	"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
		"xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define CLOBBERS_32                                                                          \
	CLOBBERS_16, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", \
		"xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"

/* AVX-512: 32 registers, for 24 chains and two constants. */
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
#define MUL                        "%%zmm30"
#define ADD                        "%%zmm31"
#define BROADCAST64(from, to)      "vbroadcastsd " from ", " to "\n\t"
#define BROADCAST32(from, to)      "vbroadcastss " from ", " to "\n\t"
#define TIMES_SCALE_PLUS(from, to) "vfmadd213pd " from ", " SCALE ", " to
#define CHAIN_STEP(type)           EACH(ACCUMULATORS, "vfmadd213" type " " ADD ", " MUL ", " REG)
#define ACCUMULATORS               CHAINS_24
#define LEAVE                      "vzeroupper\n\t"
#define CLOBBERS                   CLOBBERS_32
#include "peaks/kernels_x86_loops.inc"

/* AVX2 and FMA: 16 registers, for 12 chains and two constants. */
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
#define MUL                        "%%ymm14"
#define ADD                        "%%ymm15"
#define BROADCAST64(from, to)      "vbroadcastsd " from ", " to "\n\t"
#define BROADCAST32(from, to)      "vbroadcastss " from ", " to "\n\t"
#define TIMES_SCALE_PLUS(from, to) "vfmadd213pd " from ", " SCALE ", " to
#define CHAIN_STEP(type)           EACH(ACCUMULATORS, "vfmadd213" type " " ADD ", " MUL ", " REG)
#define ACCUMULATORS               CHAINS_12
#define LEAVE                      "vzeroupper\n\t"
#define CLOBBERS                   CLOBBERS_16
#include "peaks/kernels_x86_loops.inc"

/* SSE2, on every x86-64 processor: no fused multiply-add, so a step takes two instructions. */
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
#define MUL                        "%%xmm14"
#define ADD                        "%%xmm15"
#define BROADCAST64(from, to)      "movsd " from ", " to "\n\tunpcklpd " to ", " to "\n\t"
#define BROADCAST32(from, to)      "movss " from ", " to "\n\tshufps $0, " to ", " to "\n\t"
#define TIMES_SCALE_PLUS(from, to) "mulpd " SCALE ", " to "\n\taddpd " from ", " to
#define CHAIN_STEP(type)                                   \
	EACH(ACCUMULATORS, "mul" type " " MUL ", " REG)    \
	EACH(ACCUMULATORS, "add" type " " ADD ", " REG)
#define ACCUMULATORS               CHAINS_12
#define LEAVE                      ""
#define CLOBBERS                   CLOBBERS_16
#include "peaks/kernels_x86_loops.inc"

#else
typedef int rfl_kernels_x86_not_built; /* a translation unit must not be empty */
#endif
