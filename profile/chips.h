/*
 * chips.h - NVIDIA's chips by CUPTI's names: compute capability and products. The formulas of their
 * families say what can be counted on them.
 */
#ifndef RFL_PROFILE_CHIPS_H
#define RFL_PROFILE_CHIPS_H

#include <stddef.h>

struct rfl_chip {
	const char *name;     /**< "GH100" */
	int capability;       /**< 90 */
	const char *products; /**< "H100, H200, GH200"; NULL: unknown */
};

/** The i-th chip, oldest first; NULL past the end. */
const struct rfl_chip *rfl_chip_at(size_t i);

/** By name, ignoring case; NULL: unknown. */
const struct rfl_chip *rfl_chip_find(const char *name);

/** By product. Case, blanks and punctuation are ignored, and leading words may be missing
 * ("rtx4090", "4090" for "RTX 4090"). NULL: unknown. */
const struct rfl_chip *rfl_chip_of_product(const char *text);

/** By the device name of a driver or profiler ("NVIDIA H100 80GB HBM3"), otherwise the first chip
 * of this compute capability (0: unknown). */
const struct rfl_chip *rfl_chip_of_device(const char *device, int capability);

#endif
