/* The marks of a program, by the header that it includes, and packets that no header sends. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/program/regions.h"
#include "tools/region/roofline_region.h"

struct log {
	struct rfl_ranges ranges; /* first */
	char text[2000];
};

RFL_PRINTF(2, 3)
static void note(struct rfl_ranges *r, const char *fmt, ...)
{
	struct log *l = (struct log *)r;
	const size_t len = strlen(l->text);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(l->text + len, sizeof(l->text) - len, fmt, ap);
	va_end(ap);
}

static enum rfl_rc log_begin(struct rfl_ranges *r, enum rfl_range_kind kind, const char *name,
			     struct rfl_err *err)
{
	(void)err;
	note(r, "%s %s; ", rfl_range_kind_names[kind], name);
	return RFL_OK;
}

static void log_end(struct rfl_ranges *r)
{
	note(r, "end; ");
}

static void log_add(struct rfl_ranges *r, const char *metric, const char *unit, double value,
		    const char *reason)
{
	(void)unit;
	note(r, "%s %g %s; ", metric, value, reason);
}

/* Run `child` in a process whose marks are taken. @return the log */
static struct log marks_of(struct rfl_regions *regions, void (*child)(void))
{
	struct log l = { .ranges = { .begin = log_begin, .end = log_end, .add = log_add } };
	pid_t pid;

	rfl_regions_begin(regions, &l.ranges);
	pid = fork();
	if (pid == 0) {
		char *variable = strdup(regions->variable);

		if (!variable || putenv(variable) != 0)
			_exit(1);
		child();
		_exit(0);
	}
	assert_true(pid > 0);
	while (waitpid(pid, NULL, WNOHANG) == 0)
		rfl_regions_take(regions);
	rfl_regions_end(regions);
	return l;
}

static void marks(void)
{
	roofline_begin("init");
	roofline_end("init");
	roofline_begin("solve");
	roofline_end_work("solve", 2e9, -1);
	roofline_end_work("solve", 1, 1);
	roofline_begin("open");
}

static void many_marks(void)
{
	char name[16];

	for (int i = 0; i <= RFL_REGIONS_NAMES; i++) {
		(void)snprintf(name, sizeof(name), "n%d", i);
		roofline_begin(name);
		roofline_end(name);
	}
	marks();
}

static void takes_marks(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_regions *r = NULL;
	struct log l;

	(void)state;
	roofline_begin("outside"); /* does nothing */
	assert_ok(rfl_regions_new(NULL, NAN, NAN, &r, &err), &err);
	l = marks_of(r, marks);
	assert_string_equal(l.text,
			    "phase init; end; phase solve; given FLOPs 2e+09 by the program; "
			    "end; phase open; end; ");
	assert_non_null(
		strstr(rfl_buf_str(&r->warnings), "'solve' ended without having begun; ignored\n"));
	assert_non_null(strstr(rfl_buf_str(&r->warnings), "'open' was never ended"));
	rfl_regions_free(r);

	/* one region, whose work the user knows */
	assert_ok(rfl_regions_new("solve", 7, NAN, &r, &err), &err);
	l = marks_of(r, marks);
	assert_string_equal(l.text, "phase solve; given FLOPs 7 by --flops; end; ");
	assert_true(r->time_s >= 0);
	rfl_regions_free(r);
	/* however many others there are */
	assert_ok(rfl_regions_new("solve", NAN, NAN, &r, &err), &err);
	(void)marks_of(r, many_marks);
	assert_true(r->time_s >= 0);
	rfl_regions_free(r);
	assert_ok(rfl_regions_new("absent", NAN, NAN, &r, &err), &err);
	(void)marks_of(r, marks);
	assert_true(isnan(r->time_s));
	rfl_regions_free(r);
	rfl_regions_free(NULL);
}

/* Each file that includes the header has a connection. */
static void marks_from_two_files(void)
{
	static const char end[] = "end\tsolve\t5\t-";
	char answer[8];
	int fd;

	roofline_begin("solve");
	fd = roofline__connect();
	if (send(fd, end, strlen(end), 0) < 0 || recv(fd, answer, sizeof(answer), 0) < 0)
		_exit(1);
	roofline_begin("next");
	roofline_end("next");
}

static void takes_marks_of_two_files(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_regions *r = NULL;
	struct log l;

	(void)state;
	assert_ok(rfl_regions_new(NULL, NAN, NAN, &r, &err), &err);
	l = marks_of(r, marks_from_two_files);
	assert_string_equal(l.text, "phase solve; given FLOPs 5 by the program; end; "
				    "phase next; end; ");
	assert_string_equal(rfl_buf_str(&r->warnings), "");
	rfl_regions_free(r);
}

static void nonsense(void)
{
	static const char *const packets[] = {
		"begin",          "begin\t",        "begin\ta\x01z", "stop\ta",
		"\t\t\t\t",       "end\ta",         "end\ta\t1",     "end\ta\t-1\t-",
		"end\ta\tnan\t-", "end\ta\tinf\t-", "end\ta\t1x\t1", "x",
	};
	char name[64], many[4096];

	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++)
		roofline__send(packets[i]);
	memset(many, 'a', sizeof(many) - 1);
	memcpy(many, "begin\t", 6);
	many[sizeof(many) - 1] = '\0';
	roofline__send(many);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(name, sizeof(name), "r%d", i);
		roofline_begin(name);
		roofline_end(name);
	}
	roofline_begin("r0");
}

/* Nothing of it is a region, and it is said once each; names are limited. */
static void ignores_nonsense(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_regions *r = NULL;
	struct log l;

	(void)state;
	assert_ok(rfl_regions_new(NULL, NAN, NAN, &r, &err), &err);
	l = marks_of(r, nonsense);
	assert_memory_equal(l.text, "phase r0; end; phase r1; end; ", 30);
	assert_non_null(strstr(rfl_buf_str(&r->warnings), "sent an invalid mark"));
	assert_non_null(strstr(rfl_buf_str(&r->warnings),
			       "more than 256 regions have different names; 'r256'"));
	assert_true(r->warnings.len <= 4096);
	rfl_regions_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_marks),
		cmocka_unit_test(takes_marks_of_two_files),
		cmocka_unit_test(ignores_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
