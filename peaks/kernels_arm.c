/*
 * kernels_arm.c - the loops for 64-bit Arm with NEON.
 *
 * fmla adds a product to its destination and cannot overwrite a factor, so that a step of a chain
 * is x = x + mul * add, not x = x * mul + add as on x86. Latency and rate are the same.
 */
#include "peaks/kernels.h"

#if RFL_KERNELS_ARM

#define EACH(numbers, line) ".irp r," numbers "\n\t" line "\n\t.endr\n\t"
#define CHAINS_24           "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23"

#define CLOBBERS                                                                              \
	"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", \
		"v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", \
		"v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"

void rfl_kernel__read_neon(struct rfl_kernel_arrays *k)
{
	uint64_t words[2] RFL_ALIGNED(16) = { 0 };
	const double *const end = k->b + k->n;
	const double *p;
	size_t passes = k->passes;

	__asm__ volatile(EACH("0,1,2,3,4,5,6,7", "movi v\\r\\().2d, #0")
			 "2:\n\t"
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
			 "b.ne 2b\n\t"
			 EACH("1,2,3,4,5,6,7", "eor v0.16b, v0.16b, v\\r\\().16b")
			 "str q0, [%[words]]\n\t"
			 : [p] "=&r"(p), [passes] "+&r"(passes)
			 : [b] "r"(k->b), [end] "r"(end), [words] "r"(words)
			 : "memory", "cc", CLOBBERS);
	k->result = words[0] ^ words[1];
}

/* An iteration uses eight registers of 16 bytes: with q = 1, registers 10 to 17. */
#define LOAD_8(p, q)                                          \
	"ldp q" #q "0, q" #q "1, [%[" p "]]\n\t"            \
	"ldp q" #q "2, q" #q "3, [%[" p "], #32]\n\t"       \
	"ldp q" #q "4, q" #q "5, [%[" p "], #64]\n\t"       \
	"ldp q" #q "6, q" #q "7, [%[" p "], #96]\n\t"

/* Store registers 10 to 17. stp keeps the lines in the caches; stnp hints not to keep them. */
#define STORE_8(op)                                           \
	op " q10, q11, [%[a]]\n\t"                          \
	op " q12, q13, [%[a], #32]\n\t"                     \
	op " q14, q15, [%[a], #64]\n\t"                     \
	op " q16, q17, [%[a], #96]\n\t"

#define COPY_LOOP(STORE_OP)                                                                    \
	for (size_t pass = 0; pass < k->passes; pass++) {                                      \
		double *a = k->a;                                                              \
		const double *b = k->b;                                                        \
		const double *const end = b + k->n;                                            \
                                                                                               \
		__asm__ volatile("1:\n\t" LOAD_8("b", 1) STORE_8(STORE_OP)                   \
				 "add %[b], %[b], #128\n\t"                                  \
				 "add %[a], %[a], #128\n\t"                                  \
				 "cmp %[b], %[end]\n\t"                                      \
				 "b.ne 1b\n\t"                                               \
				 : [a] "+&r"(a), [b] "+&r"(b)                                  \
				 : [end] "r"(end)                                              \
				 : "memory", "cc", CLOBBERS);                                  \
	}

/* Load b into registers 10 to 17 and c into 20 to 27, then compute b += c * scale. */
#define TRIAD_LOOP(STORE_OP)                                                                   \
	for (size_t pass = 0; pass < k->passes; pass++) {                                      \
		double *a = k->a;                                                              \
		const double *b = k->b;                                                        \
		const double *c = k->c;                                                        \
		const double *const end = b + k->n;                                            \
                                                                                               \
		__asm__ volatile("ld1r {v30.2d}, [%[scale]]\n"                                \
				 "1:\n\t" LOAD_8("b", 1) LOAD_8("c", 2)                      \
				 EACH("0,1,2,3,4,5,6,7",                                       \
				      "fmla v1\\r\\().2d, v2\\r\\().2d, v30.2d")       \
				 STORE_8(STORE_OP)                                             \
				 "add %[c], %[c], #128\n\t"                                  \
				 "add %[b], %[b], #128\n\t"                                  \
				 "add %[a], %[a], #128\n\t"                                  \
				 "cmp %[b], %[end]\n\t"                                      \
				 "b.ne 1b\n\t"                                               \
				 : [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c)                    \
				 : [end] "r"(end), [scale] "r"(&k->scale)                      \
				 : "memory", "cc", CLOBBERS);                                  \
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

#define CHAIN_LOOP(LANES)                                                                      \
	uint64_t iters = k->iters;                                                             \
                                                                                               \
	__asm__ volatile("ld1r {v30." LANES "}, [%[mul]]\n\t"                                \
			 "ld1r {v31." LANES "}, [%[add]]\n\t"                                \
			 EACH(CHAINS_24, "ldr q\\r, [%[x], #16*\\r]")                      \
			 ".p2align 5\n"                                                       \
			 "1:\n\t"                                                            \
			 EACH(CHAINS_24, "fmla v\\r\\()." LANES ", v30." LANES ", v31." LANES) \
			 "subs %[iters], %[iters], #1\n\t"                                   \
			 "b.ne 1b\n\t"                                                       \
			 EACH(CHAINS_24, "str q\\r, [%[x], #16*\\r]")                      \
			 : [iters] "+&r"(iters)                                                \
			 : [x] "r"(k->x), [mul] "r"(&mul), [add] "r"(&add)                     \
			 : "memory", "cc", CLOBBERS);

void rfl_kernel__fp32_neon(struct rfl_kernel_chains *k)
{
	const float mul = (float)k->mul;
	const float add = (float)k->add;

	CHAIN_LOOP("4s")
}

void rfl_kernel__fp64_neon(struct rfl_kernel_chains *k)
{
	const double mul = k->mul;
	const double add = k->add;

	CHAIN_LOOP("2d")
}

#else
typedef int rfl_kernels_arm_not_built; /* a translation unit must not be empty */
#endif
