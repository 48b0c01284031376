/*
 * kernels_plain.c - the loops over arrays in C, for processors that have no loop of their own here.
 * Chains are not among them: whether a compiler keeps chains in registers is not for us to say.
 */
#include <string.h>

#include "peaks/kernels_impl.h"

#if RFL_KERNELS_PLAIN

void rfl_kernel__read_plain(struct rfl_kernel_arrays *k)
{
	uint64_t result = 0;

	for (size_t pass = 0; pass < k->passes; pass++) {
		for (size_t i = 0; i < k->n; i++) {
			uint64_t word;

			memcpy(&word, &k->b[i], sizeof(word));
			result ^= word;
		}
	}
	k->result = result;
}

void rfl_kernel__copy_plain(struct rfl_kernel_arrays *k)
{
	double *restrict const a = k->a;
	const double *restrict const b = k->b;

	for (size_t pass = 0; pass < k->passes; pass++) {
		/* by index and not memcpy(), which may use non-temporal stores */
		for (size_t i = 0; i < k->n; i++) {
			a[i] = b[i];
			__asm__ volatile("" ::: "memory");
		}
	}
}

void rfl_kernel__triad_plain(struct rfl_kernel_arrays *k)
{
	double *restrict const a = k->a;
	const double *restrict const b = k->b;
	const double *restrict const c = k->c;
	const double scale = k->scale;

	for (size_t pass = 0; pass < k->passes; pass++) {
		for (size_t i = 0; i < k->n; i++)
			a[i] = b[i] + scale * c[i];
	}
}

#else
typedef int rfl_kernels_plain_not_built; /* a translation unit must not be empty */
#endif
