/* Reading peaks files: both forms, what they answer, and every refusal with its words. */
#include "tests/unit/invalid_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "peaks/peaks.h"

static struct rfl_peaks *load(const char *path)
{
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_peaks_load(path, &p, &err), &err);
	return p;
}

static const struct rfl_peak *compute(const struct rfl_peaks *p, const char *env, const char *key)
{
	const struct rfl_peaks_env *e = rfl_peaks_find(p, env);

	assert_non_null(e);
	return rfl_peaks_compute(e, key);
}

static void assert_cell(const struct rfl_peaks *p, const char *env, const char *key,
			const char *expected)
{
	char out[64];

	assert_string_equal(rfl_peaks_cell(rfl_peaks_find(p, env), key, out, sizeof(out)),
			    expected);
}

static void reads_the_long_form(void **state)
{
	struct rfl_peaks *p = load(data_path("peaks/long.json"));
	const struct rfl_peaks_env *vm = rfl_peaks_find(p, "zen5_vm");
	const struct rfl_peak *core, *dram;

	(void)state;
	assert_int_equal(p->nenvs, 5);
	assert_null(rfl_peaks_find(p, "zen5"));
	assert_false(vm->short_form);
	assert_string_equal(vm->kind, "cpu");
	assert_string_equal(vm->device, "AMD EPYC");
	assert_int_equal(vm->units, 2);

	core = rfl_peaks_compute(vm, "fp32.vector.1core");
	assert_int_equal(core->status, RFL_PEAK_MEASURED);
	assert_close(core->value, 256.5e9, 0);
	assert_close(core->stats.median, 252.7e9, 1e-15);
	assert_close(core->stats.min, 250.4e9, 1e-15);
	assert_int_equal(core->stats.n, 21);
	assert_int_equal(core->threads, 1);
	assert_true(isnan(core->spec));
	assert_string_equal(core->kernel, "avx512 fmadd_ps, register only");
	assert_string_equal(core->measured_at, "2026-11-21T05:31:00Z");
	assert_null(core->reason);
	assert_null(core->source);

	dram = rfl_peaks_dram(vm);
	assert_close(dram->value, 105.5e9, 0);
	assert_int_equal(dram->working_set_bytes, 805306368);
	assert_int_equal(dram->threads, 2);
	rfl_peaks_free(p);
}

static void keeps_what_is_not_known(void **state)
{
	struct rfl_peaks *p = load(data_path("peaks/long.json"));
	const struct rfl_peak *fp64 = compute(p, "mac_mps", "fp64.vector");
	const struct rfl_peak *dram = rfl_peaks_dram(rfl_peaks_find(p, "mac_cpu"));

	(void)state;
	assert_int_equal(fp64->status, RFL_PEAK_UNSUPPORTED);
	assert_string_equal(fp64->reason, "Metal has no double");
	assert_true(isnan(fp64->value));
	assert_false(rfl_peak_usable(fp64));
	assert_int_equal(dram->status, RFL_PEAK_UNKNOWN);
	assert_true(isnan(dram->value));
	assert_false(rfl_peak_usable(dram));
	rfl_peaks_free(p);
}

static void never_substitutes_in_the_long_form(void **state)
{
	struct rfl_peaks *p = load(data_path("peaks/long.json"));
	const struct rfl_peak *l4 = compute(p, "gcp_l4", "bf16.matrix");

	(void)state;
	assert_int_equal(l4->status, RFL_PEAK_DERIVED);
	assert_string_equal(l4->source, "NVIDIA L4 datasheet");
	assert_close(l4->spec, 121e12, 0);
	assert_null(compute(p, "gcp_l4", "fp16.matrix"));
	assert_null(compute(p, "gcp_l4", "fp32"));
	assert_null(compute(p, "zen5_vm", "fp32.vector"));
	assert_non_null(compute(p, "gcp_l4", "compute.fp32.vector"));
	rfl_peaks_free(p);
}

static void a_core_is_not_the_machine(void **state)
{
	static const char text[] =
		"{\"schema_version\": \"1.0\", \"environments\": {\"lab\": {\"kind\": \"cpu\","
		"\"device\": {\"name\": \"x\"}, \"compute\": {\"fp32.vector\": {\"status\": "
		"\"failed\","
		"\"reason\": \"r\"}}, \"memory\": [{\"level\": \"DRAM\", \"scope\": \"%s\","
		"\"gbs\": {\"status\": \"user\", \"value\": 10, \"source\": {\"title\": "
		"\"t\"}}}]}}}";
	static const char *const scopes[] = { "core", "cluster", "socket", "node", "device" };

	for (size_t i = 0; i < 5; i++) {
		char json[512];

		snprintf(json, sizeof(json), text, scopes[i]);
		struct rfl_peaks *p = load(write_file(*state, "peaks.json", json));
		const struct rfl_peak *dram = rfl_peaks_dram(&p->envs[0]);

		assert_int_equal(dram != NULL, i >= 2);
		assert_int_equal(compute(p, "lab", "fp32.vector")->status, RFL_PEAK_FAILED);
		rfl_peaks_free(p);
	}
}

static void one_value_serves_every_key(void **state)
{
	struct rfl_peaks *p = load(data_path("peaks/short.json"));
	static const char *const keys[] = { "fp32.vector", "fp64.vector", "bf16.matrix",
					    "int8.matrix" };

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_close(compute(p, "lab_cpu", keys[i])->value, 420e9, 0);
	assert_null(compute(p, "lab_cpu", "fp32.vector.1core"));
	assert_null(compute(p, "lab_cpu", "fp16.matrix.fp16acc"));
	assert_true(rfl_peaks_find(p, "lab_cpu")->short_form);
	assert_int_equal(compute(p, "lab_cpu", "fp32.vector")->status, RFL_PEAK_USER);
	assert_non_null(compute(p, "lab_cpu", "fp32.vector")->source);
	assert_close(rfl_peaks_dram(rfl_peaks_find(p, "lab_cpu"))->value, 92e9, 0);
	assert_cell(p, "lab_cpu", "fp32.vector", "peak_gflops");
	assert_cell(p, "lab_cpu", "DRAM", "peak_gbps");
	rfl_peaks_free(p);
}

static void null_is_unknown_in_the_short_form(void **state)
{
	struct rfl_peaks *p = load(data_path("peaks/short.json"));
	const struct rfl_peak *mps = compute(p, "lab_mps", "fp32.vector");

	(void)state;
	assert_int_equal(mps->status, RFL_PEAK_UNKNOWN);
	assert_true(isnan(mps->value));
	assert_string_equal(mps->reason, "null in the peaks file");
	assert_string_equal(rfl_peaks_dram(rfl_peaks_find(p, "lab_mps"))->source, "by hand");
	/* a precision that is null is not served by another */
	assert_false(rfl_peak_usable(compute(p, "lab_gpu", "fp64.vector")));
	assert_cell(p, "lab_gpu", "fp64.vector", "peak_gflops.fp64");
	rfl_peaks_free(p);
}

static void precisions_in_both_spellings(void **state)
{
	struct rfl_peaks *p = load(data_path("peaks/short.json"));

	(void)state;
	assert_close(compute(p, "lab_gpu", "fp32.vector")->value, 30300e9, 0);
	assert_close(compute(p, "lab_gpu", "fp16.matrix")->value, 121000e9, 0);
	assert_close(compute(p, "lab_gpu", "bf16.matrix")->value, 121000e9, 0);
	assert_null(compute(p, "lab_gpu", "int8.matrix"));
	assert_cell(p, "lab_gpu", "fp16.matrix", "peak_gflops.amp");
	assert_cell(p, "lab_gpu", "int8.matrix", "peak_gflops.int8");

	assert_close(compute(p, "lab_rtx", "fp32.vector")->value, 82600e9, 0);
	assert_close(compute(p, "lab_rtx", "bf16.matrix")->value, 165200e9, 0);
	assert_close(compute(p, "lab_rtx", "fp64.vector")->value, 1300e9, 0);
	assert_close(rfl_peaks_dram(rfl_peaks_find(p, "lab_rtx"))->value, 1008e9, 0);
	assert_cell(p, "lab_rtx", "fp32.vector", "fp32.peak_gflops");
	assert_cell(p, "lab_rtx", "memory.DRAM.gbs", "fp32.peak_gbps");
	rfl_peaks_free(p);
}

static void spells_cells_of_the_long_form(void **state)
{
	struct rfl_peaks *p = load(data_path("peaks/long.json"));

	(void)state;
	assert_cell(p, "zen5_vm", "fp32.vector", "compute.fp32.vector");
	assert_cell(p, "zen5_vm", "compute.fp32.vector.1core", "compute.fp32.vector.1core");
	assert_cell(p, "zen5_vm", "DRAM", "memory.DRAM.gbs");
	assert_cell(p, "zen5_vm", "memory.DRAM", "memory.DRAM.gbs");
	assert_cell(p, "zen5_vm", "memory.L2.gbs", "memory.L2.gbs");
	rfl_peaks_free(p);
}

static void environments_of_both_forms_in_one_file(void **state)
{
	struct rfl_peaks *p = load(write_file(
		*state, "both.json",
		"{\"schema_version\": \"1.0\", \"environments\": {\"old\": {\"peak_gflops\": 1,"
		"\"peak_gbps\": null}, \"new\": {\"kind\": \"gpu\", \"device\": {\"name\": \"x\"},"
		"\"compute\": {\"fp32.vector\": {\"status\": \"unknown\", \"value\": null,"
		"\"reason\": \"r\"}}, \"memory\": [{\"level\": \"HBM\", \"scope\": \"device\","
		"\"gbs\": {\"status\": \"spec\", \"value\": 3350, \"source\": {\"title\": "
		"\"t\"}}}]}}}"));

	assert_true(rfl_peaks_find(p, "old")->short_form);
	assert_false(rfl_peaks_find(p, "new")->short_form);
	assert_close(rfl_peaks_dram(rfl_peaks_find(p, "new"))->value, 3350e9, 0);
	assert_cell(p, "new", "DRAM", "memory.HBM.gbs");
	rfl_peaks_free(p);
}

static enum rfl_rc try_load(const char *path, bool *made, struct rfl_err *err)
{
	struct rfl_peaks *p = NULL;
	enum rfl_rc rc = rfl_peaks_load(path, &p, err);

	*made = p != NULL;
	rfl_peaks_free(p);
	return rc;
}

static void refuses_every_invalid_file(void **state)
{
	check_invalid_files(*state, "peaks/invalid.txt", 74, try_load);
}

static void says_that_a_file_is_absent(void **state)
{
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_int_equal(rfl_peaks_load(tmp_path(*state, "absent.json"), &p, &err), RFL_EIO);
	assert_says(&err, "absent.json");
	assert_null(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_long_form),
		cmocka_unit_test(keeps_what_is_not_known),
		cmocka_unit_test(never_substitutes_in_the_long_form),
		cmocka_unit_test_setup_teardown(a_core_is_not_the_machine, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test(one_value_serves_every_key),
		cmocka_unit_test(null_is_unknown_in_the_short_form),
		cmocka_unit_test(precisions_in_both_spellings),
		cmocka_unit_test(spells_cells_of_the_long_form),
		cmocka_unit_test_setup_teardown(environments_of_both_forms_in_one_file, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(refuses_every_invalid_file, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(says_that_a_file_is_absent, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
