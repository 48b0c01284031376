/*
 * test_profile_selftest_ptx.c - the kernels of the self-test as NVIDIA's assembler takes them, for
 * every architecture that can be counted.
 */
#include <stdio.h>

#include "base/proc.h"
#include "profile/cupti/impl.h"
#include "tests/unit/rfl_test.h"

static bool assemble(const char *ptx, const char *out, int capability, char *why, size_t size)
{
	char arch[16];
	const char *const argv[] = { "ptxas", "-arch", arch, ptx, "-o", out, NULL };
	struct rfl_proc_spec spec = {
		.argv = argv, .capture_stdout = true, .capture_stderr = true, .timeout_s = 120
	};
	struct rfl_proc_result result;
	struct rfl_err err = RFL_ERR_INIT;
	bool fine;

	snprintf(arch, sizeof(arch), "sm_%d", capability);
	if (rfl_proc_run(&spec, &result, &err) != RFL_OK) {
		snprintf(why, size, "%.*s", (int)size - 1, err.msg);
		return false;
	}
	fine = result.exited && result.exit_code == 0;
	snprintf(why, size, "%s%s", rfl_buf_str(&result.out), rfl_buf_str(&result.err));
	rfl_proc_result_fini(&result);
	return fine;
}

static bool has_ptxas(void)
{
	const char *const argv[] = { "ptxas", "--version", NULL };
	struct rfl_proc_spec spec = { .argv = argv, .capture_stdout = true };
	struct rfl_proc_result result;
	bool here = rfl_proc_run(&spec, &result, NULL) == RFL_OK;

	rfl_proc_result_fini(&result);
	return here;
}

static void is_taken(void **state, const char *name, struct rfl_buf *ptx, int least)
{
	static const int capabilities[] = { 75, 80, 86, 89, 90, 100, 120 };
	const char *path = write_file(*state, name, rfl_buf_str(ptx));
	char why[2048];

	rfl_buf_fini(ptx);
	for (size_t c = 0; c < RFL_ARRAY_LEN(capabilities); c++)
		if (capabilities[c] >= least &&
		    !assemble(path, tmp_path(*state, "cubin"), capabilities[c], why, sizeof(why)))
			fail_msg("%s for sm_%d: %s", name, capabilities[c], why);
}

static void the_assembler_takes_the_kernels(void **state)
{
	const struct rfl_selftest_kernel *k;
	struct rfl_buf ptx;

	for (size_t i = 0; (k = rfl_selftest_kernel_at(i)); i++) {
		rfl_buf_init(&ptx, 0);
		rfl_selftest_ptx(k, &ptx);
		is_taken(state, k->name, &ptx, k->min_capability);
	}
	rfl_buf_init(&ptx, 0);
	rfl_selftest_copy_ptx(&ptx);
	is_taken(state, RFL_SELFTEST_COPY, &ptx, 75);
}

static void each_precision_has_its_kernels(void **state)
{
	static const struct {
		const char *precision;
		enum rfl_quantity quantity;
	} rows[] = {
		{ "fp32", RFL_QUANTITY_FLOPS_TENSOR_TF32 },
		{ "tf32", RFL_QUANTITY_FLOPS_TENSOR_TF32 },
		{ "amp", RFL_QUANTITY_FLOPS_TENSOR_FP16 },
		{ "fp16", RFL_QUANTITY_FLOPS_TENSOR_FP16 },
		{ "bf16", RFL_QUANTITY_FLOPS_TENSOR_BF16 },
	};
	const struct rfl_selftest_kernel *k;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		size_t plain = 0, matrix = 0;

		for (size_t n = 0; (k = rfl_selftest_kernel_at(n)); n++) {
			const unsigned set = rfl_metric_set_of(k->quantity, rows[i].precision);

			plain += set == RFL_SET_FLOPS && k->quantity == RFL_QUANTITY_FLOPS_FP32;
			matrix += set == RFL_SET_CORE && k->quantity == rows[i].quantity;
		}
		assert_int_equal(plain, 1);
		assert_int_equal(matrix, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_precision_has_its_kernels),
		cmocka_unit_test_setup_teardown(the_assembler_takes_the_kernels, tmpdir_make,
						tmpdir_remove),
	};

	if (!has_ptxas()) {
		printf("ptxas is not here: the CUDA toolkit brings it\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
