/*
 * kernels_arm.c - the loops for 64-bit Arm with NEON.
 *
 * fmla adds a product to its destination and cannot overwrite a factor, so that a step of a chain
 * is x = x + a * b, not x = x * a + b as on x86. Latency and rate are the same.
 */
#include "peaks/kernels.h"

#ifdef RFL_KERNELS_ARM

#define EACH(numbers, line) ".irp r," numbers "\n\t" line "\n\t.endr\n\t"
#define CHAINS_24           "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23"

#define CLOBBERS                                                                                \
	"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", \
		"v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",    \
		"v25", "v26", "v27", "v28", "v29", "v30", "v31"

void rfl_kernel__read_neon(struct rfl_kernel_arrays *k)
{
	uint64_t words[2] RFL_ALIGNED(16) = { 0 };
	const double *const end = k->b + k->n;
	const double *p;
	size_t passes = k->passes;

	__asm__ volatile(
		EACH("0,1,2,3,4,5,6,7",
		     "movi v\\r\\().2d, #0") "2:\n\t"
					     "mov %[p], %[b]\n"
					     "1:\n\t"
					     "ldp q16, q17, [%[p]]\n\t"
					     "ldp q18, q19, [%[p], #32]\n\t"
					     "ldp q20, q21, [%[p], #64]\n\t"
					     "ldp q22, q23, [%[p], #96]\n\t"
					     "eor v0.16b, v0.16b, v16.16b\n\t"
					     "eor v1.16b, v1.16b, v17.16b\n\t"
					     "eor v2.16b, v2.16b, v18.16b\n\t"
					     "eor v3.16b, v3.16b, v19.16b\n\t"
					     "eor v4.16b, v4.16b, v20.16b\n\t"
					     "eor v5.16b, v5.16b, v21.16b\n\t"
					     "eor v6.16b, v6.16b, v22.16b\n\t"
					     "eor v7.16b, v7.16b, v23.16b\n\t"
					     "add %[p], %[p], #128\n\t"
					     "cmp %[p], %[end]\n\t"
					     "b.ne 1b\n\t"
					     "subs %[passes], %[passes], #1\n\t"
					     "b.ne 2b\n\t" EACH(
						     "1,2,3,4,5,6,7",
						     "eor v0.16b, v0.16b, v\\r\\().16b") "str q0, "
											 "[%[words]"
											 "]\n\t"
		: [p] "=&r"(p), [passes] "+&r"(passes)
		: [b] "r"(k->b), [end] "r"(end), [words] "r"(words)
		: "memory", "cc", CLOBBERS);
	k->result = words[0] ^ words[1];
}

/* An iteration uses eight registers of 16 bytes: with q = 1, registers 10 to 17. */
#define LOAD_8(p, q)                                  \
	"ldp q" #q "0, q" #q "1, [%[" p "]]\n\t"      \
	"ldp q" #q "2, q" #q "3, [%[" p "], #32]\n\t" \
	"ldp q" #q "4, q" #q "5, [%[" p "], #64]\n\t" \
	"ldp q" #q "6, q" #q "7, [%[" p "], #96]\n\t"

/* Store registers 10 to 17. stp keeps the lines in the caches; stnp hints not to keep them. */
#define STORE_8(op)                                                   \
	op " q10, q11, [%[a]]\n\t" op " q12, q13, [%[a], #32]\n\t" op \
	   " q14, q15, [%[a], #64]\n\t" op " q16, q17, [%[a], #96]\n\t"

#define COPY_LOOP(STORE_OP)                                                           \
	for (size_t pass = 0; pass < k->passes; pass++) {                             \
		double *a = k->a;                                                     \
		const double *b = k->b;                                               \
		const double *const end = b + k->n;                                   \
                                                                                      \
		__asm__ volatile("1:\n\t" LOAD_8("b", 1)                              \
					 STORE_8(STORE_OP) "add %[b], %[b], #128\n\t" \
							   "add %[a], %[a], #128\n\t" \
							   "cmp %[b], %[end]\n\t"     \
							   "b.ne 1b\n\t"              \
				 : [a] "+&r"(a), [b] "+&r"(b)                         \
				 : [end] "r"(end)                                     \
				 : "memory", "cc", CLOBBERS);                         \
	}

/* Load b into registers 10 to 17 and c into 20 to 27, then compute b += c * scale. */
#define TRIAD_LOOP(STORE_OP)                                                                       \
	for (size_t pass = 0; pass < k->passes; pass++) {                                          \
		double *a = k->a;                                                                  \
		const double *b = k->b;                                                            \
		const double *c = k->c;                                                            \
		const double *const end = b + k->n;                                                \
                                                                                                   \
		__asm__ volatile(                                                                  \
			"ld1r {v30.2d}, [%[scale]]\n"                                              \
			"1:\n\t" LOAD_8("b", 1) LOAD_8("c", 2)                                     \
				EACH("0,1,2,3,4,5,6,7", "fmla v1\\r\\().2d, v2\\r\\().2d, v30.2d") \
					STORE_8(STORE_OP) "add %[c], %[c], #128\n\t"               \
							  "add %[b], %[b], #128\n\t"               \
							  "add %[a], %[a], #128\n\t"               \
							  "cmp %[b], %[end]\n\t"                   \
							  "b.ne 1b\n\t"                            \
			: [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c)                                 \
			: [end] "r"(end), [scale] "r"(&k->scale)                                   \
			: "memory", "cc", CLOBBERS);                                               \
	}

void rfl_kernel__copy_neon(struct rfl_kernel_arrays *k)
{
	COPY_LOOP("stp")
}

void rfl_kernel__copy_nt_neon(struct rfl_kernel_arrays *k)
{
	COPY_LOOP("stnp")
}

void rfl_kernel__triad_neon(struct rfl_kernel_arrays *k)
{
	TRIAD_LOOP("stp")
}

void rfl_kernel__triad_nt_neon(struct rfl_kernel_arrays *k)
{
	TRIAD_LOOP("stnp")
}

/* Chains: 24 accumulators, and the operands a and b in registers 30 and 31. `reg` is the letter of
 * the registers as they are loaded, of `width` bytes. The loop contains only the step and its
 * counter. gcc and clang name what they accept in assembly differently. */
#ifdef __clang__
#define TARGET "fullfp16,dotprod,bf16,i8mm"
#else
#define TARGET "arch=armv8.6-a+fp16"
#endif
#define CHAINS(loop, reg, width, step) CHAINS_OF(loop, reg, width, CHAINS_24, step)
#define CHAINS_OF(loop, reg, width, numbers, step)                                                \
	RFL_TARGET(TARGET) void rfl_kernel__##loop(struct rfl_kernel_chains *k)                   \
	{                                                                                         \
		uint64_t iters = k->iters;                                                        \
                                                                                                  \
		__asm__ volatile("ldr " reg "30, [%[a]]\n\t"                                      \
				 "ldr " reg "31, [%[b]]\n\t" EACH(                                \
					 numbers,                                                 \
					 "ldr " reg "\\r, [%[x], #" width                         \
					 "*\\r]") ".p2align 5\n"                                  \
						  "1:\n\t" step "subs %[iters], %[iters], #1\n\t" \
						  "b.ne 1b\n\t" EACH(                             \
							  numbers, "str " reg                     \
								   "\\r, [%[x], #" width "*\\r]") \
				 : [iters] "+&r"(iters)                                           \
				 : [x] "r"(k->x), [a] "r"(k->a), [b] "r"(k->b)                    \
				 : "memory", "cc", CLOBBERS);                                     \
	}

/* op x, a, b with vectors */
#define NEON(loop, op, to, from) \
	CHAINS(loop, "q", "16", EACH(CHAINS_24, op " v\\r\\()." to ", v30." from ", v31." from))

NEON(fp32_neon, "fmla", "4s", "4s")
NEON(fp64_neon, "fmla", "2d", "2d")
NEON(fp16_neon, "fmla", "8h", "8h")
NEON(bf16_neon, "bfdot", "4s", "8h")
NEON(bf16_mmla, "bfmmla", "4s", "8h")
NEON(int8_neon, "sdot", "4s", "16b")
NEON(int8_mmla, "smmla", "4s", "16b")

#define NOFMA(loop, of)                                                          \
	CHAINS(loop, "q", "16",                                                  \
	       EACH(CHAINS_24, "fmul v\\r\\()." of ", v\\r\\()." of ", v30." of) \
		       EACH(CHAINS_24, "fadd v\\r\\()." of ", v\\r\\()." of ", v31." of))

NOFMA(fp32_nofma_neon, "4s")
NOFMA(fp64_nofma_neon, "2d")

/* an addition after each multiply-add, to a register that nothing waits for */
#define FMAADD(loop, of)                                                             \
	CHAINS_OF(loop, "q", "16", CHAINS_24 ",24",                                  \
		  EACH(CHAINS_24, "fmla v\\r\\()." of ", v30." of ", v31." of "\n\t" \
				  "fadd v24." of ", v30." of ", v31." of))

FMAADD(fp32_fmaadd_neon, "4s")
FMAADD(fp64_fmaadd_neon, "2d")

CHAINS(fp32_scalar_neon, "s", "4", EACH(CHAINS_24, "fmadd s\\r, s\\r, s30, s31"))
CHAINS(fp64_scalar_neon, "d", "8", EACH(CHAINS_24, "fmadd d\\r, d\\r, d30, d31"))

#else
typedef int rfl_kernels_arm_not_built; /* a translation unit must not be empty */
#endif
