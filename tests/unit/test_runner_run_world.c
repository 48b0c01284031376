/* Runs of several processes, with the engine that computes nothing: the rows of ranks, the row of
 * all, and ranks that go wrong. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/text.h"
#include "runner/run.h"
#include "tests/unit/run_rig.h"

static char *self; /* this program is its own child */

struct tried {
	struct rfl_run_result result;
	struct rfl_ledger *ledger;
	enum rfl_rc rc;
	struct rfl_err err;
};

/* Two processes here; `vars` are "NAME=value" texts. */
static struct tried try(void **state, const char *label, const char *const *vars)
{
	struct rfl_run_config config = config_in(*state);
	const char *const child[] = { self, "run-child", NULL };
	struct tried t = { .err = RFL_ERR_INIT };
	char meeting[4200], ledger[4200];
	const char *env[16] = { meeting };
	struct rfl_run_host host = host_of(child);

	config.label = label;
	host.child_env = env;
	(void)snprintf(meeting, sizeof(meeting), "RFL_FAKE_WORLD=%s", (const char *)*state);
	for (size_t i = 0; vars && vars[i]; i++)
		env[i + 1] = vars[i];
	config.world = (struct rfl_world){
		.size = 2, .timeout_s = 3, .bucket_bytes = 1 << 20, .interconnect = "auto"
	};
	t.rc = rfl_run_local(&config, &host, &t.result, &t.err);
	(void)snprintf(ledger, sizeof(ledger), "%s/metrics.csv", (const char *)*state);
	assert_ok(rfl_ledger_load(ledger, &t.ledger, &t.err), &t.err);
	return t;
}

static void tried_fini(struct tried *t)
{
	rfl_run_result_fini(&t->result);
	rfl_ledger_free(t->ledger);
}

static const struct rfl_ledger_row *row_of(const struct tried *t, const char *label)
{
	for (size_t i = 0; i < t->ledger->nrows; i++)
		if (rfl_text_same(t->ledger->rows[i].label, label))
			return &t->ledger->rows[i];
	fail_msg("no row %s", label);
	return NULL;
}

static void every_rank_has_a_row_and_all_have_one(void **state)
{
	static const char *const slow[] = { "RFL_FAKE_MS=20,0,0", "RFL_FAKE_RANK=1", NULL };
	struct tried t = try(state, NULL, slow);
	const struct rfl_ledger_row *first, *second, *all;

	assert_ok(t.rc, &t.err);
	assert_int_equal(t.ledger->nrows, 3);
	first = row_of(&t, "lab_resnet18_fp32_bs2_w2_run1_rank0");
	second = row_of(&t, "lab_resnet18_fp32_bs2_w2_run1_rank1");
	all = row_of(&t, "lab_resnet18_fp32_bs2_w2_run1");
	assert_string_equal(all->status, "ok");
	assert_string_equal(t.result.row.label, all->label);
	assert_true(first->rank == 0 && second->rank == 1 && all->rank == -1);
	assert_true(all->world_size == 2 && first->world_size == 2);
	assert_true(first->local_rank == 0 && second->local_rank == 1 && all->local_rank == -1);
	assert_string_equal(all->interconnect, "gloo");
	assert_string_equal(all->launcher, "roofline");
	assert_true(all->repeat == 1 && first->repeat == 1);
	assert_true(first->batch == 2 && all->batch == 4 && all->micro_batch == 2);
	assert_true(all->requested_batch == 4);
	assert_true(all->model_flops_per_step == 2 * first->model_flops_per_step);
	assert_string_equal(all->config_hash, first->config_hash);
	/* the slowest decides: rank 1, who sleeps 20 ms a step */
	assert_true(second->wall_s > first->wall_s && all->wall_s == second->wall_s);
	assert_true(all->step_ms_median == second->step_ms_median);
	assert_true(all->step_ms_median >= 20);
	assert_close(all->samples_per_s, 4 * 6 / second->wall_s, 1e-12);
	assert_close(all->loss_last, (first->loss_last + second->loss_last) / 2, 1e-12);
	assert_true(all->host_peak_bytes >= first->host_peak_bytes);
	tried_fini(&t);
	/* the next number, in all of them */
	t = try(state, NULL, NULL);
	(void)row_of(&t, "lab_resnet18_fp32_bs2_w2_run2_rank1");
	(void)row_of(&t, "lab_resnet18_fp32_bs2_w2_run2");
	tried_fini(&t);
}

static void labels_name_the_rank(void **state)
{
	struct tried t = try(state, "mine", NULL);

	assert_ok(t.rc, &t.err);
	(void)row_of(&t, "mine_rank0");
	(void)row_of(&t, "mine_rank1");
	(void)row_of(&t, "mine");
	tried_fini(&t);
}

static void the_others_end_when_one_dies(void **state)
{
	static const char *const vars[] = { "RFL_FAKE=kill:step:3", "RFL_FAKE_RANK=1", NULL };
	struct tried t = try(state, "x", vars);
	const struct rfl_ledger_row *all;

	assert_ok(t.rc, &t.err);
	assert_int_equal(t.result.rc == RFL_OK, 0);
	assert_string_equal(row_of(&t, "x_rank1")->status, "crash");
	assert_non_null(strstr(row_of(&t, "x_rank1")->error_text, "killed by signal 9"));
	/* the fake's rank 0 measures alone, and waits for rank 1 at the end */
	all = row_of(&t, "x");
	assert_string_not_equal(all->status, "ok");
	assert_true(isnan(all->samples_per_s));
	tried_fini(&t);
}

static void who_does_not_come_is_named(void **state)
{
	static const char *const vars[] = { "RFL_FAKE=exit:open:0", NULL };
	static const char *const none[] = { "RFL_FAKE_LACKS=join", NULL };
	struct tried t = try(state, "x", vars);

	assert_string_equal(row_of(&t, "x")->status, "crash");
	tried_fini(&t);
	t = try(state, "y", none);
	assert_string_equal(row_of(&t, "y")->status, "unsupported");
	assert_non_null(strstr(row_of(&t, "y")->error_text, "leave out --world"));
	tried_fini(&t);
}

static void a_rank_alone_says_who_is_missing(void **state)
{
	struct rfl_run_config config = config_in(*state);
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_result result;
	struct rfl_err err = RFL_ERR_INIT;
	char meeting[4200];
	const char *const env[] = { meeting, NULL };
	struct rfl_run_host host = host_of(child);

	config.label = "x";
	host.child_env = env;
	(void)snprintf(meeting, sizeof(meeting), "RFL_FAKE_WORLD=%s", (const char *)*state);
	config.world = (struct rfl_world){ .rank = 0,
					   .size = 3,
					   .port = 1,
					   .timeout_s = 0.2,
					   .bucket_bytes = 1 << 20,
					   .interconnect = "auto" };
	assert_ok(rfl_run(&config, &host, &result, &err), &err);
	assert_int_equal(result.rc, RFL_ETIMEOUT);
	assert_string_equal(result.row.label, "x");
	assert_string_equal(result.row.status, "timeout");
	assert_non_null(strstr(result.row.error_text, "missing: rank 1"));
	rfl_run_result_fini(&result);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, tmpdir_make, tmpdir_remove)
		T(every_rank_has_a_row_and_all_have_one), T(labels_name_the_rank),
		T(the_others_end_when_one_dies),          T(who_does_not_come_is_named),
		T(a_rank_alone_says_who_is_missing),
	};
	int rc;

	if (argc == 2 && strcmp(argv[1], "run-child") == 0)
		return rfl_run_child(STDIN_FILENO, RFL_RUN_REPORT_FD, NULL, NULL, NULL) == RFL_OK
			       ? 0
			       : 1;
	self = rfl_proc_self(NULL);
	rc = self ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
	free(self);
	return rc;
}
