/*
 * kernels_x86_loops.h - internal: the loops of one x86 family; kernels_x86.c includes this once per
 * family, with the family's register name and width and its mnemonics defined. No include guard:
 * being included again is its purpose.
 *
 * `.irp r,0,1,...` is the assembler's own loop; \r is the number. Eight registers make an iteration
 * over arrays, ACCUMULATORS registers one over chains.
 */

#define EACH(numbers, line) ".irp r," numbers "\n\t" line "\n\t.endr\n\t"
#define REG                 "%%" R "\\r"
#define AT(p)               "\\r*" W "(%[" p "])"

/* XOR and not a sum: exact in any order, and two per cycle everywhere. */
RFL_TARGET(TARGET) void NAME(read)(struct rfl_kernel_arrays *k)
{
	uint64_t words[8] RFL_ALIGNED(64) = { 0 };
	const double *const end = k->b + k->n;
	const double *p;
	size_t passes = k->passes;

	__asm__ volatile(EACH(SEVEN_AND_0, XOR(REG, REG))
			 "2:\n\t"
			 "mov %[b], %[p]\n\t"
			 ".p2align 5\n"
			 "1:\n\t"
			 EACH(SEVEN_AND_0, XOR(AT("p"), REG))
			 "add $8*" W ", %[p]\n\t"
			 "cmp %[end], %[p]\n\t"
			 "jne 1b\n\t"
			 "dec %[passes]\n\t"
			 "jnz 2b\n\t"
			 EACH("1,2,3,4,5,6,7", XOR(REG, "%%" R "0"))
			 STORE_INT " %%" R "0, (%[words])\n\t"
			 LEAVE
			 : [p] "=&r"(p), [passes] "+&r"(passes)
			 : [b] "r"(k->b), [end] "r"(end), [words] "r"(words)
			 : "memory", "cc", CLOBBERS);
	k->result = 0;
	for (int i = 0; i < 8; i++)
		k->result ^= words[i];
}

/* Two bodies, each with ordinary and with non-temporal stores. FENCE waits for the latter. */
#define COPY_LOOP(STORE_OP, FENCE)                                                             \
	for (size_t pass = 0; pass < k->passes; pass++) {                                      \
		double *a = k->a;                                                              \
		const double *b = k->b;                                                        \
		const double *const end = b + k->n;                                            \
                                                                                               \
		__asm__ volatile(".p2align 5\n"                                                \
				 "1:\n\t"                                                      \
				 EACH(SEVEN_AND_0, LOAD " " AT("b") ", " REG)                  \
				 EACH(SEVEN_AND_0, STORE_OP " " REG ", " AT("a"))              \
				 "add $8*" W ", %[b]\n\t"                                      \
				 "add $8*" W ", %[a]\n\t"                                      \
				 "cmp %[end], %[b]\n\t"                                        \
				 "jne 1b\n\t" FENCE LEAVE                                      \
				 : [a] "+&r"(a), [b] "+&r"(b)                                  \
				 : [end] "r"(end)                                              \
				 : "memory", "cc", CLOBBERS);                                  \
	}

#define TRIAD_LOOP(STORE_OP, FENCE)                                                            \
	for (size_t pass = 0; pass < k->passes; pass++) {                                      \
		double *a = k->a;                                                              \
		const double *b = k->b;                                                        \
		const double *c = k->c;                                                        \
		const double *const end = b + k->n;                                            \
                                                                                               \
		__asm__ volatile(BROADCAST64("%[scale]", SCALE)                                \
				 ".p2align 5\n"                                                \
				 "1:\n\t"                                                      \
				 EACH(SEVEN_AND_0, LOAD " " AT("c") ", " REG)                  \
				 EACH(SEVEN_AND_0, TIMES_SCALE_PLUS(AT("b"), REG))             \
				 EACH(SEVEN_AND_0, STORE_OP " " REG ", " AT("a"))              \
				 "add $8*" W ", %[c]\n\t"                                      \
				 "add $8*" W ", %[b]\n\t"                                      \
				 "add $8*" W ", %[a]\n\t"                                      \
				 "cmp %[end], %[b]\n\t"                                        \
				 "jne 1b\n\t" FENCE LEAVE                                      \
				 : [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c)                    \
				 : [end] "r"(end), [scale] "m"(k->scale)                       \
				 : "memory", "cc", CLOBBERS);                                  \
	}

RFL_TARGET(TARGET) void NAME(copy)(struct rfl_kernel_arrays *k)
{
	COPY_LOOP(STORE, "")
}

RFL_TARGET(TARGET) void NAME(copy_nt)(struct rfl_kernel_arrays *k)
{
	COPY_LOOP(STORE_NT, "sfence\n\t")
}

RFL_TARGET(TARGET) void NAME(triad)(struct rfl_kernel_arrays *k)
{
	TRIAD_LOOP(STORE, "")
}

RFL_TARGET(TARGET) void NAME(triad_nt)(struct rfl_kernel_arrays *k)
{
	TRIAD_LOOP(STORE_NT, "sfence\n\t")
}

/* x = x * MUL + ADD in every accumulator; nothing but these and the counter between the labels. */
#define CHAIN_LOOP(BROADCAST, STEP)                                                            \
	uint64_t iters = k->iters;                                                             \
                                                                                               \
	__asm__ volatile(BROADCAST("%[mul]", MUL) BROADCAST("%[add]", ADD)                     \
			 EACH(ACCUMULATORS, LOAD " " AT("x") ", " REG)                         \
			 ".p2align 5\n"                                                        \
			 "1:\n\t"                                                              \
			 STEP                                                                  \
			 "dec %[iters]\n\t"                                                    \
			 "jnz 1b\n\t"                                                          \
			 EACH(ACCUMULATORS, STORE " " REG ", " AT("x"))                        \
			 LEAVE                                                                 \
			 : [iters] "+&r"(iters)                                                \
			 : [x] "r"(k->x), [mul] "m"(mul), [add] "m"(add)                       \
			 : "memory", "cc", CLOBBERS);

RFL_TARGET(TARGET) void NAME(fp32)(struct rfl_kernel_chains *k)
{
	const float mul = (float)k->mul;
	const float add = (float)k->add;

	CHAIN_LOOP(BROADCAST32, CHAIN_STEP("ps"))
}

RFL_TARGET(TARGET) void NAME(fp64)(struct rfl_kernel_chains *k)
{
	const double mul = k->mul;
	const double add = k->add;

	CHAIN_LOOP(BROADCAST64, CHAIN_STEP("pd"))
}

#undef EACH
#undef REG
#undef AT
#undef COPY_LOOP
#undef TRIAD_LOOP
#undef CHAIN_LOOP
#undef NAME
#undef TARGET
#undef R
#undef W
#undef LOAD
#undef STORE
#undef STORE_NT
#undef STORE_INT
#undef XOR
#undef BROADCAST64
#undef BROADCAST32
#undef SCALE
#undef MUL
#undef ADD
#undef TIMES_SCALE_PLUS
#undef CHAIN_STEP
#undef ACCUMULATORS
#undef LEAVE
#undef CLOBBERS
