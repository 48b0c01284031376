/*
 * Runs with an engine that fails on request (tests/engines/engine_fake.c). This program is its
 * own child: "run-child" measures, "parent-once" is a whole run, "parent" is many until a test
 * kills it.
 */
#undef _GNU_SOURCE
#define _GNU_SOURCE /* PR_SET_CHILD_SUBREAPER */

#include "tests/unit/rfl_test.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/proc.h"
#include "complexity/count.h"
#include "complexity/zoo.h"
#include "runner/run.h"
#include "tests/unit/run_rig.h"

static char *self;

/* One run with RFL_FAKE set to `fake`; the row stays with the caller. */
static void run_fake(const char *dir, const char *fake, struct rfl_run_result *ret)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = config_in(dir);
	struct rfl_run_host host = host_of(child);
	struct rfl_err err = RFL_ERR_INIT;

	setenv("RFL_FAKE", fake, 1);
	assert_ok(rfl_run(&config, &host, ret, &err), &err);
	unsetenv("RFL_FAKE");
}

static struct rfl_ledger *load(const char *dir)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger *l = NULL;
	char path[4096];

	snprintf(path, sizeof(path), "%s/metrics.csv", dir);
	assert_ok(rfl_ledger_load(path, &l, &err), &err);
	return l;
}

static void assert_file_has(const char *path, const char *const *lines, size_t n)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	assert_ok(rfl_file_read(path, &text, &err), &err);
	for (size_t i = 0; i < n; i++) {
		if (!strstr(rfl_buf_str(&text), lines[i]))
			fail_msg("%s has no '%s':\n%s", path, lines[i], rfl_buf_str(&text));
	}
	rfl_buf_fini(&text);
}

static void assert_steps(const struct rfl_run_result *result)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	bool more = true;
	double forward, backward, optimizer, wait, total;
	int n = 0;

	assert_ok(rfl_csv_open(result->steps_file, &csv, &err), &err);
	for (;; n++) {
		assert_ok(rfl_csv_next(csv, &more, &err), &err);
		if (!more)
			break;
		assert_ok(rfl_csv_double(csv, rfl_csv_find(csv, "forward_ms"), &forward, &err),
			  &err);
		assert_ok(rfl_csv_double(csv, rfl_csv_find(csv, "backward_ms"), &backward, &err),
			  &err);
		assert_ok(rfl_csv_double(csv, rfl_csv_find(csv, "optimizer_ms"), &optimizer, &err),
			  &err);
		assert_ok(rfl_csv_double(csv, rfl_csv_find(csv, "data_wait_ms"), &wait, &err),
			  &err);
		assert_ok(rfl_csv_double(csv, rfl_csv_find(csv, "step_ms"), &total, &err), &err);
		assert_true(forward >= 4 && backward >= 8 && optimizer >= 2);
		assert_true(total + 1e-9 >= forward + backward + optimizer + wait);
	}
	assert_int_equal(n, 6);
	rfl_csv_close(csv);
}

static void a_good_run_is_recorded(void **state)
{
	static const char *const lines[] = {
		"MEASURED_SEC=",
		" IMGS_PER_SEC=",
		" BATCH=2 ARCH=resnet18 BACKEND=CPU\n",
		"\tCommand being timed: \"roofline run --arch resnet18\"\n",
		"\tMaximum resident set size (kbytes): ",
		"\tExit status: 0\n",
	};
	const char *dir = tmp_path(*state, "logs");
	struct rfl_zoo_options sizes = { .image_size = 32 };
	struct rfl_count_options counted = { .batch = 2, .training = true };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;
	struct rfl_run_result result;
	struct rfl_net *net = NULL;
	struct rfl_ledger_row *row = &result.row;

	setenv("RFL_FAKE_MS", "4,8,2", 1);
	run_fake(dir, "", &result);
	unsetenv("RFL_FAKE_MS");
	assert_int_equal(result.rc, RFL_OK);
	assert_string_equal(row->status, "ok");
	assert_null(row->error_text);
	assert_string_equal(row->label, "lab_resnet18_fp32_bs2_run1");
	assert_string_equal(row->env, "lab");
	assert_string_equal(row->engine_id, "fake-1.0-test");
	assert_string_equal(row->engine_version, "1.0.7");
	assert_string_equal(row->backend, "cpu");
	assert_string_equal(row->data_mode, "synthetic");
	assert_int_equal(row->repeat, 1);
	assert_int_equal(row->img_size, 32);
	assert_int_equal(row->augment, -1);
	assert_true(row->fwd_ms_mean >= 4 && row->fwd_ms_mean <= row->step_ms_mean - 10);
	assert_true(row->bwd_ms_mean >= 8 && row->opt_ms_mean >= 2);
	assert_true(row->step_ms_min >= 14 && row->step_ms_min <= row->step_ms_p10);
	assert_true(row->step_ms_p10 <= row->step_ms_median &&
		    row->step_ms_p90 <= row->step_ms_max);
	assert_true(row->wall_s * 1e3 >= 6 * row->step_ms_mean - 1e-6);
	assert_close(row->samples_per_s, 12 / row->wall_s, 1e-12);
	assert_close(row->loss_first, 8.0, 1e-12);
	assert_close(row->loss_last, 8.0 / 7, 1e-12);
	assert_close(row->mem_alloc_peak_bytes, 4096, 0);
	assert_true(isnan(row->mem_reserved_peak_bytes) && row->host_peak_bytes > 1e6);
	assert_true(row->setup_s > 0 && row->ttfb_ms >= 14);

	assert_ok(rfl_zoo_build("resnet18", &sizes, &net, &err), &err);
	assert_ok(rfl_count_net(net, &counted, &count, &err), &err);
	assert_int_equal(row->model_flops_per_step, rfl_count_training_flops(count));
	assert_close(row->tflops, (double)row->model_flops_per_step / row->step_ms_median * 1e-9,
		     1e-12);
	rfl_count_free(count);
	rfl_net_free(net);

	assert_file_has(result.time_log, lines, RFL_ARRAY_LEN(lines));
	assert_steps(&result);
	rfl_run_result_fini(&result);
}

static void every_end_has_its_status(void **state)
{
	static const struct {
		const char *fake, *status;
		int64_t code;
		const char *word;
	} cases[] = {
		{ "kill:forward:3", "crash", SIGKILL, "signal 9" },
		{ "kill:open", "crash", SIGKILL, "during setup" },
		{ "segv:backward:0", "crash", SIGSEGV, "signal 11" },
		{ "hup:forward:3", "interrupted", SIGHUP, "signal 1" }, /* a terminal that goes */
		{ "exit:step:2", "crash", 9, "exit code 9" },
		{ "fail:step:2", "failed", 1, "asked to fail at step 2" },
		{ "edevmem:open", "oom", 1, "no memory left" },
		{ "edevmem:forward:4", "oom", 1, "no memory left" },
		{ "nan:forward:6", "nan", -1, "is not finite" },
		{ "unsupported", "unsupported", 1, "maxpool" },
		{ "unavailable", "unsupported", 1, "asked to be unavailable" },
		{ "kill:close", "ok", -1, NULL },
		{ "segv:close", "ok", -1, NULL },
	};
	const char *dir = tmp_path(*state, "logs");
	struct rfl_ledger *l;

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_run_result result;

		run_fake(dir, cases[i].fake, &result);
		assert_string_equal(result.row.status, cases[i].status);
		assert_int_equal(result.row.error_code, cases[i].code);
		assert_int_equal(result.rc == RFL_OK, strcmp(cases[i].status, "ok") == 0);
		if (!cases[i].word)
			assert_null(result.row.error_text);
		else if (!strstr(result.row.error_text, cases[i].word))
			fail_msg("%s: '%s'", cases[i].fake, result.row.error_text);
		assert_int_equal(isnan(result.row.wall_s),
				 strcmp(cases[i].status, "ok") != 0 &&
					 strcmp(cases[i].status, "nan") != 0);
		rfl_run_result_fini(&result);
	}
	l = load(dir);
	assert_int_equal(l->nrows, RFL_ARRAY_LEN(cases));
	for (size_t i = 0; i < l->nrows; i++) {
		assert_string_equal(l->rows[i].status, cases[i].status);
		assert_int_equal(l->rows[i].repeat, i + 1);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(l->rows[i].run_id, l->rows[k].run_id);
	}
	rfl_ledger_free(l);
}

static void a_signal_is_in_the_time_log(void **state)
{
	static const char *const lines[] = { "Command terminated by signal 9\n" };
	struct rfl_run_result result;

	run_fake(tmp_path(*state, "logs"), "kill:forward:0", &result);
	assert_file_has(result.time_log, lines, 1);
	assert_string_equal(result.steps_file, "");
	rfl_run_result_fini(&result);
}

static bool say_stop(void *ctx)
{
	return rfl_clock_s() > *(const double *)ctx;
}

static void hanging_runs_end(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	const char *dir = tmp_path(*state, "logs");
	struct rfl_run_config config = config_in(dir);
	struct rfl_run_host host = host_of(child);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;
	double stop_at = rfl_clock_s() + 0.4;

	setenv("RFL_FAKE", "hang:forward:2", 1);
	config.timeout_s = 0.5;
	assert_ok(rfl_run(&config, &host, &result, &err), &err);
	assert_string_equal(result.row.status, "timeout");
	assert_int_equal(result.rc, RFL_ETIMEOUT);
	rfl_run_result_fini(&result);

	config.timeout_s = 0;
	host.cancelled = say_stop;
	host.ctx = &stop_at;
	stop_at = rfl_clock_s() + 0.4;
	assert_ok(rfl_run(&config, &host, &result, &err), &err);
	assert_string_equal(result.row.status, "interrupted");
	assert_int_equal(result.rc, RFL_EINTR);
	rfl_run_result_fini(&result);
	unsetenv("RFL_FAKE");
}

struct heard {
	int64_t last, reports; /* of the window, its begin included */
};

static void note_window(const struct rfl_run_progress *p, void *ctx)
{
	struct heard *t = ctx;

	if (strcmp(p->phase, "window") != 0)
		return;
	assert_int_equal(p->total, 12);
	assert_true(p->done == 0 ? t->reports == 0 : p->done > t->last && p->done <= p->total);
	t->last = p->done;
	t->reports++;
}

/* 12 steps of 50 ms: after 4, 8 and 12 of them, later on a slow machine, but never more often than
 * five times a second. */
static void the_window_reports_progress(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	const char *dir = tmp_path(*state, "logs");
	struct rfl_run_config config = config_in(dir);
	struct rfl_run_host host = host_of(child);
	struct heard heard = { .last = -1 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;

	config.iters = 12;
	host.progress = note_window;
	host.ctx = &heard;
	setenv("RFL_FAKE_MS", "50,0,0", 1);
	assert_ok(rfl_run(&config, &host, &result, &err), &err);
	unsetenv("RFL_FAKE_MS");
	assert_string_equal(result.row.status, "ok");
	assert_true(heard.reports >= 3);
	assert_true((double)heard.reports <= result.row.wall_s / 0.2 + 2);
	rfl_run_result_fini(&result);
}

static void phases_follow_the_mode(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	const char *dir = tmp_path(*state, "logs");
	struct rfl_run_config config = config_in(dir);
	struct rfl_run_host host = host_of(child);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;
	int64_t forward_flops;

	config.mode = RFL_RUN_FWD;
	assert_ok(rfl_run(&config, &host, &result, &err), &err);
	assert_string_equal(result.row.mode, "fwd");
	assert_true(isnan(result.row.bwd_ms_mean) && isnan(result.row.opt_ms_mean));
	assert_true(result.row.fwd_ms_mean >= 0);
	assert_null(result.row.optimizer);
	forward_flops = result.row.model_flops_per_step;
	rfl_run_result_fini(&result);

	host.child_env = (const char *const[]){ "RFL_FAKE=nan:forward:6", NULL };
	assert_ok(rfl_run(&config, &host, &result, &err), &err);
	assert_string_equal(result.row.status, "nan"); /* the child has heard it */
	rfl_run_result_fini(&result);
	host.child_env = NULL;

	config.mode = RFL_RUN_FWD_BWD;
	assert_ok(rfl_run(&config, &host, &result, &err), &err);
	assert_true(isnan(result.row.opt_ms_mean) && !isnan(result.row.bwd_ms_mean));
	assert_true(result.row.model_flops_per_step > 2 * forward_flops);
	rfl_run_result_fini(&result);
}

static void in_process_records_the_same(void **state)
{
	const char *dir = tmp_path(*state, "logs");
	struct rfl_run_config config = config_in(dir);
	struct rfl_run_host host = host_of(NULL);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result here, child;

	config.in_process = true;
	assert_ok(rfl_run(&config, &host, &here, &err), &err);
	run_fake(dir, "", &child);
	assert_string_equal(here.row.status, "ok");
	assert_string_equal(here.row.config_hash, child.row.config_hash);
	assert_string_equal(child.row.label, "lab_resnet18_fp32_bs2_run2");
	rfl_run_result_fini(&here);
	rfl_run_result_fini(&child);
}

static void what_is_computed_makes_the_hash(void **state)
{
	const char *dir = tmp_path(*state, "logs");
	struct rfl_run_config config = config_in(dir);
	struct rfl_run_host host = host_of(NULL);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result base, other, plain;

	config.in_process = true;
	config.momentum = 0.9;
	assert_ok(rfl_run(&config, &host, &base, &err), &err);
	config.momentum = 0.5;
	config.lr *= 2;
	assert_ok(rfl_run(&config, &host, &other, &err), &err);
	assert_string_equal(base.row.config_hash, other.row.config_hash);
	config.momentum = 0; /* no buffer is read and written */
	assert_ok(rfl_run(&config, &host, &plain, &err), &err);
	assert_string_not_equal(base.row.config_hash, plain.row.config_hash);
	rfl_run_result_fini(&base);
	rfl_run_result_fini(&other);
	rfl_run_result_fini(&plain);
}

static void time_logs_are_never_overwritten(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	const char *dir = tmp_path(*state, "logs");
	struct rfl_run_config config = config_in(dir);
	struct rfl_run_host host = host_of(child);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;
	char paths[3][4096];

	rfl_clock_fix(1767225600); /* all of them within one second */
	config.label = "cpu_resnet18_fp32_bs2_run7";
	config.env = NULL;
	for (int i = 0; i < 3; i++) {
		assert_ok(rfl_run(&config, &host, &result, &err), &err);
		assert_string_equal(result.row.env, "cpu");
		assert_int_equal(result.row.repeat, 7);
		snprintf(paths[i], sizeof(paths[i]), "%s", result.time_log);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(paths[i], paths[k]);
		assert_true(rfl_file_size(paths[i]) > 0);
		rfl_run_result_fini(&result);
	}
	assert_string_equal(rfl_path_base(paths[0]),
			    "cpu_resnet18_fp32_bs2_run7_20260101_000000.txt");
	assert_string_equal(rfl_path_base(paths[1]),
			    "cpu_resnet18_fp32_bs2_run7_20260101_000000_2.txt");
	assert_string_equal(rfl_path_base(paths[2]),
			    "cpu_resnet18_fp32_bs2_run7_20260101_000000_3.txt");
}

/* Parents that end at the same time choose different labels. */
static void parents_beside_each_other_share_no_label(void **state)
{
	enum { PARENTS = 6 };
	const char *dir = tmp_path(*state, "logs");
	bool seen[PARENTS + 1] = { false };
	struct rfl_ledger *l;
	int status;

	for (int i = 0; i < PARENTS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			execl(self, self, "parent-once", dir, (char *)NULL);
			_exit(127);
		}
		assert_true(pid > 0);
	}
	for (int i = 0; i < PARENTS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	l = load(dir);
	assert_int_equal(l->nrows, PARENTS);
	for (size_t i = 0; i < l->nrows; i++) {
		assert_in_range(l->rows[i].repeat, 1, PARENTS);
		assert_false(seen[l->rows[i].repeat]);
		seen[l->rows[i].repeat] = true;
	}
	rfl_ledger_free(l);
}

/* A configuration travels as JSON: names of any kind do, bytes that are no text do not. */
static void strange_names_arrive(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	const char *dir = tmp_path(*state, "logs");
	struct rfl_run_config config = config_in(dir);
	struct rfl_run_host host = host_of(child);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;

	config.engine = "a \"\\\n\t\x01 \xc3\xa9";
	assert_ok(rfl_run(&config, &host, &result, &err), &err);
	assert_string_equal(result.row.status, "unsupported");
	assert_non_null(strstr(result.row.error_text, "\xc3\xa9"));
	rfl_run_result_fini(&result);

	config.engine = "caf\xe9";
	assert_int_equal(rfl_run(&config, &host, &result, &err), RFL_EINVAL);
	assert_says(&err, "engine: 'caf?' is not UTF-8");
	rfl_run_result_fini(&result);
}

static void bad_requests_leave_no_row(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	const char *dir = tmp_path(*state, "logs"), *images = tmp_path(*state, "images");
	struct rfl_err err = RFL_ERR_INIT;
	char path[4096];
	const struct rfl_run_host host = host_of(child);
	struct {
		struct rfl_run_config config;
		const char *word;
	} cases[] = {
		{ config_in(dir), "resnet18" },    { config_in(dir), "label" },
		{ config_in(dir), "environment" }, { config_in(dir), "no images" },
		{ config_in(dir), "train" },
	};

	snprintf(path, sizeof(path), "%s/train/cat", images);
	assert_ok(rfl_file_mkdirs(path, &err), &err);
	cases[0].config.arch = "resnet81";
	cases[1].config.label = "../x";
	cases[2].config.env = "My Lab";
	cases[3].config.data_kind = cases[4].config.data_kind = RFL_DATA_IMAGEFOLDER;
	cases[3].config.data_dir = images;
	cases[4].config.data_dir = path;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_run_result result;

		rfl_err_clear(&err);
		assert_int_not_equal(rfl_run(&cases[i].config, &host, &result, &err), RFL_OK);
		assert_says(&err, cases[i].word);
		rfl_run_result_fini(&result);
	}
	snprintf(path, sizeof(path), "%s/metrics.csv", dir);
	assert_false(rfl_file_exists(path));
}

static void a_ledger_of_other_columns_is_refused_first(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = config_in(*state);
	struct rfl_run_host host = host_of(child);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;

	write_file(*state, "metrics.csv", "run,images\n1,2\n");
	assert_int_equal(rfl_run(&config, &host, &result, &err), RFL_EFORMAT);
	assert_says(&err, "schema_version");
	rfl_run_result_fini(&result);
}

/* An invalid cell of another row is reported by the commands that read it. */
static void a_run_is_added_to_a_damaged_ledger(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text = { 0 };
	struct rfl_run_result result;

	write_file(*state, "metrics.csv", ""); /* of a killed process: nothing is lost */
	run_fake(*state, "", &result);
	assert_int_equal(result.row.repeat, 1);
	rfl_run_result_fini(&result);

	assert_ok(rfl_file_read(tmp_path(*state, "metrics.csv"), &text, &err), &err);
	rfl_buf_puts(&text, "one,");
	for (size_t i = 1; i + 1 < RFL_LEDGER_NCOLUMNS; i++)
		rfl_buf_putc(&text, ',');
	rfl_buf_puts(&text, "1.0\n");
	write_file(*state, "metrics.csv", rfl_buf_str(&text));
	run_fake(*state, "", &result);
	assert_int_equal(result.row.repeat, 2);
	rfl_run_result_fini(&result);
	rfl_buf_fini(&text);
}

/* A program that has our library and ignores SIGCHLD: how the child ended is not known, what it
 * measured is. */
static void a_failed_wait_costs_no_row(void **state)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = config_in(*state);
	struct rfl_run_host host = host_of(child);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;
	struct rfl_ledger *l;

	(void)signal(SIGCHLD, SIG_IGN);
	assert_int_equal(rfl_run(&config, &host, &result, &err), RFL_EIO);
	(void)signal(SIGCHLD, SIG_DFL);
	assert_says(&err, "cannot wait for the child");
	assert_true(result.recorded);
	l = load(*state);
	assert_int_equal(l->nrows, 1);
	assert_string_equal(l->rows[0].status, "ok");
	assert_string_equal(l->rows[0].error_text, err.msg);
	assert_true(l->rows[0].samples_per_s > 0);
	rfl_ledger_free(l);
	rfl_run_result_fini(&result);
}

/* ---- the parent is killed ---- */

static void sleep_s(double s)
{
	const struct timespec pause = { .tv_sec = (time_t)s,
					.tv_nsec = (long)((s - floor(s)) * 1e9) };

	nanosleep(&pause, NULL);
}

static pid_t start_parent(const char *dir)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl(self, self, "parent", dir, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

static pid_t read_pid(const char *path)
{
	FILE *f = fopen(path, "r");
	long pid = 0;

	if (f) {
		if (fscanf(f, "%ld\n", &pid) != 1)
			pid = 0;
		fclose(f);
	}
	return (pid_t)pid;
}

static void killing_the_parent_loses_no_row(void **state)
{
	/* of the time that a run takes here */
	static const double moments[] = { 0.02, 0.1, 0.2, 0.3,  0.4,  0.5, 0.6,
					  0.7,  0.8, 0.9, 0.96, 1.05, 1.3, 1.6 };
	const char *dir = tmp_path(*state, "logs");
	const char *pid_file = tmp_path(*state, "pid"),
		   *ledger = tmp_path(*state, "logs/metrics.csv");
	size_t before = 0, orphans = 0;
	struct rfl_run_result result;
	double run_s;

	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* orphans come to us */
	setenv("RFL_FAKE_PID", pid_file, 1);
	setenv("RFL_FAKE_MS", "1,1,1", 1);
	run_s = rfl_clock_s();
	run_fake(tmp_path(*state, "first"), "", &result);
	run_s = rfl_clock_s() - run_s;
	rfl_run_result_fini(&result);
	for (size_t i = 0; i < RFL_ARRAY_LEN(moments); i++) {
		bool is_last = i + 1 == RFL_ARRAY_LEN(moments);
		pid_t parent, child;
		int status;

		unlink(pid_file);
		parent = start_parent(dir);
		sleep_s(moments[i] * run_s);
		while (is_last && rfl_file_size(ledger) == 0) /* at least one row to look at */
			sleep_s(0.01);
		kill(parent, SIGKILL);
		assert_int_equal(waitpid(parent, &status, 0), parent);
		child = read_pid(pid_file);
		/* Whatever is left of the run ends by itself, and the child by SIGKILL, or by
		 * SIGPIPE if it reports before that signal arrives. */
		while ((parent = waitpid(-1, &status, 0)) > 0) {
			if (parent != child || WIFEXITED(status))
				continue;
			assert_true(WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGPIPE);
			orphans++;
		}
		assert_int_equal(errno, ECHILD);
		if (rfl_file_size(ledger) > 0) {
			struct rfl_ledger *l = load(dir);

			assert_true(l->nrows >= before && !l->torn);
			before = l->nrows;
			for (size_t r = 0; r < l->nrows; r++)
				assert_string_equal(l->rows[r].status, "ok");
			rfl_ledger_free(l);
		}
	}
	unsetenv("RFL_FAKE_PID");
	unsetenv("RFL_FAKE_MS");
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	assert_true(before > 0);
	assert_true(orphans > 0); /* and some were hit in the middle of one */
}

static int be_parent_once(const char *dir)
{
	const char *const child[] = { self, "run-child", NULL };
	struct rfl_run_config config = config_in(dir);
	struct rfl_run_host host = host_of(child);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;
	enum rfl_rc rc = rfl_run(&config, &host, &result, &err);

	if (rc != RFL_OK)
		fprintf(stderr, "%s\n", err.msg);
	rfl_run_result_fini(&result);
	return rc != RFL_OK;
}

/* Runs, one after the other, until this process is killed. */
static int be_parent(const char *dir)
{
	while (be_parent_once(dir) == 0)
		;
	return 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_good_run_is_recorded, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(every_end_has_its_status, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(a_signal_is_in_the_time_log, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(hanging_runs_end, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(phases_follow_the_mode, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(the_window_reports_progress, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(what_is_computed_makes_the_hash, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(in_process_records_the_same, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(time_logs_are_never_overwritten, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(strange_names_arrive, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(bad_requests_leave_no_row, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(a_ledger_of_other_columns_is_refused_first,
						tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(a_run_is_added_to_a_damaged_ledger, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(parents_beside_each_other_share_no_label,
						tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(a_failed_wait_costs_no_row, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(killing_the_parent_loses_no_row, tmpdir_make,
						tmpdir_remove),
	};
	int failed;

	self = rfl_proc_self(NULL);
	if (!self)
		return 1;
	if (argc == 2 && strcmp(argv[1], "run-child") == 0)
		failed = rfl_run_child(STDIN_FILENO, RFL_RUN_REPORT_FD, NULL, NULL, NULL) != RFL_OK;
	else if (argc == 3 && strcmp(argv[1], "parent") == 0)
		failed = be_parent(argv[2]);
	else if (argc == 3 && strcmp(argv[1], "parent-once") == 0)
		failed = be_parent_once(argv[2]);
	else
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(self);
	return failed;
}
