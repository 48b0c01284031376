/*
 * selftest_impl.h - between the work of the self-test (selftest_work.c) and its counting
 * (selftest.c).
 */
#ifndef RFL_PROFILE_SELFTEST_IMPL_H
#define RFL_PROFILE_SELFTEST_IMPL_H

#include "profile/cupti/cuda_api.h"
#include "profile/cupti/selftest.h"
#include "profile/cupti/selftest_ptx.h"
#include "profile/source.h"

struct rfl_selftest_product {
	const struct rfl_selftest_kernel *kernel; /* NULL: none is made */
	struct rfl_cuda_module *module;
	struct rfl_cuda_function *function;
	rfl_cuda_address a, b, c;
	double flops; /* of one launch */
};

struct rfl_selftest_work {
	struct rfl_cuda *cuda;
	const struct rfl_cuda_functions *calls;
	struct rfl_cuda_module *copy_module;
	struct rfl_cuda_function *copy_function;
	rfl_cuda_address from, to;
	size_t copy_bytes;     /* of one copy; 0: none is made */
	size_t copies;         /* of a range */
	char copy_reason[160]; /* why none is made */
	struct rfl_selftest_product product;
};

/* Memory, kernels and inputs of what a set counts, with everything run once and the products
 * compared with the host's. Release with _fini(), also after a failure. */
enum rfl_rc rfl_selftest__work_init(struct rfl_selftest_work *w, struct rfl_cuda *cuda,
				    const char *precision, unsigned set,
				    struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_selftest__work_fini(struct rfl_selftest_work *w);

/* A range "copy", and one of each kernel's name: run() of a workload. */
enum rfl_rc rfl_selftest__work_run(void *ctx, struct rfl_ranges *ranges,
				   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
