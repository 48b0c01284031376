/*
 * chips.h - NVIDIA's chips by the names that CUPTI gives them: compute capability, and the products
 * that they are sold in. What can be counted on them is in the formulas of their families.
 */
#ifndef RFL_PROFILE_CHIPS_H
#define RFL_PROFILE_CHIPS_H

#include <stddef.h>

struct rfl_chip {
	const char *name;     /**< "GH100" */
	int capability;       /**< 90 */
	const char *products; /**< "H100, H200, GH200": by commas; NULL: not known */
};

/** The i-th chip, oldest first; NULL past the end. */
const struct rfl_chip *rfl_chip_at(size_t i);

/** By name, without case; NULL: not known. */
const struct rfl_chip *rfl_chip_find(const char *name);

/** By the product that it is sold in, as people write it: case, blanks and signs do not count, and
 * words in front may be missing ("rtx4090", "4090" for "RTX 4090"). NULL: not known. */
const struct rfl_chip *rfl_chip_of_product(const char *text);

/** By the name that the driver or a profiler gives ("NVIDIA H100 80GB HBM3"), or, where that says
 * nothing, by its compute capability (0: not known): the first chip that has it. */
const struct rfl_chip *rfl_chip_of_device(const char *device, int capability);

#endif
