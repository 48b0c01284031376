/* The names of the libraries that multiply matrices: none before one is loaded, and never cut in a
 * way that overflows. */
#include "tests/unit/rfl_test.h"

#include <string.h>

#include "base/dl.h"
#include "runner/run/parts.h"

static void named_once_loaded(void **state)
{
	static const struct {
		const char *const names[3];
		const char *words;
	} rows[] = { { { "libopenblas.so.0", NULL }, "OpenBLAS 0." },
		     { { "libdnnl.so.3", "libdnnl.so.2", NULL }, "oneDNN " } };
	char text[256];
	bool loaded = false;

	(void)state;
	rfl_run_libraries(text, sizeof(text));
	assert_string_equal(text, "");
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct rfl_dl *dl = NULL;

		if (rfl_dl_open(rows[i].names, RFL_DL_LOAD, NULL, 0, &dl, NULL) != RFL_OK)
			continue;
		rfl_run_libraries(text, sizeof(text));
		assert_non_null(strstr(text, rows[i].words));
		rfl_dl_close(dl);
		loaded = true;
	}
	if (!loaded)
		skip();
	memset(text, 'x', sizeof(text));
	rfl_run_libraries(text, 8);
	assert_int_equal(strlen(text), 7);
	assert_int_equal(text[8], 'x');
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(named_once_loaded) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
