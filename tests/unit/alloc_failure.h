/*
 * alloc_failure.h - every allocation of an operation fails once, the first, the second, ...: the
 * operation says RFL_ENOMEM, hands nothing out, leaks nothing; and when none fails it succeeds.
 *
 * For tests called test_<room>_alloc_failure: CMakeLists.txt gives them alloc_failure.c, to which
 * the linker sends the allocation functions (--wrap).
 */
#ifndef RFL_TESTS_ALLOC_FAILURE_H
#define RFL_TESTS_ALLOC_FAILURE_H

#include <stddef.h>

#include "base/err.h"

struct alloc_operation {
	const char *name;
	enum rfl_rc (*run)(struct rfl_err *err);
	size_t least; /**< allocations, so that the loop cannot be empty */
};

/** To be called once, before anything else. */
void watch_allocations(void);

void assert_each_allocation_fails(const struct alloc_operation *op);

/** It succeeds; how many allocations it makes. */
size_t count_allocations(const struct alloc_operation *op);

/** It succeeds without a single allocation; `least` is not checked. */
void assert_no_allocation(const struct alloc_operation *op);

#endif
