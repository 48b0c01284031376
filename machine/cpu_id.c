/*
 * cpu_id.c - vendor, family and model by cpuid on x86, by /proc/cpuinfo on Arm.
 */
#include "machine/cpu_id.h"

#include <stdio.h>
#include <string.h>

#include "machine/cpuid.h"
#include "machine/machine_parts.h"

enum { EAX, EBX, ECX, EDX };

static unsigned bits(unsigned word, int first, int n)
{
	return word >> first & ((1u << n) - 1);
}

static void id_counters(const struct rfl_cpu_leaves *l, struct rfl_cpu_id *ret)
{
	const bool extended = bits(l->leaf_ext1[ECX], 23, 1);
	const bool second = bits(l->leaf_ext22[EAX], 0, 1); /* version of the counters */

	if (strcmp(ret->vendor, "GenuineIntel") == 0)
		ret->counters = (int)bits(l->leaf_a[EAX], 8, 8);
	else if (strcmp(ret->vendor, "AuthenticAMD") == 0)
		ret->counters = second ? (int)bits(l->leaf_ext22[EBX], 0, 4) : extended ? 6 : 4;
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
	id_counters(l, ret);
}

#if defined(__x86_64__)

static void leaf(uint32_t number, uint32_t last, unsigned out[4])
{
	if (number > last)
		return;
	const struct rfl_cpuid r = rfl_cpuid(number, 0);

	memcpy(out, (const unsigned[]){ r.a, r.b, r.c, r.d }, 4 * sizeof(*out));
}

void rfl_cpu_id_get(const char *root, struct rfl_cpu_id *ret)
{
	const uint32_t last = rfl_cpuid(0, 0).a, last_ext = rfl_cpuid(0x80000000u, 0).a;
	struct rfl_cpu_leaves l = { .leaf0 = { 0 } };

	(void)root;
	leaf(0, last, l.leaf0);
	leaf(1, last, l.leaf1);
	leaf(0xa, last, l.leaf_a);
	leaf(0x80000001u, last_ext, l.leaf_ext1);
	leaf(0x80000022u, last_ext, l.leaf_ext22);
	rfl_cpu_id_from_leaves(&l, ret);
}

#else

void rfl_cpu_id_get(const char *root, struct rfl_cpu_id *ret)
{
	char text[4096];
	unsigned part;

	*ret = (struct rfl_cpu_id){ .family = 0 };
	if (!rfl_machine__slurp(root, "/proc/cpuinfo", text, sizeof(text)))
		return;
	const char *at = strstr(text, "CPU implementer");

	if (!at || sscanf(at, "CPU implementer : %15s", ret->vendor) != 1)
		ret->vendor[0] = '\0';
	at = strstr(text, "CPU part");
	if (at && sscanf(at, "CPU part : %x", &part) == 1)
		ret->model = (int)part;
}

#endif
