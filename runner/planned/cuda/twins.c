/* twins.c - the kernels, compiled for the CPU. */
#include "runner/planned/cuda/twins.h"

#include <string.h>

#include "complexity/plan/plan.h"
#include "runner/planned/cuda/arguments.h"
#include "runner/planned/cuda/kernel_elements.h"
#include "runner/planned/cuda/kernel_norm.h"
#include "runner/planned/cuda/kernel_pool.h"
#include "runner/planned/cuda/kernel_rows.h"
#include "runner/planned/cuda/kernel_update.h"

_Static_assert((int)RELU == (int)RFL_PLAN_RELU && (int)RELU6 == (int)RFL_PLAN_RELU6,
	       "kernel_values.h repeats them");

#define RUN(name)                                                     \
	static void run_##name(const void *argument)                  \
	{                                                             \
		rfl_k_##name(*(const struct rfl_k_##name *)argument); \
	}
RFL_KERNELS(RUN)

#define ROW(name) { "rfl_k_" #name, sizeof(struct rfl_k_##name), run_##name },
static const struct rfl_twin twins[] = { RFL_KERNELS(ROW) };

const struct rfl_twin *rfl_twin_find(const char *name)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(twins); i++)
		if (strcmp(twins[i].name, name) == 0)
			return &twins[i];
	return NULL;
}
