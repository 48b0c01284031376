/* Which variables and directories are places of libcupti. */
#include <stdlib.h>

#include "tests/unit/rfl_test.h"

#include "cli/inputs.h"

static void set(const char *name, const char *value)
{
	assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void assert_same(const char *got, const char *expected)
{
	if (expected)
		assert_string_equal(got ? got : "(none)", expected);
	else
		assert_null(got);
}

static void variables_name_places(void **state)
{
	static const struct {
		const char *path, *home, *cuda_path; /* NULL: not set */
		const char *expected_path, *expected_home;
	} cases[] = {
		{ NULL, NULL, NULL, NULL, NULL }, { "/a", "/b", "/c", "/a", "/b" },
		{ NULL, NULL, "/c", NULL, "/c" }, { "", "", "/c", NULL, "/c" }, /* set to nothing */
		{ "", "", "", NULL, NULL },
	};

	const struct rfl_cli cli = { .torch_dir = "/torch/lib" };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_cupti_places places;

		set("RFL_CUPTI_PATH", cases[i].path);
		set("CUDA_HOME", cases[i].home);
		set("CUDA_PATH", cases[i].cuda_path);
		places = rfl_cli_places(&cli);
		assert_same(places.path, cases[i].expected_path);
		assert_same(places.cuda_home, cases[i].expected_home);
		assert_same(places.beside, "/torch/lib");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_name_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
