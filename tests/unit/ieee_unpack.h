/* ieee_unpack.h - the number with given bits of a format: the inverse of rfl_ieee_pack(). */
#ifndef RFL_TESTS_IEEE_UNPACK_H
#define RFL_TESTS_IEEE_UNPACK_H

#include <math.h>

#include "base/ieee.h"

static inline double ieee_unpack(const struct rfl_ieee *format, uint32_t bits)
{
	const int fraction = format->bits - 1;
	const uint32_t ones = 2 * (uint32_t)format->most + 1;
	const uint32_t field = bits >> fraction & ones;
	const uint32_t low = bits & ((1u << fraction) - 1);
	const double sign = bits >> fraction & (ones + 1) ? -1 : 1;

	if (field == ones)
		return low ? (double)NAN : sign * (double)INFINITY;
	if (field == 0)
		return sign * ldexp(low, format->least - fraction);
	return sign * ldexp(low | 1u << fraction, (int)field - format->most - fraction);
}

#endif
