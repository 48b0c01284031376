/* ieee.h - rounding to binary floating-point formats that C does not have, by integers. */
#ifndef RFL_BASE_IEEE_H
#define RFL_BASE_IEEE_H

#include <stdint.h>

/** A binary format of IEEE 754 or like it. */
struct rfl_ieee {
	const char *name;
	int bits;        /**< of the significand, with the hidden one */
	int least, most; /**< exponents of the smallest normal number and of the largest */
};

extern const struct rfl_ieee rfl_ieee_fp32, rfl_ieee_fp16, rfl_ieee_bf16;

/** Round a number to a format, to nearest and ties to even, with its subnormal numbers and
 * infinities. The sum of two numbers of a format in double, rounded to it, is its own sum, because
 * double has more than twice its digits. */
double rfl_ieee_round(const struct rfl_ieee *format, double x);

/** Round a number to a format, and return its bits: sign, exponent, fraction. */
uint32_t rfl_ieee_pack(const struct rfl_ieee *format, double x);

/** The distance from |x| to the next larger number of the format; x is finite. */
double rfl_ieee_spacing(const struct rfl_ieee *format, double x);

#endif
