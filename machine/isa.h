/*
 * isa.h - the instruction sets that the CPU *and* the operating system support (by cpuid and
 * XGETBV on x86, the auxiliary vector on Arm), and the CPU model, which selects the table of
 * hardware counters.
 */
#ifndef RFL_MACHINE_ISA_H
#define RFL_MACHINE_ISA_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

RFL_API_BEGIN

/* X(identifier, name): the names are used in peaks.json and in messages. */
#define RFL_ISA_LIST(X)               \
	X(SSE2, "sse2")               \
	X(SSE4_2, "sse4_2")           \
	X(AVX, "avx")                 \
	X(F16C, "f16c")               \
	X(FMA, "fma")                 \
	X(AVX2, "avx2")               \
	X(AVX_VNNI, "avx_vnni")       \
	X(AVX512F, "avx512f")         \
	X(AVX512DQ, "avx512dq")       \
	X(AVX512BW, "avx512bw")       \
	X(AVX512VL, "avx512vl")       \
	X(AVX512_VNNI, "avx512_vnni") \
	X(AVX512_BF16, "avx512_bf16") \
	X(AVX512_FP16, "avx512_fp16") \
	X(AMX_TILE, "amx_tile")       \
	X(AMX_BF16, "amx_bf16")       \
	X(AMX_INT8, "amx_int8")       \
	X(NEON, "neon")               \
	X(ARM_FP16, "fp16")           \
	X(ARM_DOTPROD, "dotprod")     \
	X(ARM_I8MM, "i8mm")           \
	X(ARM_BF16, "bf16")           \
	X(SVE, "sve")                 \
	X(SVE2, "sve2")               \
	X(SME, "sme")

#define RFL_ISA_MEMBER(id, name) RFL_ISA_##id,
enum rfl_isa { RFL_ISA_LIST(RFL_ISA_MEMBER) RFL_ISA_COUNT };

#define RFL_ISA_BIT(id) (UINT64_C(1) << RFL_ISA_##id)

/** RFL_ISA_BIT()s of the instruction sets usable on this machine. */
uint64_t rfl_isa_detect(void);

/** Ask the operating system for the permission to use the tiles of AMX, which the CPU has.
 * @return RFL_OK if all threads of this process may use them; RFL_EUNAVAILABLE */
enum rfl_rc rfl_isa_permit_tiles(struct rfl_err *err) RFL_WARN_UNUSED;

/** Return the name of an instruction set, such as "avx512f"; NULL past the end. */
const char *rfl_isa_name(size_t isa);

/** Get the brand string of the CPU; "" if it has none or is not x86. */
void rfl_isa_cpu_brand(char out[49]);
/** Get the hypervisor's signature ("KVMKVMKVM", or "nameless"); "" without a hypervisor. */
void rfl_isa_hypervisor(char out[13]);

struct rfl_cpu_id {
	char vendor[16]; /**< "GenuineIntel", "AuthenticAMD", "0x41" (Arm Ltd.); "" if unknown */
	int family;      /**< x86: including the extended family; 0 elsewhere */
	int model;    /**< x86: including the extended model; Arm: the part number, such as 0xd40 */
	int counters; /**< general-purpose counters per hardware thread; 0: unknown */
};

/** Identify this CPU. @param root  contains /proc and /sys; "" outside tests */
void rfl_cpu_id_get(const char *root, struct rfl_cpu_id *ret);

/* cpuid leaves 0, 1, 0xa, 0x80000001 and 0x80000022; 0 if the CPU lacks the leaf. */
struct rfl_cpu_leaves {
	unsigned leaf0[4], leaf1[4], leaf_a[4], leaf_ext1[4], leaf_ext22[4]; /* eax ebx ecx edx */
};

/** Identify any x86 CPU from its cpuid leaves. */
void rfl_cpu_id_from_leaves(const struct rfl_cpu_leaves *leaves, struct rfl_cpu_id *ret);

RFL_API_END
#endif
