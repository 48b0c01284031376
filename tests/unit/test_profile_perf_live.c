/* The perf source on this machine: events of the kernel work nearly everywhere, and are compared
 * with what the system says of the process by other ways. Where perf_event_open is forbidden
 * altogether the test is skipped, with the reason. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS, getrusage's counts */
#endif
#include "tests/unit/rfl_test.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "profile/perf/impl.h"

#define PAGES 4096

static long page_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* Touch each page of a fresh mapping once: as many faults. */
static void touch(size_t pages)
{
	const size_t size = pages * (size_t)page_bytes();
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	(void)madvise(p, size, MADV_NOHUGEPAGE); /* one fault for each */
	for (size_t i = 0; i < pages; i++)
		p[i * (size_t)page_bytes()] = 1;
	assert_int_equal(munmap(p, size), 0);
}

static void burn(double seconds)
{
	struct timespec t;
	double end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	end = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + seconds;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec < end);
}

/* A thread that is there before anything is counted, as those of a BLAS are: it works when asked,
 * and ends before its counts are read. */
struct helper {
	pthread_t thread;
	atomic_int asked;
};

static void *helper_main(void *arg)
{
	struct helper *h = arg;

	while (!atomic_load(&h->asked))
		usleep(200);
	touch(PAGES);
	burn(0.05);
	return NULL;
}

static void *late_main(void *arg)
{
	(void)arg;
	touch(PAGES);
	burn(0.05);
	return NULL;
}

struct seen {
	struct helper *helper; /* NULL: has ended */
	double cpu_s;          /* of the first pass, which has the events of the kernel */
	long faults;
};

static double process_cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long process_faults(void)
{
	struct rusage u;

	assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_minflt + u.ru_majflt;
}

/* One thread from before, this one, and one that begins meanwhile. */
static enum rfl_rc work(void *ctx, struct rfl_ranges *r, struct rfl_err *err)
{
	struct seen *s = ctx;
	pthread_t late;
	const double cpu_s = process_cpu_s();
	const long faults = process_faults();

	assert_ok(r->begin(r, RFL_RANGE_STEP, "step", err), err);
	if (s->helper)
		atomic_store(&s->helper->asked, 1);
	assert_int_equal(pthread_create(&late, NULL, late_main, NULL), 0);
	touch(PAGES);
	burn(0.05);
	assert_int_equal(pthread_join(late, NULL), 0);
	if (s->helper)
		assert_int_equal(pthread_join(s->helper->thread, NULL), 0);
	if (s->helper) {
		s->cpu_s = process_cpu_s() - cpu_s;
		s->faults = process_faults() - faults;
	}
	s->helper = NULL;
	return RFL_OK;
}

static const struct rfl_metric *metric_of(const struct rfl_range *r, const char *name)
{
	for (size_t i = 0; i < r->nmetrics; i++)
		if (strcmp(r->metrics[i].name, name) == 0)
			return &r->metrics[i];
	fail_msg("there is no metric %s", name);
	return NULL;
}

static void counts_all_threads(void **state)
{
	struct helper helper = { .asked = 0 };
	struct seen seen = { .helper = &helper };
	const struct rfl_workload workload = { .run = work, .ctx = &seen };
	const struct rfl_source_request request = { .precision = "fp32", .label = "live" };
	struct rfl_captures captures;
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_range *step;

	(void)state;
	rfl_captures_init(&captures);
	assert_int_equal(pthread_create(&helper.thread, NULL, helper_main, &helper), 0);
	assert_ok(rfl_source_perf.measure(&request, &workload, &captures, &err), &err);
	assert_int_equal(captures.n, 1);
	step = &captures.captures[0]->ranges[0];
	assert_string_equal(step->name, "step");

	const struct rfl_metric *faults = metric_of(step, "page-faults");
	const struct rfl_metric *clock = metric_of(step, "task-clock");

	print_message("page faults %.0f, by getrusage %ld; task clock %.6f s, by the process's "
		      "clock %.6f s\n",
		      faults->value, seen.faults, clock->value, seen.cpu_s);
	/* three threads; a few more for stacks and libraries, and none is missing */
	assert_true(faults->value >= 3 * PAGES);
	assert_true(faults->value <= (double)seen.faults);
	assert_true((double)seen.faults - faults->value < 64);
	assert_true(clock->value >= 0.15);
	/* a lost thread is a third; on a busy machine the two clocks part by some percent */
	assert_close(clock->value, seen.cpu_s, 0.2);
	assert_close(step->amount[RFL_QUANTITY_TASK_CLOCK].value, clock->value, 0);
	assert_true(step->amount[RFL_QUANTITY_TIME].value > 0.05);
	rfl_captures_fini(&captures);
}

/* A soft limit of open files is raised where it is in the way. */
static void makes_room_for_files(void **state)
{
	const struct rfl_perf_sys *sys = &rfl_perf_sys_linux;
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_TASK_CLOCK,
					.exclude_kernel = 1 };
	struct rlimit was, low;
	int fds[3];

	(void)state;
	fds[0] = sys->open(NULL, &attr, 0, -1, -1);
	assert_true(fds[0] >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	low = was;
	low.rlim_cur = (rlim_t)fds[0] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	fds[1] = sys->open(NULL, &attr, 0, -1, -1);
	assert_true(fds[1] > fds[0]);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC); /* no child that is executed has them */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &low), 0);
	assert_true(low.rlim_cur == was.rlim_max);
	sys->close(NULL, fds[0]);
	sys->close(NULL, fds[1]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

/* Each hardware counter has a value, or says why not; none is 0 for not known. */
static void gives_a_value_or_a_reason(void **state)
{
	struct helper helper = { .asked = 0 };
	struct seen seen = { .helper = &helper };
	const struct rfl_workload workload = { .run = work, .ctx = &seen };
	const struct rfl_source_request request = { .precision = "fp32" };
	struct rfl_captures captures;
	struct rfl_perf_status status;
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_range *step;

	(void)state;
	assert_ok(rfl_perf_look(&status, &err), &err);
	rfl_captures_init(&captures);
	assert_int_equal(pthread_create(&helper.thread, NULL, helper_main, &helper), 0);
	assert_ok(rfl_source_perf.measure(&request, &workload, &captures, &err), &err);
	step = &captures.captures[0]->ranges[0];
	for (size_t i = 0; i < step->nmetrics; i++) {
		const struct rfl_metric *m = &step->metrics[i];

		assert_true(isnan(m->value) == (m->validity == RFL_VALID_UNAVAILABLE));
		assert_true(!isnan(m->value) || (m->reason && m->reason[0]));
	}
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		assert_true(!isnan(step->amount[q].value) || step->amount[q].reason);
	if (status.hardware == 0) {
		assert_true(isnan(metric_of(step, "cycles")->value));
		assert_string_equal(metric_of(step, "cycles")->reason, status.no_hardware);
	}
	print_message("%s: %zu events of the kernel, %zu of hardware%s%s\n", status.processor,
		      status.software, status.hardware, status.no_hardware[0] ? ": " : "",
		      status.no_hardware);
	rfl_captures_fini(&captures);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_all_threads),
		cmocka_unit_test(makes_room_for_files),
		cmocka_unit_test(gives_a_value_or_a_reason),
	};
	struct rfl_perf_status status;
	struct rfl_err err = RFL_ERR_INIT;

	if (rfl_perf_look(&status, &err) != RFL_OK) {
		fprintf(stderr, "skipped: %s\n", err.msg);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
