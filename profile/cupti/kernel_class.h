/*
 * kernel_class.h - what a GPU kernel is by its name: a matrix product, an elementwise operation, a
 * copy. For shares of time where nothing could be counted.
 */
#ifndef RFL_PROFILE_KERNEL_CLASS_H
#define RFL_PROFILE_KERNEL_CLASS_H

#include <stdbool.h>

enum rfl_kernel_class {
	RFL_KERNEL_MATRIX, /**< matrix product, convolution, attention */
	RFL_KERNEL_NORMALISATION,
	RFL_KERNEL_OPTIMIZER,
	RFL_KERNEL_REDUCTION,
	RFL_KERNEL_POOLING,
	RFL_KERNEL_ELEMENTWISE,
	RFL_KERNEL_COPY, /**< moves data: no FLOPs */
	RFL_KERNEL_COLLECTIVE,
	RFL_KERNEL_OTHER,
	RFL_KERNEL_CLASSES,
};

struct rfl_kernel_class_info {
	const char *name; /**< "matrix products", "elementwise", ... */
	bool only_moves;  /**< no arithmetic on floating-point numbers */
};
extern const struct rfl_kernel_class_info rfl_kernel_classes[RFL_KERNEL_CLASSES];

/**
 * @param name  demangled or not, with or without template arguments. The kernel's own name is
 * checked first, its template arguments after it.
 */
enum rfl_kernel_class rfl_kernel_classify(const char *name);

#endif
