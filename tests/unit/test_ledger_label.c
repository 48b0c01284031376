/*
 * Names of runs: what they say, which are allowed, which comes next.
 */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Rows with a version, as whole ones have, and so many bytes that a large ledger is soon there. */
static void add_rows(const char *path, const char *label, size_t n)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger_row *rows = calloc(n, sizeof(*rows));
	char text[1001];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < n; i++) {
		rfl_ledger_row_init(&rows[i]);
		rows[i].schema_version = RFL_LEDGER_SCHEMA;
		assert_ok(rfl_field_set(&rows[i].label, label, &err), &err);
		assert_ok(rfl_field_set(&rows[i].error_text, text, &err), &err);
		assert_ok(rfl_field_set(&rows[i].version, "1.0", &err), &err);
	}
	assert_ok(rfl_ledger_append_rows(path, rows, n, &err), &err);
	for (size_t i = 0; i < n; i++)
		rfl_ledger_row_fini(&rows[i]);
	free(rows);
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
	add_rows(path, "lab_vgg16_fp32_bs4_run9", 1);
	add_rows(path, "lab_vgg16_fp32_bs40_run30", 1);
	add_rows(path, "lab_vgg16_fp32_bs4_run31x", 1);
	assert_int_equal(next_number(*state), 10);
	/* a time log without its row: the run was killed between the two */
	assert_ok(rfl_file_mkdirs(tmp_path(*state, "time"), &err), &err);
	write_file(*state, "time/lab_vgg16_fp32_bs4_run14_20260101_000000.txt", "");
	write_file(*state, "time/lab_vgg16_fp32_bs4_runner_20260101_000000.txt", "");
	assert_int_equal(next_number(*state), 15);
	add_rows(path, "lab_vgg16_fp32_bs4_run15_rank0", 1);
	assert_int_equal(next_number(*state), 16);
	memset(env, 'e', sizeof(env) - 1);
	env[sizeof(env) - 1] = '\0';
	assert_int_equal(
		rfl_label_next(env, "vgg16", "fp32", 400000000000, path, "time", label, &err),
		RFL_EINVAL);
}

static void rewrite(const char *path, const char *was, const char *is)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text = { 0 };
	char *at;

	assert_ok(rfl_file_read(path, &text, &err), &err);
	for (at = text.data; (at = strstr(at, was)) != NULL; at += strlen(is))
		memcpy(at, is, strlen(is));
	assert_ok(rfl_file_write(path, text.data, text.len, &err), &err);
	rfl_buf_fini(&text);
}

/* Every way in which the kept numbers may be outdated, of another file, or damaged. */
static void numbers_of_a_large_ledger_are_kept(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	const char *kept = tmp_path(*state, "metrics.labels");
	struct stat before, after;
	int64_t size;

	add_rows(path, "lab_vgg16_fp32_bs4_run8", 10);
	assert_int_equal(next_number(*state), 9);
	assert_false(rfl_file_exists(kept)); /* not worth it */
	add_rows(path, "other_vgg16_fp32_bs4_run70", 1500);
	assert_int_equal(next_number(*state), 9);
	assert_int_equal(stat(kept, &before), 0);

	/* the beginning is not read again: what is kept of it counts */
	size = before.st_size;
	add_rows(path, "lab_vgg16_fp32_bs4_run9", 1);
	assert_int_equal(next_number(*state), 10);
	assert_int_equal(stat(kept, &after), 0);
	assert_true(after.st_ino == before.st_ino && after.st_size == size);
	add_rows(path, "lab_vgg16_fp32_bs4_run11", 1500);
	assert_int_equal(next_number(*state), 12);
	assert_int_equal(stat(kept, &after), 0);
	assert_true(after.st_ino != before.st_ino);

	/* a row that is torn: the next append sets it aside */
	assert_int_equal(truncate(path, (off_t)rfl_file_size(path) - 20), 0);
	assert_int_equal(next_number(*state), 12);
	add_rows(path, "lab_vgg16_fp32_bs4_run12", 1);
	assert_int_equal(next_number(*state), 13);

	/* a row that was not added has a time log, which counts when the file is made again */
	assert_int_equal(mkdir(tmp_path(*state, "time"), 0777), 0);
	write_file(*state, "time/lab_vgg16_fp32_bs4_run13_20260101_000000.txt", "");
	rfl_label_forget(path);
	assert_false(rfl_file_exists(kept));
	assert_int_equal(next_number(*state), 14);
	assert_int_equal(
		unlink(tmp_path(*state, "time/lab_vgg16_fp32_bs4_run13_20260101_000000.txt")), 0);
	rfl_label_forget(path);
	assert_int_equal(next_number(*state), 13);

	/* damaged, of another version, cut, empty: made anew */
	rewrite(kept, "_run\n", "_rum\n");
	assert_int_equal(next_number(*state), 13);
	rewrite(kept, "labels 1", "labels 2");
	assert_int_equal(next_number(*state), 13);
	assert_int_equal(truncate(kept, 60), 0);
	assert_int_equal(next_number(*state), 13);
	write_file(*state, "metrics.labels", "");
	assert_int_equal(next_number(*state), 13);

	/* the ledger is another: replaced, or cut in place */
	rewrite(path, "bs4_run11", "bs4_run99");
	assert_int_equal(next_number(*state), 100);
	assert_int_equal(truncate(path, 1000), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(next_number(*state), 1);
	add_rows(path, "lab_vgg16_fp32_bs4_run2", 1500);
	assert_int_equal(next_number(*state), 3);
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
		cmocka_unit_test_setup_teardown(numbers_of_a_large_ledger_are_kept, tmpdir_make,
						tmpdir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
