/*
 * isa.c - raw cpuid and XGETBV on x86, the auxiliary vector on Arm. A compiler's list of feature
 * names is not asked: compilers differ in the names they know.
 */
#include "machine/isa.h"

#include <stdbool.h>
#include <string.h>

#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "machine/cpuid.h"

static const char *const names[] = {
#define NAME(id, text) [RFL_ISA_##id] = (text),
	RFL_ISA_LIST(NAME)
#undef NAME
};

const char *rfl_isa_name(size_t isa)
{
	return isa < RFL_ISA_COUNT ? names[isa] : NULL;
}

#if defined(__x86_64__)

/* Which register states the operating system saves: bits of XCR0. */
static uint64_t xcr0(void)
{
	uint32_t lo, hi;

	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return ((uint64_t)hi << 32) | lo;
}

enum { STATE_AVX = 0x6, STATE_AVX512 = 0xe6, STATE_AMX = 0x60000 };
enum reg { EAX, EBX, ECX, EDX };

static const struct {
	enum rfl_isa isa;
	uint32_t leaf, sub;
	enum reg reg;
	int bit;
	uint64_t state; /* of XCR0 that must all be set */
} features[] = {
	{ RFL_ISA_SSE2, 1, 0, EDX, 26, 0 },
	{ RFL_ISA_SSE4_2, 1, 0, ECX, 20, 0 },
	{ RFL_ISA_AVX, 1, 0, ECX, 28, STATE_AVX },
	{ RFL_ISA_F16C, 1, 0, ECX, 29, STATE_AVX },
	{ RFL_ISA_FMA, 1, 0, ECX, 12, STATE_AVX },
	{ RFL_ISA_AVX2, 7, 0, EBX, 5, STATE_AVX },
	{ RFL_ISA_AVX_VNNI, 7, 1, EAX, 4, STATE_AVX },
	{ RFL_ISA_AVX512F, 7, 0, EBX, 16, STATE_AVX512 },
	{ RFL_ISA_AVX512DQ, 7, 0, EBX, 17, STATE_AVX512 },
	{ RFL_ISA_AVX512BW, 7, 0, EBX, 30, STATE_AVX512 },
	{ RFL_ISA_AVX512VL, 7, 0, EBX, 31, STATE_AVX512 },
	{ RFL_ISA_AVX512_VNNI, 7, 0, ECX, 11, STATE_AVX512 },
	{ RFL_ISA_AVX512_BF16, 7, 1, EAX, 5, STATE_AVX512 },
	{ RFL_ISA_AVX512_FP16, 7, 0, EDX, 23, STATE_AVX512 },
	{ RFL_ISA_AMX_TILE, 7, 0, EDX, 24, STATE_AMX },
	{ RFL_ISA_AMX_BF16, 7, 0, EDX, 22, STATE_AMX },
	{ RFL_ISA_AMX_INT8, 7, 0, EDX, 25, STATE_AMX },
};

static uint32_t pick(const struct rfl_cpuid *r, enum reg reg)
{
	const uint32_t all[] = { r->a, r->b, r->c, r->d };

	return all[reg];
}

uint64_t rfl_isa_detect(void)
{
	const uint32_t max_leaf = rfl_cpuid(0, 0).a;
	const uint32_t max_sub7 = max_leaf >= 7 ? rfl_cpuid(7, 0).a : 0;
	const bool osxsave = (rfl_cpuid(1, 0).c >> 27) & 1;
	const uint64_t state = osxsave ? xcr0() : 0;
	uint64_t found = 0;

	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		if (features[i].leaf > max_leaf)
			continue;
		if (features[i].leaf == 7 && features[i].sub > max_sub7)
			continue;
		const struct rfl_cpuid r = rfl_cpuid(features[i].leaf, features[i].sub);
		const bool has = (pick(&r, features[i].reg) >> features[i].bit) & 1;

		if (has && (state & features[i].state) == features[i].state)
			found |= UINT64_C(1) << features[i].isa;
	}
	return found;
}

static void copy_regs(char *out, const uint32_t *regs, size_t n)
{
	memcpy(out, regs, n * sizeof(*regs));
	out[n * sizeof(*regs)] = '\0';
}

void rfl_isa_cpu_vendor(char out[13])
{
	const struct rfl_cpuid r = rfl_cpuid(0, 0);

	copy_regs(out, (const uint32_t[]){ r.b, r.d, r.c }, 3);
}

void rfl_isa_cpu_brand(char out[49])
{
	uint32_t text[12];

	out[0] = '\0';
	if (rfl_cpuid(0x80000000u, 0).a < 0x80000004u)
		return;
	for (uint32_t i = 0; i < 3; i++) {
		const struct rfl_cpuid r = rfl_cpuid(0x80000002u + i, 0);

		memcpy(&text[4 * i], (const uint32_t[]){ r.a, r.b, r.c, r.d }, 16);
	}
	copy_regs(out, text, 12);
}

void rfl_isa_hypervisor(char out[13])
{
	out[0] = '\0';
	if (!((rfl_cpuid(1, 0).c >> 31) & 1))
		return;
	const struct rfl_cpuid r = rfl_cpuid(0x40000000u, 0);

	copy_regs(out, (const uint32_t[]){ r.b, r.c, r.d }, 3);
	if (!out[0])
		memcpy(out, "nameless", sizeof("nameless"));
}

#else /* not x86 */

#if defined(__linux__) && defined(__aarch64__)

/* Bits of AT_HWCAP (word 0) and AT_HWCAP2 (word 1), as the kernel's uapi/asm/hwcap.h numbers them.
 */
static const struct {
	enum rfl_isa isa;
	int word, bit;
} features[] = {
	{ RFL_ISA_NEON, 0, 1 },      { RFL_ISA_ARM_FP16, 0, 10 }, { RFL_ISA_ARM_DOTPROD, 0, 20 },
	{ RFL_ISA_SVE, 0, 22 },      { RFL_ISA_SVE2, 1, 1 },      { RFL_ISA_ARM_I8MM, 1, 13 },
	{ RFL_ISA_ARM_BF16, 1, 14 }, { RFL_ISA_SME, 1, 23 },
};

uint64_t rfl_isa_detect(void)
{
	const unsigned long words[] = { getauxval(AT_HWCAP), getauxval(AT_HWCAP2) };
	uint64_t found = 0;

	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		if ((words[features[i].word] >> features[i].bit) & 1)
			found |= UINT64_C(1) << features[i].isa;
	}
	return found;
}

#else

uint64_t rfl_isa_detect(void)
{
	return 0;
}

#endif

void rfl_isa_cpu_vendor(char out[13])
{
	out[0] = '\0';
}

void rfl_isa_cpu_brand(char out[49])
{
	out[0] = '\0';
}

void rfl_isa_hypervisor(char out[13])
{
	out[0] = '\0';
}

#endif
