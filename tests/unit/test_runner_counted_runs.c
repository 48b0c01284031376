/*
 * Whole runs with counted steps: what becomes of them in the ledger and in counters.csv, and that
 * nothing of it touches the run. This program is its own child: "run-child" measures with the
 * source of fake_source.h.
 */
#include "tests/unit/fake_source.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/proc.h"
#include "profile/capture.h"
#include "runner/run.h"
#include "tests/unit/run_rig.h"

static char *self;

static enum rfl_rc source_for(const char *backend, const struct rfl_source_ops **ret,
			      struct rfl_err *err)
{
	if (is_told("none"))
		return rfl_fail(err, RFL_ENOTFOUND, 0, "no source of counters serves '%s'",
				backend);
	*ret = &source;
	return RFL_OK;
}

static enum rfl_device device = RFL_DEVICE_CPU;

static struct rfl_run_config counted_config(void)
{
	struct rfl_run_config config = small_config();

	config.counters = RFL_DETAIL_PHASE;
	config.device = (int)device;
	return config;
}

/* The first counted step is call 7 (from 0) of each phase: 1 warm-up, 6 in the window. */
static void run_told(const char *dir, const char *engine, const char *how, bool in_process,
		     struct rfl_run_result *ret)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = counted_config();
	const struct rfl_run_host host = {
		.command_line = "roofline run",
		.child_argv = child,
		.source_for = source_for,
	};
	struct rfl_err err = RFL_ERR_INIT;

	config.env = "lab";
	config.log_dir = dir;
	config.in_process = in_process;
	config.timeout_s = engine && strstr(engine, "hang") ? 4.0 : 0;
	setenv("RFL_FAKE", engine ? engine : "", 1);
	setenv("RFL_TEST_SOURCE", how ? how : "", 1);
	assert_ok(rfl_run(&config, &host, ret, &err), &err);
	unsetenv("RFL_FAKE");
	unsetenv("RFL_TEST_SOURCE");
}

/* Remarks of an engine on how it was opened follow its name. */
static void assert_first_line(const char *path, const char *expected)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	assert_ok(rfl_file_read(path, &text, &err), &err);
	if (strncmp(rfl_buf_str(&text), expected, strlen(expected)) != 0)
		fail_msg("%s is\n%s, not\n%s", path, rfl_buf_str(&text), expected);
	rfl_buf_fini(&text);
}

static struct rfl_ledger *load(const char *dir)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger *l = NULL;
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/metrics.csv", dir);
	assert_ok(rfl_ledger_load(path, &l, &err), &err);
	return l;
}

/* Three passes over one step: 3 more forwards, of which one update remains. */
static void a_counted_run_is_recorded(void **state)
{
	for (int in_process = 0; in_process < 2; in_process++) {
		const char *dir = tmp_path(*state, in_process ? "here" : "child");
		const char *log = tmp_path(*state, "calls");
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_run_result result;
		struct rfl_captures captures;
		struct rfl_ledger *l;
		char expected[4096];

		setenv("RFL_FAKE_LOG", log, 1);
		run_told(dir, NULL, NULL, in_process, &result);
		unsetenv("RFL_FAKE_LOG");
		assert_first_line(
			log, "forward=10 backward=10 step=10 snapshot=1 restore=2 updates=8\n");
		l = load(dir);
		assert_int_equal(l->nrows, 1);
		assert_string_equal(l->rows[0].status, "ok");
		assert_string_equal(l->rows[0].counters_status, "ok");
		assert_string_equal(l->rows[0].counters_source, "fake");
		assert_int_equal(l->rows[0].counter_passes, PASSES);
		assert_close(l->rows[0].counted_flops_per_step, 300, 0);
		assert_close(l->rows[0].counted_dram_bytes_per_step, 4500, 0);
		assert_close(l->rows[0].ipc, 0.75, 0);
		assert_close(l->rows[0].effective_clock_hz, 1600, 0);
		assert_true(isnan(l->rows[0].idle_dram_bytes_per_s));
		assert_true(isnan(l->rows[0].selftest_flops_ratio));

		(void)snprintf(expected, sizeof(expected), "%s/counters.csv", dir);
		assert_string_equal(result.counters_file, expected);
		rfl_captures_init(&captures);
		assert_ok(rfl_counters_load(expected, NULL, 0, &captures, &err), &err);
		assert_int_equal(captures.n, 1);
		assert_string_equal(captures.captures[0]->label, l->rows[0].label);
		assert_string_equal(captures.captures[0]->run_id, l->rows[0].run_id);
		assert_int_equal(captures.captures[0]->steps, 1);
		assert_close(range_of(captures.captures[0], "bwd")->amount[RFL_QUANTITY_DRAM].value,
			     1500, 0);
		rfl_captures_fini(&captures);
		rfl_ledger_free(l);
		rfl_run_result_fini(&result);
	}
}

/* Whatever becomes of the counted steps, the run is ok and says what became of them. */
static void every_end_of_counting_has_its_status(void **state)
{
	static const struct {
		const char *engine, *source, *status, *counters;
	} cases[] = {
		{ "segv:forward:7", NULL, "ok", "crash: signal 11 (Segmentation fault)" },
		{ "kill:backward:9", NULL, "ok", "crash: signal 9 (Killed)" },
		{ NULL, "segv", "ok", "crash: signal 11 (Segmentation fault)" },
		{ "exit:step:8", NULL, "ok", "crash: exit code 9, before counting was complete" },
		{ NULL, "exit", "ok", "crash: exit code 7, before counting was complete" },
		{ "fail:backward:7", NULL, "ok", "failed: fake: asked to fail at backward 7" },
		{ "edevmem:snapshot", NULL, "ok", "failed: fake: no memory left for 7 GiB" },
		{ "fail:restore:1", NULL, "ok", "failed: fake: asked to fail at restore 1" },
		{ "hang:forward:8", NULL, "ok", "timeout: not finished after " },
		{ NULL, "unavailable", "ok",
		  "unavailable: fake source: the driver refuses counters: ask root to allow them" },
		{ NULL, "none", "ok", "unavailable: no source of counters serves 'cpu'" },
		{ NULL, "no-flops", "ok", "partial: flops.total: " },
		{ "segv:close", NULL, "ok", "ok" },
		{ NULL, "exit-late", "ok",
		  "partial: flops: the run ended before this was counted; crash: exit code 7" },
		{ NULL, "hang-late", "ok",
		  "partial: flops: the run ended before this was counted; timeout: not finished "
		  "after "
		  "0.2 s; leave flops out of --counter-sets" },
		{ "nan:forward:6", NULL, "nan", "ok" },
		{ "kill:forward:3", NULL, "crash",
		  "unavailable: the run ended before its counted steps" },
	};
	const char *dir = tmp_path(*state, "logs");

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_run_result r;

		run_told(dir, cases[i].engine, cases[i].source, false, &r);
		assert_string_equal(r.row.status, cases[i].status);
		if (strncmp(r.row.counters_status, cases[i].counters, strlen(cases[i].counters)))
			fail_msg("%zu: '%s'", i, r.row.counters_status);
		assert_int_equal(isnan(r.row.wall_s), strcmp(cases[i].status, "crash") == 0);
		/* half a capture is none */
		assert_int_equal(r.row.counters_source != NULL,
				 strcmp(r.row.counters_status, "ok") == 0 ||
					 strncmp(r.row.counters_status, "partial", 7) == 0);
		assert_int_equal(r.counters_file[0] != '\0', r.row.counters_source != NULL);
		rfl_run_result_fini(&r);
	}
}

/* Before the engine's probe, which fails until the source is open, and closed whatever becomes of
 * the run. On a CPU it is not opened ahead. */
static void the_source_is_opened_before_the_engine(void **state)
{
	const char *dir = tmp_path(*state, "logs");
	struct rfl_run_result r;

	device = RFL_DEVICE_CUDA;
	for (int fails = 0; fails < 2; fails++) {
		opened = closed = 0;
		run_told(dir, fails ? "fail:open" : NULL, NULL, true, &r);
		unsetenv("RFL_FAKE_DEVICE");
		assert_string_equal(r.row.status, fails ? "failed" : "ok");
		assert_int_equal(opened, 1);
		assert_int_equal(closed, 1);
		rfl_run_result_fini(&r);
	}
	device = RFL_DEVICE_CPU;
	opened = 0;
	run_told(dir, NULL, NULL, true, &r);
	assert_string_equal(r.row.status, "ok");
	assert_int_equal(opened, 0);
	rfl_run_result_fini(&r);
}

static void large_tables_arrive_whole(void **state)
{
	const char *dir = tmp_path(*state, "logs"), *path = tmp_path(*state, "logs/counters.csv");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;
	struct rfl_captures captures;
	char name[128];

	run_told(dir, NULL, "many", false, &result);
	assert_string_equal(result.row.counters_status, "ok");
	assert_true(rfl_file_size(path) > 8 * (32 << 10)); /* several events */
	rfl_captures_init(&captures);
	assert_ok(rfl_counters_load(path, NULL, 0, &captures, &err), &err);
	for (int i = 0; i < 700; i += 233) {
		(void)snprintf(name, sizeof(name),
			       "kernel<%d, \"\xc3\xa4\xe2\x82\xac\">\n\xf0\x9f\x8c\x8d", i);
		assert_int_equal(range_of(captures.captures[0], name)->kind, RFL_RANGE_KERNEL);
	}
	rfl_captures_fini(&captures);
	rfl_run_result_fini(&result);

	run_told(dir, NULL, "latin", false, &result); /* no UTF-8: shown as '?', not lost */
	assert_string_equal(result.row.counters_status, "ok");
	rfl_run_result_fini(&result);
	rfl_captures_init(&captures);
	assert_ok(rfl_counters_load(path, NULL, 0, &captures, &err), &err);
	assert_int_equal(captures.n, 2);
	assert_int_equal(captures.captures[1]->nranges, captures.captures[0]->nranges);
	assert_close(captures.captures[1]->total[RFL_QUANTITY_DRAM].value,
		     captures.captures[0]->total[RFL_QUANTITY_DRAM].value, 0);
	rfl_captures_fini(&captures);
}

/* What was counted over other ranges makes no ratio; idle bytes are a rate. */
static void ratios_are_of_the_same_ranges(void **state)
{
	const char *dir = tmp_path(*state, "logs");
	struct rfl_run_result r;

	run_told(dir, NULL, "few-instructions", true, &r);
	assert_true(isnan(r.row.ipc));
	assert_close(r.row.effective_clock_hz, 1600, 0);
	rfl_run_result_fini(&r);
	run_told(dir, NULL, "idle", true, &r);
	assert_close(r.row.idle_dram_bytes_per_s, 3000, 0);
	assert_close(r.row.counted_dram_bytes_per_step, 4500, 0); /* in no total */
	rfl_run_result_fini(&r);
}

/* The report of the child on its way to the parent: a piece is lost, or everything after a byte. */
static void half_a_count_is_none(void **state)
{
	static const struct {
		const char *filter, *status;
	} cases[] = {
		{ "awk '/\"counters\"/ && n++ == 1 { next } { print; fflush() }'",
		  "bytes of counts arrived from the run's child" },
		{ "head -c 50000", "crash: exit code 0, before counting was complete" },
		{ "cat", "ok" },
	};
	const char *dir = tmp_path(*state, "logs");

	setenv("RFL_TEST_SOURCE", "many", 1);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		char command[8192];
		const char *const child[] = { "/bin/sh", "-c", command, NULL };
		struct rfl_run_config config = counted_config();
		const struct rfl_run_host host = {
			.command_line = "roofline run",
			.child_argv = child,
		};
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_run_result r;

		config.log_dir = dir;
		(void)snprintf(command, sizeof(command), "exec 4>&3; '%s' run-child 3>&1 | %s >&4",
			       self, cases[i].filter);
		assert_ok(rfl_run(&config, &host, &r, &err), &err);
		assert_string_equal(r.row.status, "ok");
		if (!strstr(r.row.counters_status, cases[i].status))
			fail_msg("%zu: '%s'", i, r.row.counters_status);
		assert_int_equal(rfl_file_exists(tmp_path(*state, "logs/counters.csv")),
				 strcmp(cases[i].status, "ok") == 0);
		assert_int_equal(isnan(r.row.counted_flops_per_step),
				 strcmp(cases[i].status, "ok") != 0);
		rfl_run_result_fini(&r);
	}
	unsetenv("RFL_TEST_SOURCE");
}

/* After the run was checked. */
static void put_in_the_way(const struct rfl_run_progress *progress, void *dir)
{
	(void)progress;
	write_file(dir, "steps", "in the way of a directory\n");
}

/* One file that cannot be written keeps neither the others back nor the row. */
static void counts_are_kept_beside_a_file_that_fails(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = counted_config();
	const struct rfl_run_host host = {
		.command_line = "roofline run",
		.child_argv = child,
		.progress = put_in_the_way,
		.ctx = *state,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result r;
	struct rfl_ledger *l;

	config.log_dir = *state;
	assert_int_equal(rfl_run(&config, &host, &r, &err), RFL_EIO);
	assert_says(&err, "steps");
	assert_string_not_equal(r.counters_file, "");
	assert_string_not_equal(r.time_log, "");
	rfl_run_result_fini(&r);
	l = load(*state);
	assert_int_equal(l->nrows, 1);
	assert_string_equal(l->rows[0].counters_status, "ok");
	rfl_ledger_free(l);
}

/* Off means off: nothing more is run, nothing is written, and the row is empty there. */
static void without_counters_nothing_is_counted(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = counted_config();
	const struct rfl_run_host host = {
		.command_line = "roofline run",
		.child_argv = child,
	};
	const char *log = tmp_path(*state, "calls");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result, again;

	config.log_dir = *state;
	config.counters = RFL_DETAIL_OFF;
	setenv("RFL_FAKE_LOG", log, 1);
	assert_ok(rfl_run(&config, &host, &result, &err), &err);
	unsetenv("RFL_FAKE_LOG");
	assert_first_line(log, "forward=7 backward=7 step=7 snapshot=0 restore=0 updates=7\n");
	assert_null(result.row.counters_status);
	assert_string_equal(result.counters_file, "");
	assert_false(rfl_file_exists(tmp_path(*state, "counters.csv")));
	config.counters = RFL_DETAIL_LAYER; /* counted or not, it is a repeat */
	assert_ok(rfl_run(&config, &host, &again, &err), &err);
	assert_string_equal(again.row.config_hash, result.row.config_hash);
	rfl_run_result_fini(&again);
	rfl_run_result_fini(&result);
}

/* What could not be written afterwards is refused before. */
static void foreign_tables_are_refused_first(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = counted_config();
	const struct rfl_run_host host = {
		.command_line = "roofline run",
		.child_argv = child,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;

	config.log_dir = *state;
	write_file(*state, "counters.csv", "metric,value\n");
	assert_int_equal(rfl_run(&config, &host, &result, &err), RFL_EFORMAT);
	assert_says(&err, "counters.csv:1: column 1 is 'metric' instead of 'schema_version'");
	rfl_run_result_fini(&result);
	assert_false(rfl_file_exists(tmp_path(*state, "metrics.csv")));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_counted_run_is_recorded, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(every_end_of_counting_has_its_status, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(the_source_is_opened_before_the_engine, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(large_tables_arrive_whole, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(ratios_are_of_the_same_ranges, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(half_a_count_is_none, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(counts_are_kept_beside_a_file_that_fails,
						tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(without_counters_nothing_is_counted, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(foreign_tables_are_refused_first, tmpdir_make,
						tmpdir_remove),
	};
	int failed;

	self = rfl_proc_self(NULL);
	if (!self)
		return 1;
	if (argc == 2 && strcmp(argv[1], "run-child") == 0)
		failed = rfl_run_child(STDIN_FILENO, RFL_RUN_REPORT_FD, source_for, NULL, NULL) !=
			 RFL_OK;
	else
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(self);
	return failed;
}
