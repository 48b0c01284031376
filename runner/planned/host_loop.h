/*
 * host_loop.h - what the loops of host.c and host_norm.c share. Inner loops are inlined, with the
 * type of the data a constant, into functions over a range of elements, which are compiled for
 * several instruction sets. OpenMP regions are in other functions, because the compiler moves a
 * region to a function of its own, which would not be compiled for them.
 */
#ifndef RFL_RUNNER_PLANNED_HOST_LOOP_H
#define RFL_RUNNER_PLANNED_HOST_LOOP_H

#include <omp.h>

#include "runner/planned/host.h"

#define LOOP_INLINE static inline __attribute__((always_inline))

/* Clones need ifunc, whose resolvers run before the thread sanitizer is ready. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && \
	!defined(__SANITIZE_THREAD__)
#define LOOP_CLONES \
	__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) static
#else
#define LOOP_CLONES static
#endif

/* Call a loop with its type as a constant. */
#define LOOP_TYPED(loop, type, ...)                       \
	do {                                              \
		if ((type) == RFL_HOST_BF16)              \
			loop(RFL_HOST_BF16, __VA_ARGS__); \
		else                                      \
			loop(RFL_HOST_F32, __VA_ARGS__);  \
	} while (0)

union loop_word {
	float value;
	uint32_t bits;
};

LOOP_INLINE float loop_load(enum rfl_host_type type, const void *p, int64_t i)
{
	union loop_word w;

	if (type == RFL_HOST_F32)
		return ((const float *)p)[i];
	w.bits = (uint32_t)((const uint16_t *)p)[i] << 16;
	return w.value;
}

/* Rounds to nearest, ties to even. */
LOOP_INLINE void loop_store(enum rfl_host_type type, void *p, int64_t i, float value)
{
	const union loop_word w = { .value = value };
	const uint32_t rounded = w.bits + 0x7fff + (w.bits >> 16 & 1);
	const uint32_t bits = value != value ? w.bits | 0x400000 : rounded;

	if (type == RFL_HOST_F32)
		((float *)p)[i] = value;
	else
		((uint16_t *)p)[i] = (uint16_t)(bits >> 16);
}

struct loop_range {
	int64_t first, end;
};

/* The calling thread's part of n elements, in whole units. */
static inline struct loop_range loop_share(int64_t n, int64_t unit)
{
	const int64_t units = (n + unit - 1) / unit, threads = omp_get_num_threads();
	const int64_t t = omp_get_thread_num(), end = units * (t + 1) / threads * unit;

	return (struct loop_range){ units * t / threads * unit, end < n ? end : n };
}

#endif
