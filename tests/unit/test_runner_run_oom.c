/*
 * Batches that do not fit: which one is tried next, under which label, and what the rows say. The
 * engine finds no memory for more than RFL_FAKE_FITS samples.
 */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/run.h"
#include "tests/unit/run_rig.h"

/* As timm's decay of batch sizes goes. */
static void shrinking_goes_down_in_halves(void **state)
{
	static const int64_t steps[] = { 1024, 768, 512, 384, 256, 192, 128, 96, 64, 48, 32,
					 24,   16,  12,  8,   6,   4,   3,   2,  1,  0 };

	(void)state;
	for (size_t i = 1; i < RFL_ARRAY_LEN(steps); i++)
		assert_int_equal(rfl_oom_smaller(steps[i - 1]), steps[i]);
	assert_int_equal(rfl_oom_smaller(100), 96);
	assert_int_equal(rfl_oom_smaller(70), 64);
	assert_int_equal(rfl_oom_smaller(5), 4);
}

static void searching_doubles_and_halves(void **state)
{
	(void)state;
	assert_int_equal(rfl_oom_between(8, 0), 16);
	assert_int_equal(rfl_oom_between((int64_t)1 << 20, 0), 0); /* an end to everything */
	assert_int_equal(rfl_oom_between(8, 16), 12);
	assert_int_equal(rfl_oom_between(12, 13), 0);
	assert_int_equal(rfl_oom_between(0, 8), 4);
	assert_int_equal(rfl_oom_between(0, 1), 0);
}

static void count(const struct rfl_ledger_row *row, int64_t next, void *ctx)
{
	(void)row, (void)next;
	++*(int *)ctx;
}

static struct rfl_ledger *run_policy(void *state, struct rfl_run_config config,
				     enum rfl_oom_policy policy, const char *label,
				     const char *fits, struct rfl_run_result *ret)
{
	int attempts = 0;
	const char *dir = tmp_path(state, "logs");
	const struct rfl_run_host host = {
		.command_line = "roofline run",
		.cell = "0123456789abcdef",
		.attempt = count,
		.ctx = &attempts,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger *ledger;
	char path[4096];

	config.oom = policy;
	config.label = label;
	config.env = "lab";
	config.log_dir = dir;
	config.in_process = true;
	setenv("RFL_FAKE_FITS", fits, 1);
	assert_ok(rfl_run_fitting(&config, &host, ret, &err), &err);
	unsetenv("RFL_FAKE_FITS");
	snprintf(path, sizeof(path), "%s/metrics.csv", dir);
	assert_ok(rfl_ledger_load(path, &ledger, &err), &err);
	assert_int_equal(ledger->nrows, attempts + 1);
	for (size_t i = 0; i < ledger->nrows; i++)
		assert_string_equal(ledger->rows[i].cell, "0123456789abcdef");
	return ledger;
}

struct want {
	int64_t batch;
	const char *status, *label;
};

static void assert_rows(const struct rfl_ledger *l, const struct want *want, size_t n)
{
	assert_int_equal(l->nrows, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(l->rows[i].batch, want[i].batch);
		assert_string_equal(l->rows[i].status, want[i].status);
		assert_string_equal(l->rows[i].label, want[i].label);
	}
}

static void recording_tries_once(void **state)
{
	static const struct want want[] = { { 8, "oom", "lab_resnet18_fp32_bs8_run1" } };
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;
	struct rfl_ledger *l;

	config.micro_batch = 8;
	l = run_policy(*state, config, RFL_OOM_RECORD, NULL, "5", &r);
	assert_rows(l, want, RFL_ARRAY_LEN(want));
	assert_int_equal(r.rc, RFL_EDEVMEM);
	assert_int_equal(l->rows[0].requested_batch, 8);
	rfl_ledger_free(l);
	rfl_run_result_fini(&r);
}

static void shrinking_ends_where_it_fits(void **state)
{
	static const struct want want[] = {
		{ 16, "oom", "big_bs16_run3" }, { 12, "oom", "big_bs12_run3" },
		{ 8, "oom", "big_bs8_run3" },   { 6, "oom", "big_bs6_run3" },
		{ 4, "ok", "big_bs4_run3" },
	};
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;
	struct rfl_ledger *l;

	config.micro_batch = 16;
	l = run_policy(*state, config, RFL_OOM_SHRINK, "big_bs16_run3", "5", &r);
	assert_rows(l, want, RFL_ARRAY_LEN(want));
	assert_string_equal(r.row.status, "ok");
	assert_int_equal(r.row.batch, 4);
	assert_int_equal(r.row.requested_batch, 16);
	rfl_ledger_free(l);
	rfl_run_result_fini(&r);
}

static void searching_finds_the_largest(void **state)
{
	static const struct want want[] = {
		{ 2, "ok", "lab_resnet18_fp32_bs2_run1" },
		{ 4, "ok", "lab_resnet18_fp32_bs4_run1" },
		{ 8, "ok", "lab_resnet18_fp32_bs8_run1" },
		{ 16, "oom", "lab_resnet18_fp32_bs16_run1" },
		{ 12, "oom", "lab_resnet18_fp32_bs12_run1" },
		{ 10, "ok", "lab_resnet18_fp32_bs10_run1" },
		{ 11, "ok", "lab_resnet18_fp32_bs11_run1" },
	};
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;
	struct rfl_ledger *l = run_policy(*state, config, RFL_OOM_SEARCH, NULL, "11", &r);

	assert_rows(l, want, RFL_ARRAY_LEN(want));
	assert_int_equal(r.row.batch, 11);
	assert_int_equal(r.row.requested_batch, 2);
	rfl_ledger_free(l);
	rfl_run_result_fini(&r);
}

/* From above: the one that was asked for does not fit. A label without a batch gets one. Of two
 * forwards per step each has half of the step's samples. */
static void searching_comes_down_too(void **state)
{
	static const struct want want[] = {
		{ 16, "oom", "mine" },
		{ 8, "oom", "mine_bs4" },
		{ 4, "ok", "mine_bs2" },
		{ 6, "ok", "mine_bs3" },
	};
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;
	struct rfl_ledger *l;

	config.micro_batch = 8;
	config.accum = 2;
	l = run_policy(*state, config, RFL_OOM_SEARCH, "mine", "3", &r);
	assert_rows(l, want, RFL_ARRAY_LEN(want));
	assert_int_equal(r.row.micro_batch, 3);
	assert_int_equal(r.row.requested_batch, 16);
	rfl_ledger_free(l);
	rfl_run_result_fini(&r);
}

static void nothing_fits(void **state)
{
	static const struct want want[] = {
		{ 2, "oom", "lab_resnet18_fp32_bs2_run1" },
		{ 1, "oom", "lab_resnet18_fp32_bs1_run1" },
	};
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;
	struct rfl_ledger *l = run_policy(*state, config, RFL_OOM_SHRINK, NULL, "0", &r);

	assert_rows(l, want, RFL_ARRAY_LEN(want));
	assert_string_equal(r.row.status, "oom");
	assert_int_equal(r.row.batch, 1);
	rfl_ledger_free(l);
	rfl_run_result_fini(&r);
}

/* A loss that is none needs as much memory as another. */
static void a_loss_that_is_none_fits(void **state)
{
	static const struct want want[] = {
		{ 8, "oom", "lab_resnet18_fp32_bs8_run1" },
		{ 6, "nan", "lab_resnet18_fp32_bs6_run1" },
	};
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;
	struct rfl_ledger *l;

	config.micro_batch = 8;
	setenv("RFL_FAKE", "nan:forward:6", 1);
	l = run_policy(*state, config, RFL_OOM_SHRINK, NULL, "7", &r);
	unsetenv("RFL_FAKE");
	assert_rows(l, want, RFL_ARRAY_LEN(want));
	assert_string_equal(r.row.status, "nan");
	rfl_ledger_free(l);
	rfl_run_result_fini(&r);
}

/* From one to a number in the middle of nowhere: as many attempts as it takes. */
static void a_search_has_no_end_but_its_own(void **state)
{
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;
	struct rfl_ledger *l;

	config.arch = "tiny_lm";
	config.image_size = 0;
	config.context_length = 1;
	config.micro_batch = 1;
	config.warmup = 0;
	config.iters = 1;
	l = run_policy(*state, config, RFL_OOM_SEARCH, NULL, "98765", &r);
	assert_int_equal(r.row.batch, 98765);
	assert_true(l->nrows > 32);
	rfl_ledger_free(l);
	rfl_run_result_fini(&r);
}

static void a_label_must_have_room_for_the_batch(void **state)
{
	const struct rfl_run_host host = host_of(NULL);
	struct rfl_run_config config = config_in(*state);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result r;

	config.in_process = true;
	config.oom = RFL_OOM_SEARCH;
	config.label = "l123456789012345678901234567890123456789012345678901234567890123456789"
		       "0123456789012345678901234567890123456789012345678901234567890123456789"
		       "0123456789012345678901234567890123456789012345678901234567890123456789";
	assert_true(strlen(config.label) > RFL_LABEL_MAX - 10);
	assert_int_equal(rfl_run_fitting(&config, &host, &r, &err), RFL_EINVAL);
	assert_says(&err, "too long for --oom search, which adds the batch");
	rfl_run_result_fini(&r);
}

/* Anything but running out of memory ends it. */
static void another_failure_ends_it(void **state)
{
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;
	struct rfl_ledger *l;

	setenv("RFL_FAKE", "fail:backward:0", 1);
	l = run_policy(*state, config, RFL_OOM_SEARCH, NULL, "5", &r);
	unsetenv("RFL_FAKE");
	assert_int_equal(l->nrows, 1);
	assert_string_equal(r.row.status, "failed");
	rfl_ledger_free(l);
	rfl_run_result_fini(&r);
}

/* Where the steps of a run go, there is a file once it is measured. */
static void block_steps(const struct rfl_run_progress *progress, void *ctx)
{
	if (strcmp(progress->phase, "window") == 0)
		write_file(ctx, "logs/steps", "");
}

/* The run that fits is the result, though not all of it could be written. */
static void the_result_is_what_was_recorded(void **state)
{
	const struct rfl_run_host host = {
		.command_line = "roofline run",
		.progress = block_steps,
		.ctx = *state,
	};
	struct rfl_run_config config = small_config();
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result r;

	config.oom = RFL_OOM_SHRINK;
	config.label = "big_bs6";
	config.env = "lab";
	config.log_dir = tmp_path(*state, "logs");
	config.in_process = true;
	config.micro_batch = 6;
	setenv("RFL_FAKE_FITS", "5", 1);
	assert_int_equal(rfl_run_fitting(&config, &host, &r, &err), RFL_EIO);
	unsetenv("RFL_FAKE_FITS");
	assert_says(&err, "steps: not a directory");
	assert_true(r.recorded);
	assert_string_equal(r.row.status, "ok");
	assert_int_equal(r.row.batch, 4);
	rfl_run_result_fini(&r);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shrinking_goes_down_in_halves),
		cmocka_unit_test(searching_doubles_and_halves),
		TEST(recording_tries_once),
		TEST(shrinking_ends_where_it_fits),
		TEST(searching_finds_the_largest),
		TEST(searching_comes_down_too),
		TEST(nothing_fits),
		TEST(a_loss_that_is_none_fits),
		TEST(a_search_has_no_end_but_its_own),
		TEST(a_label_must_have_room_for_the_batch),
		TEST(another_failure_ends_it),
		TEST(the_result_is_what_was_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
