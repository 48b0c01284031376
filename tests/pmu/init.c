/*
 * init.c - the init process of qemu_pmu.sh: counts loops of a known number of instructions with
 * profile/perf on armv8_pmuv3, over a thread and a child process, with and without multiplexing, in
 * this process and in a program that it starts.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* reboot, mount */
#endif
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/launch.h"
#include "base/num.h"
#include "profile/perf/impl.h"

#define INST_RETIRED 0x08 /* event of armv8_pmuv3 */
#define TOLERANCE    0.001

static const struct rfl_perf_sys *const sys = &rfl_perf_sys_linux;
static int failures;

RFL_PRINTF(2, 3)
static void check(bool ok, const char *format, ...)
{
	va_list args;

	printf("%s ", ok ? "ok    " : "FAILED");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	puts("");
	failures += !ok;
}

/* Two instructions per round. */
static void spin(long rounds)
{
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds) : : "cc");
}

static volatile int watched;

static void touch(long times)
{
	for (long i = 0; i < times; i++)
		watched = (int)i;
}

struct part {
	void (*work)(long);
	long n;
};

static void *in_thread(void *part)
{
	const struct part *p = part;

	p->work(2 * p->n);
	return NULL;
}

/* work(n) here, work(2 n) in a thread and work(4 n) in a child process. */
static void spread(void (*work)(long), long n)
{
	struct part part = { work, n };
	pthread_t thread;
	pid_t child;

	work(n);
	if (pthread_create(&thread, NULL, in_thread, &part) != 0)
		abort();
	pthread_join(thread, NULL);
	child = fork();
	if (child == 0) {
		work(4 * n);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

struct job {
	long share;
	struct rfl_launch_spec spec; /* of a program that does the same */
	struct rfl_launch *launch;
};

static enum rfl_rc run(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	const struct job *job = ctx;
	const enum rfl_rc rc = ranges->begin(ranges, RFL_RANGE_STEP, "step", err);

	spread(spin, job->share);
	return rc;
}

static enum rfl_rc start(void *ctx, int *pid, struct rfl_err *err)
{
	struct job *job = ctx;
	const enum rfl_rc rc = rfl_launch_new(&job->spec, &job->launch, err);

	if (rc == RFL_OK)
		*pid = (int)rfl_launch_pid(job->launch);
	return rc;
}

static enum rfl_rc run_program(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct job *job = ctx;
	struct rfl_proc_result result;
	enum rfl_rc rc = ranges->begin(ranges, RFL_RANGE_PROCESS, "program", err);

	if (rc == RFL_OK)
		rc = rfl_launch_go(job->launch, err);
	if (rc == RFL_OK)
		rc = rfl_launch_wait(job->launch, &result, err);
	rfl_launch_free(job->launch);
	return rc;
}

/* Measure 14 * share instructions with the source itself, in this process or in a program. */
static void measure(const char *what, bool program, long share, enum rfl_validity expected)
{
	char number[32];
	const char *const argv[] = { "/init", number, NULL };
	struct job job = { .share = share, .spec = { .argv = argv } };
	const struct rfl_workload workload = { .start = program ? start : NULL,
					       .run = program ? run_program : run,
					       .ctx = &job };
	const struct rfl_source_request request = { .precision = "fp32", .label = "qemu" };
	struct rfl_captures captures;
	struct rfl_err err = RFL_ERR_INIT;
	const double known = 14 * (double)share;

	(void)snprintf(number, sizeof(number), "%ld", share);
	rfl_captures_init(&captures);
	if (rfl_source_perf.measure(&request, &workload, &captures, &err) != RFL_OK) {
		check(false, "%s: %s", what, err.msg);
	} else {
		const struct rfl_amount *total = captures.captures[0]->total;
		const struct rfl_amount *n = &total[RFL_QUANTITY_INSTRUCTIONS];

		check(fabs(n->value / known - 1) < TOLERANCE && n->validity == expected,
		      "%s: %.0f of %.0f instructions (%s%s%s)", what, n->value, known,
		      rfl_validity_names[n->validity], n->reason ? ": " : "",
		      n->reason ? n->reason : "");
		check(total[RFL_QUANTITY_CYCLES].value > 0, "%s: %.0f cycles", what,
		      total[RFL_QUANTITY_CYCLES].value);
	}
	rfl_captures_fini(&captures);
}

/* Open an event as the plan's items do; it counts this process and its children in user mode. */
static int open_event(uint32_t type, uint64_t config, int leader)
{
	const struct rfl_perf_item item = { .user_only = true };
	const struct rfl_perf_target target = { .type = type, .config = { config }, .cpu = -1 };
	struct perf_event_attr attr;

	rfl_perf_attr(&item, &target, leader < 0, &attr);
	if (type == PERF_TYPE_BREAKPOINT) {
		attr.bp_type = HW_BREAKPOINT_W;
		attr.bp_addr = (uintptr_t)&watched;
		attr.bp_len = HW_BREAKPOINT_LEN_4;
	}
	return sys->open(sys->ctx, &attr, 0, -1, leader);
}

/* The errors that perf_event_open gives when counters run out, in a group and for breakpoints. */
static void runs_out(void)
{
	const int leader = open_event(PERF_TYPE_RAW, INST_RETIRED, -1);
	struct rfl_perf_reading reading = { 0 };
	int group[32], points[32], n = 0, m = 0;

	while (n < 32 && (group[n] = open_event(PERF_TYPE_RAW, INST_RETIRED, leader)) >= 0)
		n++;
	check(leader >= 0 && n >= 3 && n < 32 && errno == EINVAL, "a group of %d events: %s", n + 2,
	      strerror(errno));
	while (n > 0)
		sys->close(sys->ctx, group[--n]);
	sys->close(sys->ctx, leader);

	while (m < 32 && (points[m] = open_event(PERF_TYPE_BREAKPOINT, 0, -1)) >= 0)
		m++;
	check(m > 0 && m < 32 && errno == ENOSPC, "%d breakpoints: %s", m + 1, strerror(errno));
	if (m > 0) {
		(void)sys->control(sys->ctx, points[0], PERF_EVENT_IOC_ENABLE);
		spread(touch, 1000);
		check(sys->read(sys->ctx, points[0], &reading) == 0 && reading.value == 7000,
		      "writes at a breakpoint, with a thread and a child: %llu of 7000",
		      (unsigned long long)reading.value);
	}
	while (m > 0)
		sys->close(sys->ctx, points[--m]);
}

/* With other events that count all the time, the source's events take turns. */
static void multiplexes(void)
{
	int others[10];

	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++) {
		others[i] = open_event(PERF_TYPE_RAW, INST_RETIRED, -1);
		check(others[i] >= 0 &&
			      sys->control(sys->ctx, others[i], PERF_EVENT_IOC_ENABLE) == 0,
		      "another event, %zu", i + 1);
	}
	measure("multiplexed", false, 50000000, RFL_VALID_SCALED);
	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++)
		sys->close(sys->ctx, others[i]);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	check(f && fputs(text, f) >= 0, "%s", path);
	check(f && fclose(f) == 0, "%s = %s", path, text);
}

/* All checks, as a user, who may count user mode only. */
static int check_all(void)
{
	check(getuid() != 0, "an unprivileged user");
	measure("inherited", false, 1000000, RFL_VALID);
	measure("a program", true, 10000000, RFL_VALID);
	runs_out();
	multiplexes();
	return failures != 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getpid() != 1 && argc > 1) { /* the program that is measured */
		int64_t share;

		if (rfl_num_parse_int(argv[1], "share", &share, NULL) != RFL_OK)
			return 2;
		spread(spin, (long)share);
		return 0;
	}
	if (getpid() != 1)
		return check_all();
	puts("");
	(void)mkdir("/proc", 0755); /* may exist */
	(void)mkdir("/sys", 0755);
	check(mount("proc", "/proc", "proc", 0, NULL) == 0, "/proc");
	check(mount("sysfs", "/sys", "sysfs", 0, NULL) == 0, "/sys");
	write_file("/proc/sys/kernel/perf_event_paranoid", "2");
	const pid_t child = fork();

	if (child == 0) {
		/* exec makes the process dumpable again, without which its children cannot be
		 * counted */
		if (setgid(65534) == 0 && setuid(65534) == 0)
			execl("/init", "/init", (char *)NULL);
		_exit(1);
	}
	int status = -1;
	waitpid(child, &status, 0);
	check(status == 0, "all checks of that user");
	puts(failures == 0 ? "all passed" : "failed");
	sync();
	(void)reboot(RB_POWER_OFF);
	return 1;
}
