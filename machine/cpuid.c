/*
 * cpuid.c - instruction sets, vendor, model and caches of an x86 CPU: raw cpuid and XGETBV, because
 * compilers know different sets of feature names. The operating system describes other CPUs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/alloc.h"
#include "machine/isa.h"
#include "machine/machine_parts.h"

enum { EAX, EBX, ECX, EDX };

static unsigned bits(uint32_t reg, int first, int n)
{
	return reg >> first & ((1u << n) - 1);
}

static const char *const names[] = {
#define NAME(id, text) [RFL_ISA_##id] = (text),
	RFL_ISA_LIST(NAME)
#undef NAME
};

const char *rfl_isa_name(size_t isa)
{
	return isa < RFL_ISA_COUNT ? names[isa] : NULL;
}

void rfl_cpu_id_from_leaves(const struct rfl_cpu_leaves *l, struct rfl_cpu_id *ret)
{
	const unsigned words[] = { l->leaf0[EBX], l->leaf0[EDX], l->leaf0[ECX] };
	const unsigned signature = l->leaf1[EAX];
	const unsigned family = bits(signature, 8, 4), model = bits(signature, 4, 4);

	*ret = (struct rfl_cpu_id){ .family = 0 };
	memcpy(ret->vendor, words, sizeof(words));
	ret->family = (int)(family + (family == 15 ? bits(signature, 20, 8) : 0));
	ret->model = (int)(model + (bits(signature, 16, 4) << 4));
	if (strcmp(ret->vendor, "GenuineIntel") == 0)
		ret->counters = (int)bits(l->leaf_a[EAX], 8, 8);
	else if (strcmp(ret->vendor, "AuthenticAMD") != 0)
		return;
	else if (bits(l->leaf_ext22[EAX], 0, 1)) /* version 2 of performance monitoring */
		ret->counters = (int)bits(l->leaf_ext22[EBX], 0, 4);
	else
		ret->counters = bits(l->leaf_ext1[ECX], 23, 1) ? 6 : 4;
}

bool rfl_machine__cpuid_cache(const struct rfl_cpuid *r, struct rfl_cache *ret)
{
	enum { TYPE_NONE = 0, TYPE_INSTRUCTION = 2 };
	const unsigned type = bits(r->reg[EAX], 0, 5);
	const int64_t line = bits(r->reg[EBX], 0, 12) + 1;
	const int64_t partitions = bits(r->reg[EBX], 12, 10) + 1;
	const int64_t ways = bits(r->reg[EBX], 22, 10) + 1;

	if (type == TYPE_NONE)
		return false;
	*ret = (struct rfl_cache){
		.level = type == TYPE_INSTRUCTION ? 0 : (int)bits(r->reg[EAX], 5, 3),
		.line_bytes = (int)line,
		.sharers = (int)bits(r->reg[EAX], 14, 12) + 1,
		.size_bytes = line * partitions * ways * ((int64_t)r->reg[ECX] + 1),
	};
	return true;
}

/* On other CPUs, all leaves are 0: no brand, no hypervisor, no caches. */
static struct rfl_cpuid cpuid(uint32_t leaf, uint32_t sub)
{
	struct rfl_cpuid r = { { 0 } };

#if defined(__x86_64__)
	__asm__ volatile("cpuid"
			 : "=a"(r.reg[EAX]), "=b"(r.reg[EBX]), "=c"(r.reg[ECX]), "=d"(r.reg[EDX])
			 : "a"(leaf), "c"(sub));
#else
	(void)leaf;
	(void)sub;
#endif
	return r;
}

#if defined(__x86_64__)

enum { STATE_AVX = 0x6, STATE_AVX512 = 0xe6, STATE_AMX = 0x60000 };

/* sorted by leaf */
static const struct {
	enum rfl_isa isa;
	uint32_t leaf, sub;
	int reg, bit;
	uint64_t state; /* bits of XCR0 that must be set */
} features[] = {
	{ RFL_ISA_SSE2, 1, 0, EDX, 26, 0 },
	{ RFL_ISA_SSE4_2, 1, 0, ECX, 20, 0 },
	{ RFL_ISA_AVX, 1, 0, ECX, 28, STATE_AVX },
	{ RFL_ISA_F16C, 1, 0, ECX, 29, STATE_AVX },
	{ RFL_ISA_FMA, 1, 0, ECX, 12, STATE_AVX },
	{ RFL_ISA_AVX2, 7, 0, EBX, 5, STATE_AVX },
	{ RFL_ISA_AVX512F, 7, 0, EBX, 16, STATE_AVX512 },
	{ RFL_ISA_AVX512DQ, 7, 0, EBX, 17, STATE_AVX512 },
	{ RFL_ISA_AVX512BW, 7, 0, EBX, 30, STATE_AVX512 },
	{ RFL_ISA_AVX512VL, 7, 0, EBX, 31, STATE_AVX512 },
	{ RFL_ISA_AVX512_VNNI, 7, 0, ECX, 11, STATE_AVX512 },
	{ RFL_ISA_AVX512_FP16, 7, 0, EDX, 23, STATE_AVX512 },
	{ RFL_ISA_AMX_TILE, 7, 0, EDX, 24, STATE_AMX },
	{ RFL_ISA_AMX_BF16, 7, 0, EDX, 22, STATE_AMX },
	{ RFL_ISA_AMX_INT8, 7, 0, EDX, 25, STATE_AMX },
	{ RFL_ISA_AVX_VNNI, 7, 1, EAX, 4, STATE_AVX },
	{ RFL_ISA_AVX512_BF16, 7, 1, EAX, 5, STATE_AVX512 },
};

enum rfl_rc rfl_isa_permit_tiles(struct rfl_err *err)
{
	enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

	if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) != 0)
		return rfl_fail(err, RFL_EUNAVAILABLE, errno,
				"the kernel does not permit AMX tiles: %s", strerror(errno));
	return RFL_OK;
}

uint64_t rfl_isa_detect(void)
{
	const uint32_t max_leaf = cpuid(0, 0).reg[EAX];
	const uint32_t max_sub7 = max_leaf >= 7 ? cpuid(7, 0).reg[EAX] : 0;
	uint32_t lo = 0, hi = 0; /* XCR0: the register states that the operating system saves */
	uint64_t state, found = 0;
	struct rfl_cpuid r = { { 0 } };

	if (bits(cpuid(1, 0).reg[ECX], 27, 1)) /* OSXSAVE */
		__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	state = (uint64_t)hi << 32 | lo;
	for (size_t i = 0; i < RFL_ARRAY_LEN(features); i++) {
		if (features[i].leaf > max_leaf ||
		    (features[i].leaf == 7 && features[i].sub > max_sub7))
			continue;
		/* a hypervisor intercepts every cpuid, which takes long */
		if (i == 0 || features[i].leaf != features[i - 1].leaf ||
		    features[i].sub != features[i - 1].sub)
			r = cpuid(features[i].leaf, features[i].sub);
		if (bits(r.reg[features[i].reg], features[i].bit, 1) &&
		    (state & features[i].state) == features[i].state)
			found |= UINT64_C(1) << features[i].isa;
	}
	return found;
}

static void leaf(uint32_t number, uint32_t last, unsigned out[4])
{
	if (number > last)
		return;
	const struct rfl_cpuid r = cpuid(number, 0);

	memcpy(out, r.reg, sizeof(r.reg));
}

void rfl_cpu_id_get(const char *root, struct rfl_cpu_id *ret)
{
	const uint32_t last = cpuid(0, 0).reg[EAX], last_ext = cpuid(0x80000000u, 0).reg[EAX];
	struct rfl_cpu_leaves l = { .leaf0 = { 0 } };

	(void)root;
	leaf(0, last, l.leaf0);
	leaf(1, last, l.leaf1);
	leaf(0xa, last, l.leaf_a);
	leaf(0x80000001u, last_ext, l.leaf_ext1);
	leaf(0x80000022u, last_ext, l.leaf_ext22);
	rfl_cpu_id_from_leaves(&l, ret);
}

void rfl_isa_cpu_brand(char out[49])
{
	out[0] = '\0';
	if (cpuid(0x80000000u, 0).reg[EAX] < 0x80000004u)
		return;
	for (uint32_t i = 0; i < 3; i++) {
		const struct rfl_cpuid r = cpuid(0x80000002u + i, 0);

		memcpy(out + sizeof(r.reg) * i, r.reg, sizeof(r.reg));
	}
	out[48] = '\0';
}

#else /* the rest is in os_linux.c and os_macos.c */

enum rfl_rc rfl_isa_permit_tiles(struct rfl_err *err)
{
	return rfl_fail(err, RFL_EUNAVAILABLE, 0, "this CPU has no AMX");
}

#endif

void rfl_isa_hypervisor(char out[13])
{
	out[0] = '\0';
	if (!bits(cpuid(1, 0).reg[ECX], 31, 1))
		return;
	const struct rfl_cpuid r = cpuid(0x40000000u, 0);

	memcpy(out, &r.reg[EBX], 12); /* ebx, ecx, edx */
	out[12] = '\0';
	if (!out[0])
		memcpy(out, "nameless", sizeof("nameless"));
}

/* ---- caches, for containers that hide them from hwloc ---- */

void rfl_machine__caches_cpuid(struct rfl_machine *m)
{
	enum { CACHES_MAX = 8, TOPOEXT = 22 };
	const int threads = m->hw_threads;
	const int of_package = threads > m->packages ? threads / m->packages : 1;
	struct rfl_cache *c = rfl_arena_array(m->arena, CACHES_MAX, sizeof(*c));
	uint32_t leaf = cpuid(0, 0).reg[EAX] >= 4 ? 4 : 0; /* Intel; AMD has the same layout */

	m->ncaches = 0;
	if (!c)
		return;
	if (cpuid(0x80000000u, 0).reg[EAX] >= 0x8000001du &&
	    bits(cpuid(0x80000001u, 0).reg[ECX], TOPOEXT, 1))
		leaf = 0x8000001du;
	m->caches = c;
	for (uint32_t sub = 0; leaf && sub < 16 && m->ncaches < CACHES_MAX; sub++) {
		const struct rfl_cpuid r = cpuid(leaf, sub);

		if (!rfl_machine__cpuid_cache(&r, c))
			break;
		if (c->level < 1)
			continue;
		/* cpuid counts reserved APIC ids, a power of two: fewer threads may exist, and a
		 * cache never spans packages */
		if (c->sharers > of_package)
			c->sharers = of_package;
		c->count = (threads + c->sharers - 1) / c->sharers;
		c++;
		m->ncaches++;
	}
}
