/* Child processes: pipes, lines split over writes, deadlines, signals, usage. */
#include "tests/unit/rfl_test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"

/* Run a script of the shell. */
static enum rfl_rc shell(const char *script, struct rfl_proc_spec spec, struct rfl_proc_result *r,
			 struct rfl_err *err)
{
	const char *const argv[] = { "sh", "-c", script, NULL };

	spec.argv = argv;
	return rfl_proc_run(&spec, r, err);
}

static void captures_output_and_exit_code(void **state)
{
	const struct rfl_proc_spec spec = { .capture_stdout = true, .capture_stderr = true };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;

	(void)state;
	assert_ok(shell("echo out; echo err >&2; exit 3", spec, &r, &err), &err);
	assert_true(r.exited);
	assert_int_equal(r.exit_code, 3);
	assert_string_equal(rfl_buf_str(&r.out), "out\n");
	assert_string_equal(rfl_buf_str(&r.err), "err\n");
	assert_false(r.timed_out || r.cancelled);
	assert_true(r.wall_s > 0 && r.wall_s < 60);
	assert_true(r.max_rss_bytes > 100e3);
	assert_true(r.minor_faults > 0);
	rfl_proc_result_fini(&r);
}

static void tells_a_signal_from_an_exit(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;

	(void)state;
	assert_ok(shell("kill -KILL $$", (struct rfl_proc_spec){ 0 }, &r, &err), &err);
	assert_false(r.exited);
	assert_int_equal(r.signal, SIGKILL);
	rfl_proc_result_fini(&r);
}

static void a_program_that_does_not_exist(void **state)
{
	static const char *const names[] = { "no-such-program-here", "/no/such/program",
					     "/dev/null", "/" };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++) {
		const char *const argv[] = { names[i], NULL };
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_proc_result r;

		assert_int_equal(rfl_proc_run(&(struct rfl_proc_spec){ .argv = argv }, &r, &err),
				 RFL_EUNAVAILABLE);
		assert_says(&err, names[i]);
		rfl_proc_result_fini(&r);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

/* Megabytes through both pipes at once: neither side may wait for the other for ever. */
static void input_and_output_at_once(void **state)
{
	size_t len = 3u << 20;
	char *input = malloc(len);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;

	(void)state;
	for (size_t i = 0; i < len; i++)
		input[i] = (char)('a' + i % 26);
	assert_ok(shell("cat",
			(struct rfl_proc_spec){
				.input = input, .input_len = len, .capture_stdout = true },
			&r, &err),
		  &err);
	assert_int_equal(r.out.len, len);
	assert_memory_equal(r.out.data, input, len);
	rfl_proc_result_fini(&r);
	free(input);
}

static void input_that_nobody_reads(void **state)
{
	size_t len = 1u << 20;
	char *input = calloc(1, len);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;
	sigset_t pending;

	(void)state;
	assert_ok(shell("exec <&-; sleep 0.1",
			(struct rfl_proc_spec){ .input = input, .input_len = len }, &r, &err),
		  &err);
	assert_int_equal(r.exit_code, 0);
	sigpending(&pending);
	assert_int_equal(sigismember(&pending, SIGPIPE), 0);
	rfl_proc_result_fini(&r);
	free(input);
	/* Empty input is an end of file at once; no input at all is /dev/null. */
	assert_ok(shell("cat", (struct rfl_proc_spec){ .input = "", .capture_stdout = true }, &r,
			&err),
		  &err);
	assert_int_equal(r.out.len, 0);
	rfl_proc_result_fini(&r);
	assert_ok(shell("cat", (struct rfl_proc_spec){ .capture_stdout = true }, &r, &err), &err);
	assert_int_equal(r.out.len, 0);
	rfl_proc_result_fini(&r);
}

static void keep_line(const char *line, void *ctx)
{
	rfl_buf_printf(ctx, "[%s]", line);
}

/* Lines come whole however they were written; what is not ended is not a line. */
static void report_lines(void **state)
{
	static const char *const scripts[] = {
		"printf 'ab' >&FD; sleep 0.05; printf 'c\\nde' >&FD; sleep 0.05; printf 'f\\n\\ng' "
		">&FD",
		"printf 'abc\\ndef\\n\\n' >&FD",
	};
	static const int fds[] = { 3, 4, 9 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;
	struct rfl_buf lines = { 0 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(scripts) * RFL_ARRAY_LEN(fds); i++) {
		struct rfl_buf script = { 0 };
		int fd = fds[i / RFL_ARRAY_LEN(scripts)];

		for (const char *s = scripts[i % RFL_ARRAY_LEN(scripts)]; *s != '\0'; s++) {
			if (s[0] == 'F' && s[1] == 'D')
				rfl_buf_printf(&script, "%d", fd), s++;
			else
				rfl_buf_putc(&script, *s);
		}
		rfl_buf_reset(&lines);
		assert_ok(shell(rfl_buf_str(&script),
				(struct rfl_proc_spec){ .report_fd = fd,
							.on_report = keep_line,
							.ctx = &lines,
							.capture_stdout = true },
				&r, &err),
			  &err);
		assert_string_equal(rfl_buf_str(&lines), "[abc][def][]");
		assert_int_equal(r.out.len, 0);
		rfl_proc_result_fini(&r);
		rfl_buf_fini(&script);
	}
	rfl_buf_fini(&lines);
}

static void count_line(const char *line, void *ctx)
{
	size_t *n = ctx;

	assert_int_equal(strlen(line), 100);
	++*n;
}

static void many_report_lines(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;
	size_t n = 0;

	(void)state;
	assert_ok(
		shell("yes $(printf '%0100d' 7) | head -n 30000 >&5",
		      (struct rfl_proc_spec){ .report_fd = 5, .on_report = count_line, .ctx = &n },
		      &r, &err),
		&err);
	assert_int_equal(n, 30000);
	rfl_proc_result_fini(&r);
}

static void a_deadline_stops(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;

	(void)state;
	assert_ok(shell("echo begun; exec sleep 60",
			(struct rfl_proc_spec){ .timeout_s = 1, .capture_stdout = true }, &r, &err),
		  &err);
	assert_true(r.timed_out);
	assert_false(r.exited);
	assert_int_equal(r.signal, SIGTERM);
	assert_true(r.wall_s >= 1 && r.wall_s < 30);
	assert_string_equal(rfl_buf_str(&r.out), "begun\n");
	rfl_proc_result_fini(&r);
}

static void a_child_that_will_not_stop_is_killed(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;

	(void)state;
	assert_ok(shell("trap '' TERM; while :; do sleep 0.2; done",
			(struct rfl_proc_spec){ .timeout_s = 1 }, &r, &err),
		  &err);
	assert_true(r.timed_out);
	assert_int_equal(r.signal, SIGKILL);
	assert_true(r.wall_s >= 6 && r.wall_s < 40);
	rfl_proc_result_fini(&r);
}

static bool cancel_at_third(void *ctx)
{
	int *asked = ctx;

	return ++*asked >= 3;
}

static void a_cancelled_child_stops(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;
	int asked = 0;

	(void)state;
	assert_ok(shell("exec sleep 60",
			(struct rfl_proc_spec){ .cancelled = cancel_at_third, .ctx = &asked }, &r,
			&err),
		  &err);
	assert_true(r.cancelled);
	assert_false(r.timed_out);
	assert_int_equal(r.signal, SIGTERM);
	assert_int_equal(asked, 3);
	assert_true(r.wall_s < 30);
	rfl_proc_result_fini(&r);
}

/* A grandchild that keeps the pipe open does not keep us. */
static void grandchildren_are_not_waited_for(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;
	long pid;

	(void)state;
	assert_ok(shell("sleep 60 & echo $!", (struct rfl_proc_spec){ .capture_stdout = true }, &r,
			&err),
		  &err);
	assert_true(r.wall_s < 30);
	pid = strtoll(rfl_buf_str(&r.out), NULL, 10);
	assert_true(pid > 1);
	kill((pid_t)pid, SIGKILL);
	rfl_proc_result_fini(&r);
}

/* Nor does one that never stops writing, into a pipe that we empty after the child's end. */
static void a_grandchild_that_floods_does_not_keep_us(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;

	(void)state;
	/* Its writer is stopped by the end of the pipe. */
	assert_ok(shell("yes & sleep 0.1", (struct rfl_proc_spec){ .capture_stdout = true }, &r,
			&err),
		  &err);
	assert_int_equal(r.exit_code, 0);
	assert_true(r.out.len > 0);
	rfl_proc_result_fini(&r);
}

static void environment_is_added_to(void **state)
{
	static const char *const env[] = { "RFL_TEST_OLD=new", "RFL_TEST_MORE=x=y", NULL };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;

	(void)state;
	setenv("RFL_TEST_OLD", "old", 1);
	setenv("RFL_TEST_KEPT", "kept", 1);
	assert_ok(shell("echo $RFL_TEST_OLD,$RFL_TEST_MORE,$RFL_TEST_KEPT; env | grep -c TEST_OLD",
			(struct rfl_proc_spec){ .env = env, .capture_stdout = true }, &r, &err),
		  &err);
	assert_string_equal(rfl_buf_str(&r.out), "new,x=y,kept\n1\n");
	rfl_proc_result_fini(&r);
	assert_string_equal(getenv("RFL_TEST_OLD"), "old");
}

/* The value of a line of /proc/self/status, a mask in hex. */
static unsigned long long mask_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	assert_non_null(at);
	return strtoull(at + strlen(name), NULL, 16);
}

/* Nothing of ours leaks into the child: neither descriptors nor a blocked or ignored SIGPIPE. */
static void the_child_starts_clean(void **state)
{
	const unsigned long long sigpipe = 1ull << (SIGPIPE - 1);
	FILE *plain = popen("ls /proc/self/fd | wc -l", "r");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;
	char count[32] = "";

	(void)state;
	assert_non_null(plain);
	assert_non_null(fgets(count, sizeof(count), plain));
	pclose(plain);
	signal(SIGPIPE, SIG_IGN);
	assert_ok(shell("ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status",
			(struct rfl_proc_spec){ .capture_stdout = true,
						.capture_stderr = true,
						.input = "x",
						.input_len = 1 },
			&r, &err),
		  &err);
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(strtoll(rfl_buf_str(&r.out), NULL, 10), strtoll(count, NULL, 10));
	assert_true((mask_of(rfl_buf_str(&r.out), "SigBlk:") & sigpipe) == 0);
	assert_true((mask_of(rfl_buf_str(&r.out), "SigIgn:") & sigpipe) == 0);
	rfl_proc_result_fini(&r);
}

/* A busy child: its CPU time is its own. */
static void usage_is_the_childs(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_proc_result r;

	(void)state;
	assert_ok(shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done",
			(struct rfl_proc_spec){ 0 }, &r, &err),
		  &err);
	assert_true(r.user_s > 0.01);
	assert_true(r.user_s + r.system_s <= 2 * r.wall_s);
	rfl_proc_result_fini(&r);
}

#ifdef __linux__
/* The parent is killed while it watches: the child goes with it. */
static void the_child_dies_with_its_parent(void **state)
{
	int fds[2];
	char text[32] = "";
	pid_t parent, child;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	parent = fork();
	if (parent == 0) {
		struct rfl_proc_result r;

		dup2(fds[1], STDOUT_FILENO);
		(void)!shell("echo $$; exec sleep 60", (struct rfl_proc_spec){ 0 }, &r, NULL);
		_exit(0);
	}
	assert_true(parent > 0);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	child = (pid_t)strtoll(text, NULL, 10);
	assert_true(child > 1);
	assert_int_equal(kill(child, 0), 0);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	close(fds[1]);
	/* The end of the pipe comes when the child, its last holder, is gone. */
	assert_int_equal(read(fds[0], text, sizeof(text)), 0);
	close(fds[0]);
}
#endif

static void our_own_path(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	char *path = rfl_proc_self(&err);

	(void)state;
	assert_non_null(path);
	assert_non_null(strstr(path, "tests/test_base"));
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captures_output_and_exit_code),
		cmocka_unit_test(tells_a_signal_from_an_exit),
		cmocka_unit_test(a_program_that_does_not_exist),
		cmocka_unit_test(input_and_output_at_once),
		cmocka_unit_test(input_that_nobody_reads),
		cmocka_unit_test(report_lines),
		cmocka_unit_test(many_report_lines),
		cmocka_unit_test(a_deadline_stops),
		cmocka_unit_test(a_child_that_will_not_stop_is_killed),
		cmocka_unit_test(a_cancelled_child_stops),
		cmocka_unit_test(grandchildren_are_not_waited_for),
		cmocka_unit_test(a_grandchild_that_floods_does_not_keep_us),
		cmocka_unit_test(environment_is_added_to),
		cmocka_unit_test(usage_is_the_childs),
#ifdef __linux__
		cmocka_unit_test(the_child_starts_clean),
		cmocka_unit_test(the_child_dies_with_its_parent),
#endif
		cmocka_unit_test(our_own_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
