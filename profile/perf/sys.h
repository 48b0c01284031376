/*
 * sys.h - internal: what the perf source asks of the system, as a table, so that a test can
 * answer in its place: perf_event_open(2) and its file descriptors, the threads of this process,
 * the clock, and the folder under which /proc and /sys lie.
 */
#ifndef RFL_PROFILE_PERF_SYS_H
#define RFL_PROFILE_PERF_SYS_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

struct rfl_perf_reading {
	uint64_t value, enabled_ns, running_ns;
};

/* All of them return what the system call returns, and set errno. */
struct rfl_perf_sys {
	int (*open)(void *ctx, const struct perf_event_attr *attr, int tid, int cpu, int group);
	/* PERF_EVENT_IOC_ENABLE, _DISABLE */
	int (*control)(void *ctx, int fd, unsigned long request);
	/* 0, or -1 */
	int (*read)(void *ctx, int fd, struct rfl_perf_reading *ret);
	void (*close)(void *ctx, int fd);
	/* Fill up to `max` thread numbers of this process; returns how many there are. */
	size_t (*threads)(void *ctx, int *tids, size_t max);
	double (*now_s)(void *ctx);
	void (*rest)(void *ctx, double seconds);
	void *ctx;
	const char *root; /* "" outside tests */
};

extern const struct rfl_perf_sys rfl_perf_sys_linux;

#endif
