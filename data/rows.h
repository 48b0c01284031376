/*
 * rows.h - inside data/: the two loops over rows of pixels that resizing spends its time in,
 * compiled for several instruction sets. All give the same bytes.
 */
#ifndef RFL_DATA_ROWS_H
#define RFL_DATA_ROWS_H

#include <stddef.h>
#include <stdint.h>

#define RFL_WEIGHT_BITS 22 /* 32 - 8 bits of the pixels - 2 of head room, as Pillow has it */

struct rfl_rows {
	const char *name;
	/** out[x] = the sum over i of weights[i] * in[i * step + x], in RFL_WEIGHT_BITS fixed
	 * point, rounded and kept within 0 to 255; x from 0 to n - 1. Weights are 0 or more. */
	void (*sum)(const uint8_t *in, size_t step, const int32_t *weights, int count, size_t n,
		    uint8_t *out);
	/** n pixels of three bytes become three rows, `plane` bytes apart. */
	void (*split)(const uint8_t *pixels, size_t n, size_t plane, uint8_t *out);
};

/** The fastest that this processor can run. */
const struct rfl_rows *rfl_rows_best(void);

/** For tests: all that this processor can run, from 0; NULL past the last. */
const struct rfl_rows *rfl_rows__at(size_t i);

#endif
