/*
 * cpuid.h - internal: the instruction, on x86-64 only.
 */
#ifndef RFL_MACHINE_CPUID_H
#define RFL_MACHINE_CPUID_H

#include <stdint.h>

struct rfl_cpuid {
	uint32_t a, b, c, d;
};

#if defined(__x86_64__)
static inline struct rfl_cpuid rfl_cpuid(uint32_t leaf, uint32_t sub)
{
	struct rfl_cpuid r;

	__asm__ volatile("cpuid"
			 : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d)
			 : "a"(leaf), "c"(sub));
	return r;
}
#endif

#endif
