/* ieee.c - rounding to binary floating-point formats, on the bits of a double. */
#include "base/ieee.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

const struct rfl_ieee rfl_ieee_fp32 = { "fp32", 24, -126, 127 };
const struct rfl_ieee rfl_ieee_fp16 = { "fp16", 11, -14, 15 };
const struct rfl_ieee rfl_ieee_bf16 = { "bf16", 8, -126, 127 };

#define STORED_BITS 52 /* of the significand of a double */
#define BIAS        1023
#define INF_BITS    ((uint64_t)0x7ff << STORED_BITS)

static int exponent_of(uint64_t magnitude)
{
	return (int)(magnitude >> STORED_BITS) - BIAS;
}

double rfl_ieee_round(const struct rfl_ieee *format, double x)
{
	uint64_t bits, sign, magnitude, unit;
	int exponent, drop;

	memcpy(&bits, &x, sizeof(bits));
	sign = bits & (uint64_t)1 << 63;
	magnitude = bits ^ sign;
	if (magnitude >= INF_BITS)
		return x;
	exponent = exponent_of(magnitude);
	/* below the normal numbers the last place no longer moves with the exponent */
	drop = STORED_BITS + 1 - format->bits +
	       (exponent < format->least ? format->least - exponent : 0);
	if (drop > STORED_BITS + 1) { /* less than half of the smallest subnormal number */
		magnitude = 0;
	} else if (drop == STORED_BITS + 1) { /* between half of it and all of it */
		const uint64_t half = (uint64_t)(exponent + BIAS) << STORED_BITS;

		magnitude = magnitude > half ? half + ((uint64_t)1 << STORED_BITS) : 0;
	} else {
		/* a carry out of the significand is the next exponent, as it must be */
		unit = (uint64_t)1 << drop;
		/* the hidden one is the last place of the smallest subnormal number */
		magnitude += unit / 2 - 1 + (drop == STORED_BITS ? 1 : magnitude >> drop & 1);
		magnitude &= ~(unit - 1);
	}
	if (magnitude && exponent_of(magnitude) > format->most)
		magnitude = INF_BITS;
	bits = sign | magnitude;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* The exponent field is biased by `most`; all ones mean infinity or no number. */
uint32_t rfl_ieee_pack(const struct rfl_ieee *format, double x)
{
	const int fraction = format->bits - 1;
	const uint32_t ones = 2 * (uint32_t)format->most + 1;
	const uint32_t sign = signbit(x) ? (ones + 1) << fraction : 0;
	int exponent = format->least;

	x = fabs(rfl_ieee_round(format, x));
	if (!isfinite(x))
		return sign | ones << fraction | (isnan(x) ? 1u << (fraction - 1) : 0);
	if (x >= ldexp(1, format->least))
		exponent = ilogb(x);
	/* the leading 1 of a normal number adds 1 to its exponent, so the field is biased by one
	 * less */
	return sign | (((uint32_t)(exponent + format->most - 1) << fraction) +
		       (uint32_t)ldexp(x, fraction - exponent));
}

double rfl_ieee_spacing(const struct rfl_ieee *format, double x)
{
	int exponent = format->least;

	if (x != 0) {
		(void)frexp(x, &exponent);
		exponent--; /* frexp() returns a fraction from 1/2 to 1 */
	}
	if (exponent < format->least)
		exponent = format->least;
	return ldexp(1, exponent + 1 - format->bits);
}
