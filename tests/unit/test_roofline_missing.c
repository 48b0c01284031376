/* Values that are missing: all of them in one message, or left out and reported. */
#include "roofline_fixture.h"

#define MEASURED(value)                                                                     \
	"{\"status\": \"measured\", \"value\": " value ", \"method\": {\"kernel\": \"k\", " \
	"\"tool\": \"t\", \"measured_at\": \"2026-01-01T00:00:00Z\"}, "                     \
	"\"stats\": {\"n\": 5, \"median\": " value ", \"max\": " value "}}"
#define UNKNOWN(reason) "{\"status\": \"unknown\", \"value\": null, \"reason\": \"" reason "\"}"

#define LONG_FORM(compute, dram)                                           \
	"{\"schema_version\": \"1.0\", \"environments\": {"                \
	"\"lab_cpu\": {\"kind\": \"cpu\", \"device\": {\"name\": \"x\"}, " \
	"\"compute\": {\"fp32.vector\": " compute "}, "                    \
	"\"memory\": [{\"level\": \"DRAM\", \"scope\": \"node\", \"gbs\": " dram "}]}}}"

static void null_in_the_short_form(void **state)
{
	struct fixture *f = fixture_new();

	add_run(f, "lab_cpu", "aa", 4, 500);
	add_run(f, "lab_cpu", "bb", 8, 900);
	add_run(f, "lab_cpu", "cc", 16, 1700);
	add_run(f, "lab_cpu", "cc", 16, 1700);
	use_peaks(f, state, "{\"lab_cpu\": {\"peak_gflops\": null, \"peak_gbps\": null}}");
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_null(f->pts);
	assert_says(&f->err, "peaks.json: the points need 2 values that are missing");
	assert_says(&f->err, "environment 'lab_cpu': peak_gflops is unknown");
	assert_says(&f->err, "environment 'lab_cpu': peak_gbps is unknown");
	/* three configurations of four runs need it */
	assert_says(&f->err, "needed by lab_cpu_resnet50_fp32_bs4_run1, "
			     "lab_cpu_resnet50_fp32_bs8_run2 and 1 more");
	assert_says(&f->err, "roofline peaks measure --env lab_cpu");
	assert_says(&f->err, "lab_cpu peak_gflops VALUE --source TEXT");
	fixture_free(f);
}

/* The advice names the backend that measures the GPU, if there is one. */
static void of_a_gpu(void **state)
{
	static const struct {
		const char *name, *advice;
	} devices[] = {
		{ "Apple M2", "peaks measure --env lab --backend mps" },
		{ "NVIDIA L4", "peaks measure --env lab --backend cuda" },
		{ "Tesla T4", "peaks measure --env lab --backend cuda" },
		{ "AMD Instinct MI210", "measures NVIDIA and Apple GPUs only" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(devices); i++) {
		struct fixture *f = fixture_new();
		char text[1024];

		(void)snprintf(
			text, sizeof(text),
			"{\"schema_version\": \"1.0\", \"environments\": {\"lab\": "
			"{\"kind\": \"gpu\", \"device\": {\"name\": \"%s\"}, "
			"\"compute\": {\"fp32.vector\": " UNKNOWN(
				"none") "}, "
					"\"memory\": [{\"level\": \"DRAM\", \"scope\": \"device\", "
					"\"gbs\": " MEASURED("100") "}]}}}",
			devices[i].name);
		add_run(f, "lab", "aa", 4, 500);
		use_peaks(f, state, text);
		assert_int_equal(merge(f), RFL_EMISSING);
		assert_says(&f->err, devices[i].advice);
		assert_says(&f->err, "roofline peaks set");
		fixture_free(f);
	}
}

static void all_cells_of_the_long_form_at_once(void **state)
{
	struct fixture *f = fixture_new();

	add_run(f, "lab_cpu", "aa", 4, 500);
	add_run(f, "lab_cpx", "bb", 4, 500);
	set(&add_run(f, "lab_cpu", "cc", 4, 500)->precision, "bf16");
	set(&add_run(f, "lab_cpu", "dd", 4, 500)->model, "resnet5000");
	use_peaks(f, state, LONG_FORM(UNKNOWN("not measured yet"), UNKNOWN("no memory")));
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_null(f->pts);
	assert_says(&f->err, "the points need 5 values that are missing; add them as follows");
	assert_says(&f->err, "compute.fp32.vector is unknown (not measured yet)");
	assert_says(&f->err, "memory.DRAM.gbs is unknown (no memory)");
	assert_says(&f->err, "compute.bf16.vector is not in the file");
	assert_says(&f->err, "environment 'lab_cpx' is not in the file (it has: lab_cpu); "
			     "did you mean lab_cpu?");
	assert_says(&f->err, "resnet5000");
	assert_says(&f->err, "roofline peaks measure --env lab_cpx");
	assert_says(&f->err, "roofline complexity");
	fixture_free(f);
}

static void skip_missing_does_the_rest(void **state)
{
	struct fixture *f = fixture_new();

	add_run(f, "lab_cpu", "aa", 4, 500);
	add_run(f, "other", "bb", 4, 500);
	set(&add_run(f, "lab_cpu", "cc", 4, 500)->precision, "bf16");
	f->options.skip_missing = true;
	use_peaks(f, state, LONG_FORM(MEASURED("420"), MEASURED("92")));
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 1);
	assert_string_equal(f->pts->points[0].config_hash, "aa");
	assert_string_equal(f->pts->points[0].peak_gflops_status, "measured");
	assert_int_equal(f->report.left_out, 2);
	assert_notes(f, "skipped 2 of the configurations");
	assert_notes(f, "environment 'other' is not in the file");
	assert_notes(f, "compute.bf16.vector is not in the file");
	fixture_free(f);
}

/* fp16 with an fp16 accumulator is another ceiling; it is not a substitute. */
static void no_other_accumulator_stands_in(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_ledger_row *row = add_run(f, "lab_gpu", "aa", 4, 500);

	set(&row->precision, "fp16");
	set(&row->backend, "cuda");
	use_peaks(f, state,
		  "{\"schema_version\": \"1.0\", \"environments\": {\"lab_gpu\": {\"kind\": "
		  "\"gpu\", \"device\": {\"name\": \"x\"}, \"compute\": "
		  "{\"fp16.matrix.fp16acc\": " MEASURED(
			  "330000") "}, \"memory\": [{\"level\": \"HBM\", \"scope\": \"device\", "
				    "\"gbs\": " MEASURED("1008") "}]}}}");
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "the points need 1 value that is missing");
	assert_says(&f->err, "compute.fp16.matrix is not in the file");
	fixture_free(f);
}

/* More than one message can hold: the values alone, still all of them. */
static void many_cells_fit_one_message(void **state)
{
	struct fixture *f = fixture_new();
	char env[32], fact[64];

	for (int i = 0; i < 40; i++) {
		(void)snprintf(env, sizeof(env), "machine_%d", i);
		add_run(f, env, "aa", 4, 500);
	}
	use_peaks(f, state, LONG_FORM(MEASURED("420"), MEASURED("92")));
	assert_int_equal(merge(f), RFL_EMISSING);
	for (int i = 0; i < 40; i++) {
		(void)snprintf(fact, sizeof(fact), "environment 'machine_%d' is", i);
		assert_says(&f->err, fact);
	}
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(null_in_the_short_form),
		T(of_a_gpu),
		T(all_cells_of_the_long_form_at_once),
		T(skip_missing_does_the_rest),
		T(no_other_accumulator_stands_in),
		T(many_cells_fit_one_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
