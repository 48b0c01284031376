/*
 * test_peaks_gpu_abi.c - what peaks/gpu_matmul.h declares of cuBLASLt is what NVIDIA's header
 * declares.
 */
#include <stddef.h>
#include <stdio.h>

#include "tests/unit/rfl_test.h"

#ifdef RFL_TEST_CUBLASLT_HEADERS
#include <cublasLt.h>

#include "base/compiler.h"
#include "peaks/gpu_matmul.h"

#define NUMBER(id, theirs, value) { #theirs, RFL_LT_##id, theirs },
#define OFFSET(ours, theirs)                                              \
	{                                                                 \
#theirs, offsetof(struct rfl_lt_candidate, ours),         \
			offsetof(cublasLtMatmulHeuristicResult_t, theirs) \
	}
static const struct {
	const char *what;
	size_t ours, theirs;
} pairs[] = {
	RFL_LT_NUMBERS(NUMBER){ "cublasLtMatmulAlgo_t", sizeof(struct rfl_lt_algorithm),
				sizeof(cublasLtMatmulAlgo_t) },
	{ "cublasLtMatmulHeuristicResult_t", sizeof(struct rfl_lt_candidate),
	  sizeof(cublasLtMatmulHeuristicResult_t) },
	OFFSET(algorithm, algo),
	OFFSET(workspace_bytes, workspaceSize),
	OFFSET(state, state),
	OFFSET(waves, wavesCount),
	{ "CUBLASLT_MATMUL_DESC_TRANSA", sizeof(int32_t), sizeof(cublasOperation_t) },
};

static void numbers_and_layouts_are_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(pairs); i++)
		if (pairs[i].ours != pairs[i].theirs)
			fail_msg("%s: %zu here, %zu in NVIDIA's header", pairs[i].what,
				 pairs[i].ours, pairs[i].theirs);
}

/* It compiles: the header declares a function of every symbol that is looked up. */
#define DECLARED(member, symbol, arguments) sizeof(&symbol) == sizeof(void (*)(void)) &&
static void functions_are_declared(void **state)
{
	(void)state;
	assert_true(RFL_LT_FUNCTIONS(DECLARED) sizeof(&cublasLtGetVersion) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_layouts_are_the_same),
		cmocka_unit_test(functions_are_declared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	puts("skipped: no cublasLt.h was found when this was configured");
	return 77;
}

#endif
