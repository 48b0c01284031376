/*
 * Names of runs: what they say, which are allowed, which comes next.
 */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/file.h"
#include "ledger/label.h"

static void labels_are_read(void **state)
{
	static const struct {
		const char *label, *model;
		const char *env, *found, *precision;
		int64_t batch, run;
	} cases[] = {
		{ "cpu_resnet50_fp32_bs4_run1", NULL, "cpu", "resnet50", "fp32", 4, 1 },
		{ "mac_mps_resnet50_fp32_bs16_run12", NULL, "mac_mps", "resnet50", "fp32", 16, 12 },
		{ "mac_mps_vgg16_fp32_bs64_r3_20251114_120856", NULL, "mac_mps", "vgg16", "fp32",
		  64, 3 },
		{ "lab_vgg16_bn_amp_bs8_run2", NULL, "lab", "vgg16_bn", "amp", 8, 2 },
		{ "rtx4090_resnet50_fp32_prof", NULL, "rtx4090", "resnet50", "fp32", -1, -1 },
		{ "lab_mynet_bf16_bs2_run5", "mynet", "lab", "mynet", "bf16", 2, 5 },
		{ "lab_mynet_bf16_bs2_run5", NULL, "", "", "bf16", 2, 5 },
		{ "My-Lab_resnet50_fp32", NULL, "", "resnet50", "fp32", -1, -1 },
		{ "resnet50_fp32_bs4", NULL, "", "", "fp32", 4, -1 },
		{ "tuesday", NULL, "", "", "", -1, -1 },
		{ "", NULL, "", "", "", -1, -1 },
		{ "a_resnet50_bs99999999999999999999_run", NULL, "a", "resnet50", "", -1, -1 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_label l;

		rfl_label_parse(cases[i].label, cases[i].model, &l);
		assert_string_equal(l.env, cases[i].env);
		assert_string_equal(l.model, cases[i].found);
		assert_string_equal(l.precision, cases[i].precision);
		assert_int_equal(l.batch, cases[i].batch);
		assert_int_equal(l.run, cases[i].run);
	}
}

/* What the labels of other profilers' files say: suffixes and stamps are no part of the join. */
static void labels_of_profiled_runs_are_read(void **state)
{
	static const struct {
		const char *label, *env, *not_env, *model, *precision, *mode;
		int64_t batch, run;
		bool profiled;
	} cases[] = {
		{ "rtx4090_resnet50_fp32_prof", "rtx4090", "", "resnet50", "fp32", "", -1, -1,
		  true },
		{ "gcp_resnet50_fp32_prof", "gcp", "", "resnet50", "fp32", "", -1, -1, true },
		{ "gcp_resnet50_fp32_bs128_run2_prof", "gcp", "", "resnet50", "fp32", "", 128, 2,
		  true },
		{ "gcp_resnet50_fp32_prof_bs128_r2", "gcp", "", "resnet50", "fp32", "", 128, 2,
		  true },
		{ "gcp_resnet50_amp_bs64_r1_20251114_120856_prof", "gcp", "", "resnet50", "amp", "",
		  64, 1, true },
		{ "gcp_resnet50_fp32_bs32_profile", "gcp", "", "resnet50", "fp32", "", 32, -1,
		  false },
		{ "prof_resnet50_fp32_bs32", "prof", "", "resnet50", "fp32", "", 32, -1, false },
		{ "cpu_resnet50_perf", "cpu", "", "resnet50", "", "", -1, -1, false },
		{ "mps_resnet50_bs64", "mps", "", "resnet50", "", "", 64, -1, false },
		{ "4090_resnet50_fp32_bs128", "", "4090", "resnet50", "fp32", "", 128, -1, false },
		{ "4090_resnet50_amp_bs256", "", "4090", "resnet50", "amp", "", 256, -1, false },
		{ "My-Lab_resnet50_fp32", "", "My-Lab", "resnet50", "fp32", "", -1, -1, false },
		{ "lab_resnet50_fp32_bs8_fwd", "lab", "", "resnet50", "fp32", "fwd", 8, -1, false },
		{ "lab_resnet50_fp32_bs8_fwd_bwd_run1", "lab", "", "resnet50", "fp32", "fwd_bwd", 8,
		  1, false },
		{ "lab_resnet50_fp32_bs8_train_prof", "lab", "", "resnet50", "fp32", "train", 8, -1,
		  true },
		{ "lab_resnet50_fp32_bs8_bwd", "lab", "", "resnet50", "fp32", "", 8, -1, false },
		{ "win4090_vgg16_fp32_prof", "win4090", "", "vgg16", "fp32", "", -1, -1, true },
		{ "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee_vgg16_fp32", "",
		  "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", "vgg16", "fp32", "", -1, -1,
		  false },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_label l;

		rfl_label_parse(cases[i].label, NULL, &l);
		assert_string_equal(l.env, cases[i].env);
		assert_string_equal(l.not_env, cases[i].not_env);
		assert_string_equal(l.model, cases[i].model);
		assert_string_equal(l.precision, cases[i].precision);
		assert_string_equal(l.mode, cases[i].mode);
		assert_int_equal(l.batch, cases[i].batch);
		assert_int_equal(l.run, cases[i].run);
		assert_int_equal(l.profiled, cases[i].profiled);
	}
}

static void stamps_are_no_part_of_a_label(void **state)
{
	static const struct {
		const char *name, *label;
	} cases[] = {
		{ "lab_vgg16_fp32_bs4_run1_20251114_120856", "lab_vgg16_fp32_bs4_run1" },
		{ "lab_vgg16_fp32_bs4_run1_20251114_120856_2", "lab_vgg16_fp32_bs4_run1" },
		{ "lab_vgg16_fp32_bs4_run1", "lab_vgg16_fp32_bs4_run1" },
		{ "lab_vgg16_fp32_bs4_20251114", "lab_vgg16_fp32_bs4_20251114" },
		{ "lab_vgg16_1_120856", "lab_vgg16_1_120856" },
		{ "lab_20251114_12085", "lab_20251114_12085" },
		{ "lab_20251114_120856_20251114_120857", "lab_20251114_120856" },
		{ "_20251114_120856", "_20251114_120856" },
		{ "20251114_120856", "20251114_120856" },
		{ "a_20251114_120856", "a" },
		{ "a_7", "a_7" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		assert_int_equal(rfl_label_unstamped(cases[i].name), strlen(cases[i].label));
		assert_memory_equal(cases[i].name, cases[i].label, strlen(cases[i].label));
	}
}

static void names_of_files_are_checked(void **state)
{
	static const char *const good[] = { "a", "cpu_resnet50_fp32_bs4_run1", "A-1.2_x" };
	static const char *const bad[] = {
		"", "../x", "a/b", "-x", ".x", "a b", "caf\xc3\xa9", "_"
	};
	char longest[RFL_LABEL_MAX + 2];
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(good); i++)
		assert_ok(rfl_label_check(good[i], &err), &err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(bad); i++)
		assert_int_equal(rfl_label_check(bad[i], NULL), RFL_EINVAL);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[RFL_LABEL_MAX + 1] = '\0';
	assert_int_equal(rfl_label_check(longest, NULL), RFL_EINVAL);
	longest[RFL_LABEL_MAX] = '\0';
	assert_ok(rfl_label_check(longest, &err), &err);
}

static void environment_has_an_order(void **state)
{
	char env[49];
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(rfl_label_env("lab", "cpu_vgg16_fp32", "vgg16", "cpu", env, &err), &err);
	assert_string_equal(env, "lab");
	assert_ok(rfl_label_env(NULL, "mac_mps_vgg16_fp32", "vgg16", "cpu", env, &err), &err);
	assert_string_equal(env, "mac_mps");
	assert_ok(rfl_label_env(NULL, "tuesday", "vgg16", "cpu", env, &err), &err);
	assert_string_equal(env, "cpu");
	assert_ok(rfl_label_env(NULL, NULL, "vgg16", "cuda", env, &err), &err);
	assert_string_equal(env, "cuda");
	assert_int_equal(rfl_label_env("My Lab", NULL, "vgg16", "cpu", env, &err), RFL_EINVAL);
	assert_says(&err, "My Lab");
}

static void add_row(const char *path, const char *label)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger_row row;

	rfl_ledger_row_init(&row);
	row.schema_version = RFL_LEDGER_SCHEMA;
	rfl_field_set(&row.label, label);
	rfl_field_set(&row.version, "1.0");
	assert_ok(rfl_ledger_append(path, &row, &err), &err);
	rfl_ledger_row_fini(&row);
}

static int64_t next_number(void *dir)
{
	const char *path = tmp_path(dir, "metrics.csv"), *time_dir = tmp_path(dir, "time");
	char label[RFL_LABEL_MAX + 1];
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_label says;

	assert_ok(rfl_label_next("lab", "vgg16", "fp32", 4, path, time_dir, label, &err), &err);
	rfl_label_parse(label, "vgg16", &says);
	assert_memory_equal(label, "lab_vgg16_fp32_bs4_run", 22);
	return says.run;
}

static void the_next_number_is_free(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	struct rfl_err err = RFL_ERR_INIT;
	char label[RFL_LABEL_MAX + 1], env[121];

	assert_int_equal(next_number(*state), 1);
	add_row(path, "lab_vgg16_fp32_bs4_run9");
	add_row(path, "lab_vgg16_fp32_bs40_run30");
	add_row(path, "lab_vgg16_fp32_bs4_run31x");
	assert_int_equal(next_number(*state), 10);
	/* a time log without its row: the run was killed between the two */
	assert_ok(rfl_file_mkdirs(tmp_path(*state, "time"), &err), &err);
	write_file(*state, "time/lab_vgg16_fp32_bs4_run14_20260101_000000.txt", "");
	write_file(*state, "time/lab_vgg16_fp32_bs4_runner_20260101_000000.txt", "");
	assert_int_equal(next_number(*state), 15);
	add_row(path, "lab_vgg16_fp32_bs4_run15_rank0");
	assert_int_equal(next_number(*state), 16);
	memset(env, 'e', sizeof(env) - 1);
	env[sizeof(env) - 1] = '\0';
	assert_int_equal(
		rfl_label_next(env, "vgg16", "fp32", 400000000000, path, "time", label, &err),
		RFL_EINVAL);
}

/* A label in another column does not count, and damage elsewhere in the table does not matter. */
static void labels_are_found_in_any_table(void **state)
{
	static const struct {
		const char *text;
		int64_t number;
	} cases[] = {
		{ "", 1 },
		{ "label\nlab_vgg16_fp32_bs4_run7\n", 8 },
		{ "label\r\nlab_vgg16_fp32_bs4_run7\r\n", 8 },
		{ "a,label\n1,\"lab_vgg16_fp32_bs4_run7\"\n", 8 },
		{ "a,label\n1,my_lab_vgg16_fp32_bs4_run7\n", 1 },
		{ "a,label\n1,lab_vgg16_fp32_bs4_run2,lab_vgg16_fp32_bs4_run3\n", 4 },
		{ "a,label\n\"1,lab_vgg16_fp32_bs4_run7", 8 },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		write_file(*state, "metrics.csv", cases[i].text);
		assert_int_equal(next_number(*state), cases[i].number);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_are_read),
		cmocka_unit_test(labels_of_profiled_runs_are_read),
		cmocka_unit_test(stamps_are_no_part_of_a_label),
		cmocka_unit_test(names_of_files_are_checked),
		cmocka_unit_test(environment_has_an_order),
		cmocka_unit_test_setup_teardown(the_next_number_is_free, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(labels_are_found_in_any_table, tmpdir_make,
						tmpdir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
