/* A program that is started in two steps: nothing runs before the second, and how it ended is
 * known. Signals, streams and daemons are in tests/cli/cases/profile. */
#include "tests/unit/rfl_test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/launch.h"

static void runs_after_go(void **state)
{
	char script[600], path[512];
	struct rfl_err err = RFL_ERR_INIT;
	const char *env[] = { "RFL_TEST_WORD=7", NULL };
	const char *argv[] = { "sh", "-c", script, NULL };
	const struct rfl_launch_spec spec = { .argv = argv, .env = env };
	struct rfl_launch *l = NULL;
	struct rfl_proc_result r;

	(void)snprintf(path, sizeof(path), "%s/ran", (const char *)*state);
	(void)snprintf(script, sizeof(script), "echo >'%s'; exit $RFL_TEST_WORD", path);
	assert_ok(rfl_launch_new(&spec, &l, &err), &err);
	assert_int_equal(kill(rfl_launch_pid(l), 0), 0);
	(void)nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	assert_false(rfl_file_exists(path));
	rfl_launch_free(l);
	assert_false(rfl_file_exists(path));

	assert_ok(rfl_launch_new(&spec, &l, &err), &err);
	assert_ok(rfl_launch_go(l, &err), &err);
	assert_ok(rfl_launch_wait(l, &r, &err), &err);
	assert_true(r.exited && r.exit_code == 7 && r.wall_s > 0 && r.max_rss_bytes > 0);
	assert_true(rfl_file_exists(path));
	rfl_launch_free(l);
	rfl_launch_free(NULL);
}

static void reports_what_cannot_start(void **state)
{
	const char *argv[] = { "/nonexistent/program", NULL };
	const struct rfl_launch_spec spec = { .argv = argv };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_launch *l = NULL;

	(void)state;
	assert_ok(rfl_launch_new(&spec, &l, &err), &err);
	assert_int_equal(rfl_launch_go(l, &err), RFL_EUNAVAILABLE);
	assert_int_equal(err.native, ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/program: cannot start"));
	rfl_launch_free(l);
}

/* A terminal sends no second signal to a program that starts later. */
static void does_not_start_after_a_signal(void **state)
{
	const char *argv[] = { "true", NULL };
	const struct rfl_launch_spec spec = { .argv = argv };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_launch *l = NULL;
	sigset_t set, before;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, &before), 0);
	assert_int_equal(raise(SIGTERM), 0);
	assert_int_equal(rfl_launch_new(&spec, &l, &err), RFL_EINTR);
	assert_int_equal(err.native, SIGTERM);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	assert_ok(rfl_launch_new(&spec, &l, &err), &err);
	rfl_launch_free(l);
}

/* The resources of adopted processes are added, and a descriptor is served meanwhile. */
static void count_ready(void *ctx)
{
	char text[8];

	if (read(((int *)ctx)[0], text, sizeof(text)) > 0)
		((int *)ctx)[1]++;
}

static void waits_for_all(void **state)
{
	const char *argv[] = { "sh", "-c",
			       "(sleep 0.1; kill -9 $(exec sh -c 'echo $PPID')) & exit 0", NULL };
	int pipes[2], seen[2] = { 0 };
	struct rfl_launch_spec spec = { .argv = argv, .all = true, .ready = count_ready };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_launch *l = NULL;
	struct rfl_proc_result r;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	assert_int_equal(close(pipes[1]), 0);
	seen[0] = spec.watch_fd = pipes[0];
	spec.ctx = seen;
	assert_ok(rfl_launch_new(&spec, &l, &err), &err);
	assert_ok(rfl_launch_go(l, &err), &err);
	assert_ok(rfl_launch_wait(l, &r, &err), &err);
	assert_true(r.exited && r.exit_code == 0 && !r.timed_out);
	assert_true(r.wall_s >= 0.1);
	assert_int_equal(seen[1], 1);
	rfl_launch_free(l);
	assert_int_equal(close(pipes[0]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(runs_after_go, tmpdir_make, tmpdir_remove),
		cmocka_unit_test(reports_what_cannot_start),
		cmocka_unit_test(does_not_start_after_a_signal),
		cmocka_unit_test(waits_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
