/* Changing a peaks file: what is there stays, and what was never valid is never written. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "peaks/edit.h"
#include "peaks/peaks.h"

static const char measured[] =
	"{\"kind\": \"cpu\", \"device\": {\"name\": \"A CPU\", \"units\": 4}, \"compute\": {"
	"\"fp32.vector\": {\"status\": \"measured\", \"value\": 400, \"spec\": null, \"method\": "
	"{\"kernel\": \"k\", \"tool\": \"t\", \"measured_at\": \"2026-11-21T05:31:00Z\"}, "
	"\"stats\": "
	"{\"n\": 15, \"median\": 390, \"min\": 380, \"max\": 400}}, "
	"\"fp64.vector\": {\"status\": \"unknown\", \"value\": null, \"reason\": \"skipped\"}}, "
	"\"memory\": [{\"level\": \"L2\", \"scope\": \"core\", \"capacity_bytes\": 1048576, "
	"\"gbs\": "
	"{\"status\": \"unknown\", \"reason\": \"skipped\"}}, {\"level\": \"DRAM\", \"scope\": "
	"\"node\", \"gbs\": {\"status\": \"user\", \"value\": 40, \"source\": {\"title\": "
	"\"now\"}}, \"sweep\": [{\"scope\": \"node\", \"working_set_bytes\": 16384, "
	"\"gbs\": 41}, {\"scope\": \"core\", \"working_set_bytes\": 8192, \"gbs\": 30.5}]}], "
	"\"notes\": [\"measured: something new\", \"measured: fp64.vector: a new loop\"]}";

static const char sheet[] =
	"{\"schema_version\": \"1.0\", \"environments\": {\"lab\": {\"kind\": \"cpu\", \"device\": "
	"{\"name\": \"A CPU\"}, \"compute\": {"
	"\"fp32.vector\": {\"status\": \"spec\", \"value\": 450, \"source\": {\"title\": "
	"\"sheet\"}}, "
	"\"fp64.vector\": {\"status\": \"user\", \"value\": 200, \"source\": {\"title\": \"me\"}}, "
	"\"bf16.matrix\": {\"status\": \"user\", \"value\": 900, \"source\": {\"title\": "
	"\"me\"}}}, "
	"\"memory\": [{\"level\": \"L1\", \"scope\": \"core\", \"gbs\": {\"status\": \"user\", "
	"\"value\": 300, \"source\": {\"title\": \"me\"}}}, {\"level\": \"DRAM\", \"scope\": "
	"\"node\", "
	"\"gbs\": {\"status\": \"spec\", \"value\": 50, \"source\": {\"title\": \"sheet\"}}, "
	"\"sweep\": [{\"scope\": "
	"\"node\", \"working_set_bytes\": 7, \"gbs\": 1}]}], "
	"\"notes\": [\"mine\", \"measured: something old\", \"measured: fp32.vector: old\", "
	"\"measured: bf16.matrix, another loop\", \"measured: DRAM by loop\", "
	"\"measured: L1 by loop\", \"measured: fp64.vector: an old loop\"]}, "
	"\"other\": {\"peak_gflops\": 1, \"peak_gbps\": 2}}}";

static json_t *value_of(const char *text)
{
	json_t *v = json_loads(text, 0, NULL);

	assert_non_null(v);
	return v;
}

/* Merge `measured` into a file and read it again. */
static struct rfl_peaks *merge(const char *path, const char *env)
{
	struct rfl_peaks_edit *e = NULL;
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	json_t *v = value_of(measured);

	assert_ok(rfl_peaks_edit_open(path, &e, &err), &err);
	rfl_peaks_edit_merge(e, env, v);
	assert_ok(rfl_peaks_edit_save(e, &err), &err);
	rfl_peaks_edit_close(e);
	json_decref(v);
	assert_ok(rfl_peaks_load(path, &p, &err), &err);
	return p;
}

static const struct rfl_peak *compute(const struct rfl_peaks *p, const char *env, const char *key)
{
	assert_non_null(rfl_peaks_find(p, env));
	return rfl_peaks_compute(rfl_peaks_find(p, env), key);
}

static void makes_a_file(void **state)
{
	struct rfl_peaks *p = merge(tmp_path(*state, "deep/er/peaks.json"), "lab");

	assert_int_equal(p->nenvs, 1);
	assert_close(compute(p, "lab", "fp32.vector")->value, 400e9, 0);
	assert_close(rfl_peaks_dram(&p->envs[0])->value, 40e9, 0);
	rfl_peaks_free(p);
}

static void keeps_what_is_there(void **state)
{
	struct rfl_peaks *p = merge(write_file(*state, "peaks.json", sheet), "lab");
	const struct rfl_peaks_env *lab = rfl_peaks_find(p, "lab");

	assert_int_equal(p->nenvs, 2);
	assert_close(compute(p, "other", "fp32.vector")->value, 1e9, 0);
	/* measured replaces, and the data sheet stays beside it */
	assert_int_equal(compute(p, "lab", "fp32.vector")->status, RFL_PEAK_MEASURED);
	assert_close(compute(p, "lab", "fp32.vector")->value, 400e9, 0);
	assert_close(compute(p, "lab", "fp32.vector")->spec, 450e9, 0);
	assert_string_equal(compute(p, "lab", "fp32.vector")->source, "sheet");
	assert_close(rfl_peaks_dram(lab)->spec, 50e9, 0);
	/* unknown replaces nothing, other keys are untouched */
	assert_close(compute(p, "lab", "fp64.vector")->value, 200e9, 0);
	assert_close(compute(p, "lab", "bf16.matrix")->value, 900e9, 0);
	assert_int_equal(lab->units, 4);
	/* levels stay in order, from the cores outwards */
	assert_int_equal(lab->nlevels, 3);
	assert_string_equal(lab->levels[0].level, "L1");
	assert_string_equal(lab->levels[1].level, "L2");
	assert_int_equal(lab->levels[1].capacity_bytes, 1048576);
	assert_string_equal(lab->levels[2].level, "DRAM");
	/* the curve of the new measurement replaces the old one */
	assert_int_equal(lab->levels[1].nsweep, 0);
	assert_int_equal(lab->levels[2].nsweep, 2);
	assert_string_equal(lab->levels[2].sweep[0].scope, "node");
	assert_int_equal(lab->levels[2].sweep[0].working_set_bytes, 16384);
	assert_close(lab->levels[2].sweep[1].value, 30.5e9, 0);
	rfl_peaks_free(p);
}

/* Kept: the user's notes, and those of ceilings that were not measured again. */
static void replaces_only_its_own_notes(void **state)
{
	const char *path = write_file(*state, "peaks.json", sheet);
	struct rfl_peaks *p = merge(path, "lab");
	json_t *root = json_load_file(path, 0, NULL);
	const json_t *lab = json_object_get(json_object_get(root, "environments"), "lab");
	char *notes = json_dumps(json_object_get(lab, "notes"), JSON_COMPACT);

	assert_string_equal(notes, "[\"mine\",\"measured: bf16.matrix, another loop\","
				   "\"measured: L1 by loop\",\"measured: something new\","
				   "\"measured: fp64.vector: a new loop\"]");
	free(notes);
	json_decref(root);
	rfl_peaks_free(p);
}

static void merging_twice_changes_nothing(void **state)
{
	const char *path = write_file(*state, "peaks.json", sheet);
	struct rfl_peaks *first = merge(path, "lab"), *second = merge(path, "lab");

	assert_string_equal(first->hash, second->hash);
	rfl_peaks_free(first);
	rfl_peaks_free(second);
}

static void a_short_file_keeps_its_environments(void **state)
{
	const char *path = write_file(*state, "peaks.json",
				      "{\"old\": {\"peak_gflops\": 420, \"peak_gbps\": null}}");
	struct rfl_peaks *p = merge(path, "lab");

	assert_int_equal(p->nenvs, 2);
	assert_true(rfl_peaks_find(p, "old")->short_form);
	assert_close(compute(p, "old", "fp64.vector")->value, 420e9, 0);
	assert_int_equal(rfl_peaks_dram(rfl_peaks_find(p, "old"))->status, RFL_PEAK_UNKNOWN);
	assert_close(compute(p, "lab", "fp32.vector")->value, 400e9, 0);
	rfl_peaks_free(p);
}

static void a_short_environment_is_remembered(void **state)
{
	const char *path = write_file(*state, "peaks.json",
				      "{\"lab\": {\"peak_gflops\": 420, \"peak_gbps\": 92}}");
	struct rfl_peaks *p = merge(path, "lab");
	struct rfl_buf text;
	struct rfl_err err = RFL_ERR_INIT;

	assert_false(rfl_peaks_find(p, "lab")->short_form);
	assert_close(compute(p, "lab", "fp32.vector")->value, 400e9, 0);
	rfl_buf_init(&text, 0);
	assert_ok(rfl_file_read(path, &text, &err), &err);
	assert_non_null(strstr(rfl_buf_str(&text),
			       "replaced the short form "
			       "{\\\"peak_gflops\\\":420,\\\"peak_gbps\\\":92}"));
	rfl_buf_fini(&text);
	rfl_peaks_free(p);
}

static void refuses_another_device(void **state)
{
	struct rfl_peaks_edit *e = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_peaks_edit_open(write_file(*state, "peaks.json", sheet), &e, &err), &err);
	assert_ok(rfl_peaks_edit_fits(e, "lab", "cpu", "A CPU", &err), &err);
	assert_ok(rfl_peaks_edit_fits(e, "new", "cpu", "Anything", &err), &err);
	assert_ok(rfl_peaks_edit_fits(e, "other", "cpu", "Anything", &err), &err);
	assert_ok(rfl_peaks_edit_fits(e, "lab", "cpu", RFL_PEAKS_NO_DEVICE, &err), &err);
	assert_int_equal(rfl_peaks_edit_fits(e, "lab", "cpu", "Another", &err), RFL_EINVAL);
	assert_says(&err, "is for 'A CPU', not for 'Another'");
	rfl_err_clear(&err);
	assert_int_equal(rfl_peaks_edit_fits(e, "lab", "gpu", "A CPU", &err), RFL_EINVAL);
	assert_says(&err, "is for a cpu, this device is a gpu");
	rfl_peaks_edit_close(e);
}

static enum rfl_rc set(const char *path, const char *env, const char *key, double value,
		       const char *source, struct rfl_err *err)
{
	const struct rfl_peaks_set s = { .env = env,
					 .key = key,
					 .value = value,
					 .source = source,
					 .kind = "gpu",
					 .device = "NVIDIA L4" };
	struct rfl_peaks_edit *e = NULL;
	enum rfl_rc rc = rfl_peaks_edit_open(path, &e, err);

	if (rc == RFL_OK)
		rc = rfl_peaks_edit_set(e, &s, err);
	if (rc == RFL_OK)
		rc = rfl_peaks_edit_save(e, err);
	rfl_peaks_edit_close(e);
	return rc;
}

static void sets_and_makes_the_environment(void **state)
{
	const char *path = tmp_path(*state, "peaks.json");
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(set(path, "lab_gpu", "bf16.matrix", 121000, "sheet", &err), &err);
	assert_ok(set(path, "lab_gpu", "memory.DRAM.gbs", 300, "sheet", &err), &err);
	assert_ok(set(path, "lab_gpu", "L2", 2000, "my own measurement", &err), &err);
	assert_ok(
		set(write_file(*state, "scopes.json",
			       "{\"schema_version\": \"1.0\", \"environments\": {\"lab\": {"
			       "\"kind\": \"cpu\", \"device\": {\"name\": \"x\"}, \"compute\": {"
			       "\"fp32.vector\": {\"status\": \"failed\", \"reason\": \"r\"}},"
			       "\"memory\": [{\"level\": \"DRAM\", \"scope\": \"core\", \"gbs\":"
			       "{\"status\": \"failed\", \"reason\": \"r\"}}, {\"level\": \"DRAM\","
			       "\"scope\": \"node\", \"gbs\": {\"status\": \"failed\","
			       "\"reason\": \"r\"}}]}}}"),
		    "lab", "DRAM", 90, "s", &err),
		&err);
	assert_ok(rfl_peaks_load(tmp_path(*state, "scopes.json"), &p, &err), &err);
	assert_close(rfl_peaks_dram(&p->envs[0])->value, 90e9, 0);
	rfl_peaks_free(p);
	assert_ok(rfl_peaks_load(path, &p, &err), &err);

	const struct rfl_peaks_env *env = rfl_peaks_find(p, "lab_gpu");

	assert_string_equal(env->kind, "gpu");
	assert_string_equal(env->device, "NVIDIA L4");
	assert_close(rfl_peaks_compute(env, "bf16.matrix")->value, 121e12, 0);
	assert_int_equal(rfl_peaks_compute(env, "bf16.matrix")->status, RFL_PEAK_USER);
	assert_string_equal(rfl_peaks_compute(env, "bf16.matrix")->source, "sheet");
	assert_close(rfl_peaks_dram(env)->value, 300e9, 0);
	assert_int_equal(rfl_peaks_compute(env, "fp32.vector")->status, RFL_PEAK_UNKNOWN);
	assert_int_equal(env->nlevels, 2);
	assert_string_equal(env->levels[0].level, "L2");
	rfl_peaks_free(p);
}

static void sets_in_the_short_form(void **state)
{
	const char *path =
		write_file(*state, "peaks.json",
			   "{\"lab\": {\"peak_gflops\": null, \"peak_gbps\": 92},"
			   "\"gpu\": {\"fp32\": {\"peak_gflops\": 1}, \"peak_gbps\": 3}}");
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(set(path, "lab", "peak_gflops", 420, "me", &err), &err);
	assert_ok(set(path, "gpu", "amp.peak_gflops", 9, "me", &err), &err);
	assert_ok(rfl_peaks_load(path, &p, &err), &err);
	assert_close(compute(p, "lab", "fp32.vector")->value, 420e9, 0);
	assert_string_equal(compute(p, "lab", "fp32.vector")->source, "me");
	assert_close(compute(p, "gpu", "fp16.matrix")->value, 9e9, 0);
	assert_close(compute(p, "gpu", "fp32.vector")->value, 1e9, 0);
	rfl_peaks_free(p);

	assert_int_equal(set(path, "lab", "fp32.vector", 1, "me", &err), RFL_EINVAL);
	assert_says(&err, "short form");
	rfl_err_clear(&err);
	assert_int_equal(set(path, "lab", "peak_gflops.fp32", 1, "me", &err), RFL_EINVAL);
	assert_says(&err, "cannot be set");
}

static void a_refusal_leaves_the_file_alone(void **state)
{
	const char *path = write_file(*state, "peaks.json", sheet);
	static const struct {
		const char *env, *key;
		double value;
		const char *source, *word;
	} cases[] = {
		{ "lab", "fp32.vectro", 1, "s", "did you mean fp32.vector" },
		{ "lab", "RAM", 1, "s", "neither a compute key" },
		{ "lab", "fp32.vector", 0, "s", "greater than 0" },
		{ "lab", "fp32.vector", -1, "s", "greater than 0" },
		{ "lab", "fp32.vector", 1, "", "/title: must be a non-empty string" },
		{ "Lab", "fp32.vector", 1, "s", "not a valid" },
	};
	struct rfl_peaks *before = NULL, *after = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_peaks_load(path, &before, &err), &err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		rfl_err_clear(&err);
		assert_int_not_equal(set(path, cases[i].env, cases[i].key, cases[i].value,
					 cases[i].source, &err),
				     RFL_OK);
		assert_says(&err, cases[i].word);
	}
	rfl_err_clear(&err);
	assert_ok(rfl_peaks_load(path, &after, &err), &err);
	assert_string_equal(before->hash, after->hash);
	rfl_peaks_free(before);
	rfl_peaks_free(after);
}

static void refuses_to_change_an_invalid_file(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	const char *path = write_file(
		*state, "peaks.json",
		"{\"schema_version\": \"1.0\", \"environments\": {\"lab_cpu\": {"
		"\"kind\": \"cpu\", \"device\": {\"name\": \"A CPU\", \"units\": 2},"
		"\"compute\": {\"fp32.vector\": {\"status\": \"user\", \"value\": 0,"
		" \"source\": {\"title\": \"by hand\"}}},"
		"\"memory\": [{\"level\": \"DRAM\", \"scope\": \"node\", \"gbs\": {\"status\":"
		" \"user\", \"value\": 40.5, \"source\": {\"title\": \"by hand\"}}}]}}}");

	assert_int_equal(set(path, "lab", "fp32.vector", 1, "s", &err), RFL_EFORMAT);
	assert_says(&err, "/environments/lab_cpu/compute/fp32.vector/value");
}

static void reads_units(void **state)
{
	static const struct {
		const char *text, *key;
		double value; /* 0: refused */
		const char *word;
	} cases[] = {
		{ "121000", "bf16.matrix", 121000, NULL },
		{ "121 TFLOP/s", "bf16.matrix", 121000, NULL },
		{ "121TFLOP/s", "compute.bf16.matrix", 121000, NULL },
		{ " 121 tflops ", "bf16.matrix", 121000, NULL },
		{ "242.5TOPS", "int8.matrix", 242500, NULL },
		{ "1.5 Top/s", "int8.matrix", 1500, NULL },
		{ "2PFLOP/s", "fp8.matrix", 2e6, NULL },
		{ "500MFLOP/s", "fp64.scalar", 0.5, NULL },
		{ "3.35TB/s", "HBM", 3350, NULL },
		{ "300GB/s", "memory.DRAM.gbs", 300, NULL },
		{ "92 GB/s", "peak_gbps", 92, NULL },
		{ "0.42TFLOP/s", "peak_gflops", 420, NULL },
		{ "1e3", "DRAM", 1000, NULL },
		{ "3TB/s", "fp32.vector", 0, "'TB/s' is not a unit of fp32.vector" },
		{ "3TFLOP/s", "DRAM", 0, "use GB/s or TB/s" },
		{ "3 GiB/s", "DRAM", 0, "'GiB/s' is not a unit" },
		{ "3Gbit", "L2", 0, "'Gbit' is not a unit" },
		{ "TFLOP/s", "fp32.vector", 0, "greater than 0" },
		{ "-1TFLOP/s", "fp32.vector", 0, "greater than 0" },
		{ "0GB/s", "DRAM", 0, "greater than 0" },
		{ "nan", "DRAM", 0, "greater than 0" },
		{ "", "DRAM", 0, "greater than 0" },
		{ "1,5TB/s", "DRAM", 0, "" },
		{ "12 34", "DRAM", 0, "'34' is not a unit" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		double value = 0;
		const enum rfl_rc rc = rfl_peaks_rate(cases[i].text, cases[i].key, &value, &err);

		assert_int_equal(rc, cases[i].value > 0 ? RFL_OK : RFL_EUSAGE);
		assert_close(value, cases[i].value, 1e-15);
		if (cases[i].word)
			assert_says(&err, cases[i].word);
	}
}

static enum rfl_rc set_sheet(const char *path, const char *env, const char *device,
			     struct rfl_err *err)
{
	struct rfl_devices *devices = rfl_devices_new();
	struct rfl_peaks_edit *e = NULL;
	enum rfl_rc rc;

	assert_ok(rfl_peaks_edit_open(path, &e, err), err);
	rc = rfl_peaks_edit_sheet(e, env, rfl_devices_get(devices, device), err);
	if (rc == RFL_OK)
		rc = rfl_peaks_edit_save(e, err);
	rfl_peaks_edit_close(e);
	rfl_devices_free(devices);
	return rc;
}

static void writes_a_data_sheet(void **state)
{
	const char *path = tmp_path(*state, "peaks.json");
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(set_sheet(path, "l4", "NVIDIA L4", &err), &err);
	assert_ok(set_sheet(path, "rtx", "RTX 4070", &err), &err);
	assert_ok(set_sheet(path, "m3", "Apple M3 Pro", &err), &err);
	assert_ok(set_sheet(path, "l4", "NVIDIA L4", &err), &err); /* changes nothing */
	assert_ok(rfl_peaks_load(path, &p, &err), &err);

	const struct rfl_peaks_env *l4 = rfl_peaks_find(p, "l4");

	assert_string_equal(l4->kind, "gpu");
	assert_string_equal(l4->device, "NVIDIA L4");
	assert_int_equal(l4->units, 58);
	assert_int_equal(l4->ncompute, 6);
	assert_close(compute(p, "l4", "bf16.matrix")->value, 121e12, 0);
	assert_int_equal(compute(p, "l4", "bf16.matrix")->status, RFL_PEAK_SPEC);
	assert_true(isnan(compute(p, "l4", "bf16.matrix")->spec));
	assert_string_equal(compute(p, "l4", "bf16.matrix")->source, "data sheet of NVIDIA L4");
	assert_null(compute(p, "l4", "fp64.vector"));
	assert_close(rfl_peaks_dram(l4)->value, 300e9, 0);
	/* computed, because the vendor prints no figure */
	assert_int_equal(compute(p, "rtx", "fp16.matrix")->status, RFL_PEAK_DERIVED);
	/* not in the sheet */
	assert_int_equal(compute(p, "m3", "fp32.vector")->status, RFL_PEAK_UNKNOWN);
	assert_close(rfl_peaks_dram(rfl_peaks_find(p, "m3"))->value, 150e9, 0);
	rfl_peaks_free(p);
}

static void a_data_sheet_stays_beside_the_values(void **state)
{
	const char *path = write_file(
		*state, "peaks.json",
		"{\"schema_version\": \"1.0\", \"environments\": {\"gpu\": {\"kind\": \"gpu\","
		"\"device\": {\"name\": \"NVIDIA H200\"}, \"compute\": {\"bf16.matrix\": {"
		"\"status\": \"measured\", \"value\": 788000, \"method\": {\"kernel\": \"k\","
		"\"tool\": \"t\", \"measured_at\": \"2026-11-21T05:31:00Z\"}, \"stats\": {"
		"\"n\": 15, \"median\": 787000, \"max\": 788000}}, \"fp32.vector\": {\"status\":"
		"\"user\", \"value\": 60000, \"source\": {\"title\": \"me\"}}, \"tf32.matrix\": {"
		"\"status\": \"spec\", \"value\": 1, \"source\": {\"title\": \"old\"}},"
		"\"fp8.matrix\": {\"status\": \"failed\", \"value\": null, \"reason\": \"r\"}},"
		"\"memory\": [{\"level\": \"HBM\", \"scope\": \"device\", \"gbs\": {\"status\":"
		"\"measured\", \"value\": 4300, \"method\": {\"kernel\": \"k\", \"tool\": \"t\","
		"\"measured_at\": \"2026-11-21T05:31:00Z\"}, \"stats\": {\"n\": 15, \"median\":"
		"4290, \"max\": 4300}}}]}, \"short\": {\"peak_gflops\": 1, \"peak_gbps\": 2}}}");
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(set_sheet(path, "gpu", "NVIDIA H200", &err), &err);
	assert_ok(rfl_peaks_load(path, &p, &err), &err);
	assert_int_equal(compute(p, "gpu", "bf16.matrix")->status, RFL_PEAK_MEASURED);
	assert_close(compute(p, "gpu", "bf16.matrix")->value, 788e12, 0);
	assert_close(compute(p, "gpu", "bf16.matrix")->spec, 989.4e12, 1e-15);
	assert_close(compute(p, "gpu", "fp32.vector")->value, 60e12, 0);
	assert_close(compute(p, "gpu", "fp32.vector")->spec, 66.9e12, 1e-15);
	assert_string_equal(compute(p, "gpu", "fp32.vector")->source, "me");
	assert_close(compute(p, "gpu", "tf32.matrix")->value, 494.7e12, 1e-15);
	assert_close(compute(p, "gpu", "fp8.matrix")->value, 1978.9e12, 1e-15);
	assert_int_equal(rfl_peaks_find(p, "gpu")->nlevels, 1);
	assert_close(rfl_peaks_dram(rfl_peaks_find(p, "gpu"))->value, 4300e9, 0);
	assert_close(rfl_peaks_dram(rfl_peaks_find(p, "gpu"))->spec, 4800e9, 0);
	rfl_peaks_free(p);

	assert_int_equal(set_sheet(path, "gpu", "H200 NVL", &err), RFL_EINVAL);
	assert_says(&err, "is for the gpu 'NVIDIA H200', not for NVIDIA H200 NVL");
	rfl_err_clear(&err);
	assert_int_equal(set_sheet(path, "gpu", "EPYC 9654", &err), RFL_EINVAL);
	rfl_err_clear(&err);
	assert_int_equal(set_sheet(path, "short", "l4", &err), RFL_EINVAL);
	assert_says(&err, "short form");
	rfl_err_clear(&err);
	assert_int_equal(set_sheet(path, "GPU", "l4", &err), RFL_EFORMAT);
}

/* The device of set() is an L4: 121 TFLOP/s dense in FP16 and BF16, 242.5 in FP8. */
static void refuses_rates_with_sparsity(void **state)
{
	static const struct {
		const char *key;
		double value;
		const char *word; /* NULL: accepted */
	} cases[] = {
		{ "bf16.matrix", 242000,
		  "twice the dense rate of the data sheet of NVIDIA L4, so "
		  "it is a rate with sparsity; use 121000GFLOP/s" },
		{ "compute.fp16.matrix", 240000, "or with FP16 accumulation" },
		{ "fp8.matrix", 485000, "use 242500GFLOP/s" },
		{ "bf16.matrix", 121000, NULL },
		{ "bf16.matrix", 200000, NULL },
		{ "fp16.matrix.fp16acc", 242000, NULL },
		{ "fp32.vector", 60600, NULL },
		{ "fp64.matrix", 1, NULL }, /* not in the sheet */
	};
	const char *path = tmp_path(*state, "peaks.json");

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		const enum rfl_rc rc = set(path, "gpu", cases[i].key, cases[i].value, "s", &err);

		assert_int_equal(rc, cases[i].word ? RFL_EINVAL : RFL_OK);
		if (cases[i].word)
			assert_says(&err, cases[i].word);
	}
}

#define IN_TMP(test) cmocka_unit_test_setup_teardown(test, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_TMP(makes_a_file),
		IN_TMP(keeps_what_is_there),
		IN_TMP(replaces_only_its_own_notes),
		IN_TMP(merging_twice_changes_nothing),
		IN_TMP(a_short_file_keeps_its_environments),
		IN_TMP(a_short_environment_is_remembered),
		IN_TMP(refuses_another_device),
		IN_TMP(sets_and_makes_the_environment),
		IN_TMP(sets_in_the_short_form),
		IN_TMP(a_refusal_leaves_the_file_alone),
		IN_TMP(refuses_to_change_an_invalid_file),
		cmocka_unit_test(reads_units),
		IN_TMP(writes_a_data_sheet),
		IN_TMP(a_data_sheet_stays_beside_the_values),
		IN_TMP(refuses_rates_with_sparsity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
