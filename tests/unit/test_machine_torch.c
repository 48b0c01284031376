/* Where the PyTorch of an installation is, and which version it has. */
#include "tests/unit/rfl_test.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "machine/torch.h"
#include "rfl_config.h"

static void put(void **state, const char *name, const char *text)
{
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_file_mkdirs_for(tmp_path(*state, name), &err), &err);
	write_file(*state, name, text);
}

/* Nothing; then the one of the Python environment; then the one that is linked. */
static void a_link_comes_before_the_environment(void **state)
{
	struct rfl_arena *arena = rfl_arena_new();
	const char *plugins = rfl_arena_strdup(arena, tmp_path(*state, RFL_PLUGINDIR "/"));
	const char *found = rfl_torch_beside(arena, plugins);

	if (*RFL_TORCH_LIBRARY_DIR)
		assert_string_equal(found, RFL_TORCH_LIBRARY_DIR);
	else
		assert_null(found);
	put(state, "lib/python3.12/site-packages/torch/lib/libtorch_cpu.so", "");
	found = rfl_torch_beside(arena, plugins);
	assert_non_null(found);
	assert_non_null(strstr(found, "/lib/python3.12/site-packages/torch/lib"));
	put(state, "elsewhere/torch/lib/libtorch_cpu.so", "");
	put(state, "lib/roofline/engine.so", "");
	assert_int_equal(symlink("../../elsewhere/torch", tmp_path(*state, "lib/roofline/torch")),
			 0);
	found = rfl_torch_beside(arena, rfl_arena_printf(arena, "%storch-2.11/x.so", plugins));
	assert_non_null(found);
	assert_non_null(strstr(found, "/lib/roofline/torch/lib"));
	rfl_arena_free(arena);
}

static void the_version_is_major_and_minor(void **state)
{
	static const struct {
		const char *text, *version;
	} rows[] = {
		{ "from typing import Optional\n__version__ = '2.11.0+cu130'\ndebug = False\n",
		  "2.11" },
		{ "__version__ = '2.4.1'\n", "2.4" },
		{ "__version__ = '2'\n", "" },
		{ "__version__ = 'x.y'\n", "" },
		{ "debug = False\n", "" },
	};
	struct rfl_arena *arena = rfl_arena_new();
	const char *libraries = rfl_arena_strdup(arena, tmp_path(*state, "torch/lib"));

	assert_string_equal(rfl_torch_version(arena, libraries), ""); /* no file */
	put(state, "torch/lib/libtorch_cpu.so", "");
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		put(state, "torch/version.py", rows[i].text);
		assert_string_equal(rfl_torch_version(arena, libraries), rows[i].version);
	}
	rfl_arena_free(arena);
}

/* The libraries are loaded for a plugin that has no path to them, and for no other. */
static void only_plugins_of_a_version_load_libraries(void **state)
{
	const char *libraries = "lib/python3.12/site-packages/torch/lib/libtorch_cpu.so";
	struct rfl_err err = RFL_ERR_INIT;

	put(state, libraries, "not a library");
	assert_ok(rfl_torch_load(tmp_path(*state, RFL_PLUGINDIR "/engine_torch-1.13-cpu.so"), &err),
		  &err);
	assert_int_equal(rfl_torch_load(tmp_path(*state, RFL_PLUGINDIR
						 "/torch-2.11/engine_torch-2.11-cpu.so"),
					&err),
			 RFL_EUNAVAILABLE);
	assert_non_null(strstr(err.msg, libraries));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_link_comes_before_the_environment, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(the_version_is_major_and_minor, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(only_plugins_of_a_version_load_libraries,
						tmpdir_make, tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
