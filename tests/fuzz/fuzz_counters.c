/* counters.csv: load, write, load, write gives the same text; every rendering of it is made. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"
#include "report/captures.h"
#include "profile/capture.h"

static void check_amounts(const struct rfl_amount *amount)
{
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		FUZZ_ASSERT(isnan(amount[q].value) ==
			    (amount[q].validity == RFL_VALID_UNAVAILABLE));
}

static void check_renderings(const struct rfl_captures *c)
{
	for (int format = RFL_FORMAT_TABLE; format <= RFL_FORMAT_MD; format++)
		for (int by = RFL_CAPTURE_BY_KERNEL; by <= RFL_CAPTURE_BY_METRIC; by++) {
			const struct rfl_capture_view view = {
				.format = (enum rfl_format)format,
				.by = (enum rfl_capture_by)by,
				.explain = true,
			};
			struct rfl_buf out;
			json_t *document = NULL;

			rfl_buf_init(&out, 0);
			rfl_captures_render(c, &view, &out);
			FUZZ_ASSERT(!out.failed);
			if (format == RFL_FORMAT_JSON)
				FUZZ_ASSERT(rfl_json_loads(out.data, out.len, "json", &document,
							   NULL) == RFL_OK);
			json_decref(document);
			rfl_buf_fini(&out);
		}
}

static void check_again(const struct rfl_captures *c)
{
	struct rfl_captures again;
	struct rfl_buf one, two;

	rfl_buf_init(&one, 0);
	rfl_buf_init(&two, 0);
	rfl_captures_init(&again);
	rfl_counters_write(&one, c, true);
	FUZZ_ASSERT(rfl_counters_load("again", one.data, one.len, &again, NULL) == RFL_OK);
	rfl_counters_write(&two, &again, true);
	FUZZ_ASSERT(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
	rfl_captures_fini(&again);
	rfl_buf_fini(&two);
	rfl_buf_fini(&one);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_captures c;
	struct rfl_err err = RFL_ERR_INIT;
	const char *path = fuzz_memory(data, size);
	enum rfl_rc rc;

	rfl_captures_init(&c);
	rc = rfl_counters_load(path, NULL, 0, &c, &err);
	fuzz_check(rc, rc == RFL_OK ? &c : NULL, &err, path);
	FUZZ_ASSERT(rc == RFL_OK || c.n == 0);
	for (size_t i = 0; i < c.n; i++) {
		check_amounts(c.captures[i]->total);
		for (size_t k = 0; k < c.captures[i]->nranges; k++)
			check_amounts(c.captures[i]->ranges[k].amount);
	}
	if (rc == RFL_OK && fuzz_due(data, size, 0))
		check_renderings(&c);
	if (rc == RFL_OK && fuzz_due(data, size, 1))
		check_again(&c);
	rfl_captures_fini(&c);
	return 0;
}
