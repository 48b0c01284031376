/* Where a library of CUDA is searched: a toolkit, and the wheels of the PyTorch that is linked. */
#include "tests/unit/rfl_test.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "machine/cuda.h"

static const char *touch(void **state, const char *name)
{
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_file_mkdirs_for(tmp_path(*state, name), &err), &err);
	return write_file(*state, name, "");
}

static void candidates_are_in_order(void **state)
{
	struct rfl_arena *arena = rfl_arena_new();
	const char *names[8];
	struct rfl_cuda_places places = { .cuda_home = tmp_path(*state, "cuda") };
	char linked[4096];

	touch(state, "site/nvidia/cublas/lib/libcublasLt.so.12");
	touch(state, "cuda/lib64/libcublasLt.so.13");
	touch(state, "site/nvidia/cu13/lib/libcublasLt.so.13");
	touch(state, "site/torch/lib/libcublasLt.so.11");
	/* an installation has a link to the directory of a PyTorch, which may be a link itself */
	touch(state, "lib/roofline/plugin.so");
	assert_int_equal(symlink("../../site/torch", tmp_path(*state, "lib/roofline/torch")), 0);
	snprintf(linked, sizeof(linked), "%s", tmp_path(*state, "lib/roofline/torch/lib"));
	places.beside = linked;

	/* the machine's own toolkit, if it has one, comes last */
	assert_true(rfl_cuda_library(arena, "libcublasLt.so.13", "cublas", &places, names, 8) >= 3);
	assert_string_equal(names[0], "libcublasLt.so.13");
	assert_non_null(strstr(names[1], "/cuda/lib64/libcublasLt.so.13"));
	assert_non_null(strstr(names[2], "torch/lib/../../nvidia/cu13/lib/libcublasLt.so.13"));
	assert_true(rfl_cuda_library(arena, "libcublasLt.so.12", "cublas", &places, names, 8) >= 2);
	assert_non_null(strstr(names[1], "/nvidia/cublas/lib/libcublasLt.so.12"));
	assert_true(rfl_cuda_library(arena, "libcublasLt.so.11", "cublas", &places, names, 8) >= 2);
	assert_non_null(strstr(names[1], "torch/lib/./libcublasLt.so.11"));
	assert_int_equal(rfl_cuda_library(arena, "libcublasLt.so.13", "cublas", &places, names, 2),
			 2);
	rfl_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(candidates_are_in_order, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
