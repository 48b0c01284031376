/*
 * sys.c - the system itself.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "profile/perf/impl.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

/* Up to the hard limit: events in a hundred threads need more files than the usual soft one of
 * 1024. False when there is no room above. */
static bool raise_file_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= l.rlim_max)
		return false;
	l.rlim_cur = l.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &l) == 0;
}

static int sys_open(void *ctx, const struct perf_event_attr *attr, int tid, int cpu, int group)
{
	int fd;

	(void)ctx;
	do
		fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, group, PERF_FLAG_FD_CLOEXEC);
	while (fd < 0 && errno == EMFILE && raise_file_limit());
	return fd;
}

static int sys_control(void *ctx, int fd, unsigned long request)
{
	(void)ctx;
	return ioctl(fd, request, 0);
}

static int sys_read(void *ctx, int fd, struct rfl_perf_reading *ret)
{
	const ssize_t n = read(fd, ret, sizeof(*ret));

	(void)ctx;
	if (n == (ssize_t)sizeof(*ret))
		return 0;
	if (n >= 0)
		errno = ENODATA; /* the event is in an error state: a pinned one that lost its place
				  */
	return -1;
}

static void sys_close(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
}

static size_t sys_threads(void *ctx, int *tids, size_t max)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	size_t n = 0;

	(void)ctx;
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		int64_t tid;

		if (rfl_num_parse_int(entry->d_name, "thread", &tid, NULL) != RFL_OK)
			continue; /* . and .. */
		if (n < max)
			tids[n] = (int)tid;
		n++;
	}
	closedir(dir);
	return n;
}

static double sys_now_s(void *ctx)
{
	(void)ctx;
	return rfl_clock_s();
}

static void sys_rest(void *ctx, double seconds)
{
	struct timespec left = { .tv_sec = (time_t)seconds };

	(void)ctx;
	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		continue;
}

const struct rfl_perf_sys rfl_perf_sys_linux = {
	.open = sys_open,
	.control = sys_control,
	.read = sys_read,
	.close = sys_close,
	.threads = sys_threads,
	.now_s = sys_now_s,
	.rest = sys_rest,
	.root = "",
};
