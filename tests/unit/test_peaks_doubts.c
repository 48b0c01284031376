/* Doubts as one line for each environment and cause, only of the ceilings in use. */
#include "tests/unit/rfl_test.h"

#include <string.h>

#include "peaks/peaks.h"

#define MEASURED(value, doubts)                                                      \
	"{\"status\": \"measured\", \"value\": " value ", \"method\": {\"kernel\": " \
	"\"k\", \"tool\": \"t\", \"measured_at\": \"2026-01-01T00:00:00Z\"}, "       \
	"\"stats\": {\"n\": 3, \"median\": " value ", \"max\": " value "}, "         \
	"\"conditions\": {\"doubts\": [" doubts "]}}"
#define BUSY "\"disturbed: in 3 of 3 repeats\", \"not repeatable: by 9 %\""

static const char file[] =
	"{\"schema_version\": \"1.0\", \"environments\": {\"lab\": {\"kind\": \"cpu\", "
	"\"device\": {\"name\": \"d\", \"units\": 2}, \"compute\": {"
	"\"fp32.vector\": " MEASURED(
		"100",
		BUSY) ", "
		      "\"fp32.vector.1core\": " MEASURED(
			      "200",
			      BUSY) ", "
				    "\"fp64.vector\": " MEASURED(
					    "50",
					    BUSY) ", "
						  "\"bf16.vector\": " MEASURED(
							  "100",
							  "\"written by hand\"") ", "
										 "\"int8.vector\":"
										 " " MEASURED(
											 "100",
											 BUSY) "}, "
											       "\"m"
											       "emo"
											       "ry"
											       "\":"
											       " [{"
											       "\"l"
											       "eve"
											       "l\""
											       ": "
											       "\"D"
											       "RAM"
											       "\","
											       " "
											       "\"s"
											       "cop"
											       "e\""
											       ": "
											       "\"n"
											       "ode"
											       "\","
											       " \""
											       "gbs"
											       "\":"
											       " " MEASURED(
												       "40",
												       "\"arrays of half the size are 9 % "
												       "faster\", \"other programs used 20 %\"") "}]}, "
																		 "\"short\": {\"peak_gflops\": 1, \"peak_gbps\": 1}}}";

static void one_line_for_each_cause(void **state)
{
	static const struct rfl_peaks_ref used[] = {
		{ "lab", "DRAM" }, { "short", "fp32.vector" }, { "lab", "fp32.vector" },
		{ "lab", "DRAM" }, { NULL, "DRAM" },           { "lab", NULL },
	};
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf lines;

	(void)state;
	rfl_buf_init(&lines, 0);
	assert_ok(rfl_peaks_loads(file, strlen(file), "file", &p, &err), &err);
	assert_int_equal(rfl_peaks_doubts(p, NULL, used, RFL_ARRAY_LEN(used), &lines), 2);
	assert_string_equal(rfl_buf_str(&lines),
			    "lab: fp32.vector, DRAM: measured on a busy machine\n"
			    "lab: DRAM: may include caches that the system does not report\n");
	rfl_buf_reset(&lines);
	assert_int_equal(rfl_peaks_doubts(p, "2026-11-21T05:31:00Z", NULL, 0, &lines), 4);
	assert_string_equal(
		rfl_buf_str(&lines),
		"lab: fp32.vector, fp32.vector.1core, fp64.vector and 2 more: measured on a busy "
		"machine\n"
		"lab: DRAM: may include caches that the system does not report\n"
		"lab: fp32.vector, fp32.vector.1core, fp64.vector and 3 more: measured long ago\n"
		"lab: bf16.vector: doubtful\n");
	rfl_buf_reset(&lines);
	assert_int_equal(rfl_peaks_doubts(p, NULL, used, 0, &lines), 0);
	rfl_peaks_free(p);
	rfl_buf_fini(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_line_for_each_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
