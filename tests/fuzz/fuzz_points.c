/* roofline_points.csv: what was read and written reads back to the same text. */
#include <string.h>

#include "fuzz.h"
#include "roofline/points.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_points *once = NULL, *twice = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf a, b;
	const char *path = fuzz_memory(data, size);
	enum rfl_rc rc = rfl_points_load(path, &once, &err);

	fuzz_check(rc, once, &err, path);
	if (rc != RFL_OK)
		return 0;
	rfl_buf_init(&a, 0);
	rfl_buf_init(&b, 0);
	rfl_points_write(&a, once);
	FUZZ_ASSERT(!a.failed);
	FUZZ_ASSERT(rfl_points_load(fuzz_memory((const uint8_t *)a.data, a.len), &twice, &err) ==
		    RFL_OK);
	FUZZ_ASSERT(twice->n == once->n);
	rfl_points_write(&b, twice);
	FUZZ_ASSERT(strcmp(rfl_buf_str(&a), rfl_buf_str(&b)) == 0);
	rfl_buf_fini(&a);
	rfl_buf_fini(&b);
	rfl_points_free(once);
	rfl_points_free(twice);
	return 0;
}
