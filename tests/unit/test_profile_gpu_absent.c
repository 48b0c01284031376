/*
 * test_profile_gpu_absent.c - counters of a GPU where there is none: the reason and the fix, and
 * no library of CUDA is left in the process.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "profile/source.h"
#include "tests/unit/rfl_test.h"

static bool is_mapped(const char *word)
{
	struct rfl_buf maps;
	bool found;

	rfl_buf_init(&maps, 0);
	assert_int_equal(rfl_file_read("/proc/self/maps", &maps, NULL), RFL_OK);
	found = strstr(rfl_buf_str(&maps), word) != NULL;
	rfl_buf_fini(&maps);
	return found;
}

static enum rfl_rc run(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	(void)ctx;
	(void)ranges;
	(void)err;
	fail_msg("there is nothing to count, and the workload was run");
	return RFL_OK;
}

static void the_source_says_why(void **state)
{
	const struct rfl_source_request request = { .sets = RFL_SET_CORE | RFL_SET_KERNELS };
	const struct rfl_workload workload = { .run = run };
	const struct rfl_source_ops *source = NULL;
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	rfl_captures_init(&to);
	assert_ok(rfl_source_for("cuda", &source, &err), &err);
	assert_string_equal(source->name, "cupti");
	assert_int_equal(source->probe(&request, &err), RFL_EUNAVAILABLE);
	assert_says(&err, "no NVIDIA driver was found");
	assert_says(&err, "install the NVIDIA driver");
	rfl_err_clear(&err);
	assert_int_equal(source->measure(&request, &workload, &to, &err), RFL_EUNAVAILABLE);
	assert_says(&err, "no NVIDIA driver was found");
	assert_int_equal(to.n, 0);
	assert_false(is_mapped("libcupti"));
	assert_false(is_mapped("libcudart"));
	rfl_captures_fini(&to);
}

static void the_check_tells_the_first_thing_that_is_missing(void **state)
{
	const struct rfl_gpu_check_request request = { .self_test = true,
						       .places = { .path = "/nonexistent" } };
	struct rfl_gpu_check *check = NULL;
	const struct rfl_gpu_check_row *rows;
	size_t n = 0, skipped = 0;

	(void)state;
	check = rfl_gpu_check_new(&request);
	rows = check->rows;
	n = check->n;
	assert_string_equal(rows[0].what, "driver");
	assert_int_equal(rows[0].state, RFL_GPU_CHECK_FAILED);
	assert_non_null(strstr(rows[0].reason, "libcuda.so.1"));
	assert_non_null(strstr(rows[0].reason, "install the NVIDIA driver"));
	assert_string_equal(rows[2].what, "CUPTI");
	assert_int_equal(rows[2].state, RFL_GPU_CHECK_FAILED);
	assert_non_null(strstr(rows[2].reason, "/nonexistent"));
	assert_non_null(strstr(rows[2].reason, "install CUPTI"));
	for (size_t i = 0; i < n; i++) {
		skipped += rows[i].state == RFL_GPU_CHECK_SKIPPED;
		assert_true(rows[i].state != RFL_GPU_CHECK_OK);
		assert_true(rows[i].state != RFL_GPU_CHECK_SKIPPED || rows[i].reason != NULL);
	}
	assert_int_equal(skipped, n - 2);
	rfl_gpu_check_free(check);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_source_says_why),
		cmocka_unit_test(the_check_tells_the_first_thing_that_is_missing),
	};

	if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
		printf("there is a driver here\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
