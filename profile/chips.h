/*
 * chips.h - NVIDIA chips by CUPTI name, with compute capability, products, and the family whose
 * formulas determine what can be counted on it.
 */
#ifndef RFL_PROFILE_CHIPS_H
#define RFL_PROFILE_CHIPS_H

#include <stddef.h>

#include "base/buf.h"

struct rfl_chip {
	const char *name;     /**< "GH100" */
	int capability;       /**< 90 */
	const char *family;   /**< family of its formulas: "hopper" */
	const char *products; /**< "H100, H200, GH200"; NULL: unknown */
};

/** The i-th chip, oldest first; NULL past the end. */
const struct rfl_chip *rfl_chip_at(size_t i);
/** Find a chip by its name, ignoring case; NULL: unknown. */
const struct rfl_chip *rfl_chip_find(const char *name);
/** Find a chip by product. Case, blanks and punctuation are ignored, and leading words may be
 * missing ("rtx4090", "4090" for "RTX 4090"). NULL: unknown. */
const struct rfl_chip *rfl_chip_of_product(const char *text);

/** Find a chip by its own name, by the name of a device, or by product; NULL: unknown. */
const struct rfl_chip *rfl_chip_of_text(const char *text);

/** Append up to four chips and products similar to a text, most similar first. @return their number
 */
size_t rfl_chip_suggest(const char *text, struct rfl_buf *out);

/** Find a chip by the device name that a driver or profiler reports ("NVIDIA H100 80GB HBM3"),
 * otherwise the first chip of this compute capability (0: unknown). */
const struct rfl_chip *rfl_chip_of_device(const char *device, int capability);

#endif
