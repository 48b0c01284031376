/* twins.h - the kernels as functions of the CPU, for tests and for a driver that is not a GPU's. */
#ifndef RFL_RUNNER_PLANNED_CUDA_TWINS_H
#define RFL_RUNNER_PLANNED_CUDA_TWINS_H

#include <stddef.h>

struct rfl_twin {
	const char *name; /**< as NVRTC's, "rfl_k_add_floats" */
	size_t argument_bytes;
	/** Run all units. @param argument  its struct of arguments.h */
	void (*run)(const void *argument);
};

/** NULL: there is no such kernel. */
const struct rfl_twin *rfl_twin_find(const char *name);

#endif
