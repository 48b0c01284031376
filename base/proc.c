/*
 * proc.c - watch a child to its end: pipes, deadline, cancellation, rusage. proc_spawn.c starts it.
 */
#define _GNU_SOURCE /* wait4, syscall */

#include "base/proc_impl.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define CAPTURE_MAX   ((size_t)64 << 20)
#define REPORT_MAX    ((size_t)16 << 20) /* one line */
#define BLOCK_SIZE    65536
#define TICK_MS       100 /* how often cancelled() is asked */
#define TICK_NO_FD_MS 10  /* where the kernel has no descriptor for a process */
#define KILL_AFTER_S  5.0
#define NEVER         INFINITY

struct watch {
	const struct rfl_proc_spec *spec;
	struct rfl_proc_result *result;
	struct rfl_proc__child child;
	int pidfd; /* readable when the child has ended; -1: not supported */
	size_t input_at;
	struct rfl_buf report;
	double start_s, term_at_s, kill_at_s;
	bool reaped;
	struct rfl_err *err;
	enum rfl_rc rc;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void fail(struct watch *w, const char *what)
{
	w->rc = rfl_fail(w->err, RFL_EIO, errno, "%s: %s: %s", w->spec->argv[0], what,
			 strerror(errno));
}

/* --- what the child says --------------------------------------------------------------------- */

/* Hand out the complete lines and keep the rest. */
static void deliver_lines(struct watch *w)
{
	char *line = w->report.data, *end;

	if (w->report.failed) {
		rfl_log(RFL_LOG_WARN, "%s: a report line of more than %zu bytes was dropped",
			w->spec->argv[0], REPORT_MAX);
		rfl_buf_reset(&w->report);
		return;
	}
	while (line &&
	       (end = memchr(line, '\n', w->report.len - (size_t)(line - w->report.data)))) {
		*end = '\0';
		if (w->spec->on_report)
			w->spec->on_report(line, w->spec->ctx);
		line = end + 1;
	}
	if (line && line != w->report.data) {
		size_t rest = w->report.len - (size_t)(line - w->report.data);

		memmove(w->report.data, line, rest);
		w->report.len = rest;
		w->report.data[rest] = '\0';
	}
}

/* Read what is there, once. False when the pipe is at its end and was closed. */
static bool read_pipe(struct watch *w, int *fd, struct rfl_buf *into)
{
	char block[BLOCK_SIZE];
	ssize_t n = read(*fd, block, sizeof(block));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return errno == EINTR;
	if (n < 0)
		fail(w, "cannot read from the child");
	if (n <= 0) {
		close_fd(fd);
		return false;
	}
	rfl_buf_append(into, block, (size_t)n);
	if (into == &w->report)
		deliver_lines(w);
	return true;
}

static void write_input(struct watch *w)
{
	const char *data = w->spec->input;
	ssize_t n = write(w->child.in, data + w->input_at, w->spec->input_len - w->input_at);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0 && errno != EPIPE) /* a child may leave its input unread */
		fail(w, "cannot write to the child");
	if (n > 0)
		w->input_at += (size_t)n;
	if (n < 0 || w->input_at == w->spec->input_len)
		close_fd(&w->child.in);
}

/* After the child's end: what it wrote is in the pipes already. Only so much is read, because a
 * grandchild that goes on writing would keep us for ever. */
static void drain(struct watch *w)
{
	struct {
		int *fd;
		struct rfl_buf *into;
	} pipes[] = {
		{ &w->child.out, &w->result->out },
		{ &w->child.err, &w->result->err },
		{ &w->child.report, &w->report },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(pipes); i++) {
		int there = 0;

		if (*pipes[i].fd >= 0 && ioctl(*pipes[i].fd, FIONREAD, &there) != 0)
			fail(w, "cannot read from the child");
		for (; there > 0 && read_pipe(w, pipes[i].fd, pipes[i].into); there -= BLOCK_SIZE)
			;
	}
}

/* --- its end --------------------------------------------------------------------------------- */

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static void note_end(struct watch *w, int status, const struct rusage *ru)
{
	struct rfl_proc_result *r = w->result;

	r->wall_s = rfl_clock_s() - w->start_s;
	r->exited = WIFEXITED(status);
	r->exit_code = r->exited ? WEXITSTATUS(status) : 0;
	r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	r->user_s = seconds(ru->ru_utime);
	r->system_s = seconds(ru->ru_stime);
#ifdef __APPLE__
	r->max_rss_bytes = (double)ru->ru_maxrss;
#else
	r->max_rss_bytes = (double)ru->ru_maxrss * 1024;
#endif
	r->minor_faults = ru->ru_minflt;
	r->major_faults = ru->ru_majflt;
	r->voluntary_switches = ru->ru_nvcsw;
	r->involuntary_switches = ru->ru_nivcsw;
	r->fs_inputs = ru->ru_inblock;
	r->fs_outputs = ru->ru_oublock;
}

static void try_reap(struct watch *w)
{
	struct rusage ru;
	int status;
	pid_t pid;

	do
		pid = wait4(w->child.pid, &status, WNOHANG, &ru);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return;
	w->reaped = true;
	if (pid < 0)
		fail(w, "cannot wait for the child");
	else
		note_end(w, status, &ru);
}

/* SIGTERM when the time is up or the caller asks; SIGKILL when that was not enough. */
static void stop_when_due(struct watch *w)
{
	double now_s = rfl_clock_s();
	bool stopping = w->result->timed_out || w->result->cancelled;

	if (!stopping && now_s >= w->term_at_s)
		w->result->timed_out = true;
	else if (!stopping && w->spec->cancelled && w->spec->cancelled(w->spec->ctx))
		w->result->cancelled = true;
	if (!stopping && (w->result->timed_out || w->result->cancelled)) {
		kill(w->child.pid, SIGTERM);
		w->kill_at_s = now_s + KILL_AFTER_S;
	}
	if (now_s >= w->kill_at_s) {
		kill(w->child.pid, SIGKILL);
		w->kill_at_s = NEVER;
	}
}

/* Milliseconds until something has to be looked at, -1 for "when the child moves". */
static int next_look(const struct watch *w)
{
	bool stopping = w->result->timed_out || w->result->cancelled;
	double due_s = stopping ? w->kill_at_s : w->term_at_s;
	double ms = isinf(due_s) ? NEVER : ceil((due_s - rfl_clock_s()) * 1e3);

	if (!stopping && w->spec->cancelled)
		ms = fmin(ms, TICK_MS);
	if (w->pidfd < 0)
		ms = fmin(ms, TICK_NO_FD_MS);
	if (isinf(ms))
		return -1;
	return ms < 0 ? 0 : ms > 1e6 ? 1000000 : (int)ms;
}

static void watch_once(struct watch *w)
{
	struct pollfd fds[] = {
		{ .fd = w->child.out, .events = POLLIN },
		{ .fd = w->child.err, .events = POLLIN },
		{ .fd = w->child.report, .events = POLLIN },
		{ .fd = w->child.in, .events = POLLOUT },
		{ .fd = w->pidfd, .events = POLLIN },
	};

	if (poll(fds, RFL_ARRAY_LEN(fds), next_look(w)) < 0) {
		if (errno != EINTR)
			fail(w, "cannot poll");
		return;
	}
	if (fds[0].revents)
		read_pipe(w, &w->child.out, &w->result->out);
	if (fds[1].revents)
		read_pipe(w, &w->child.err, &w->result->err);
	if (fds[2].revents)
		read_pipe(w, &w->child.report, &w->report);
	if (fds[3].revents)
		write_input(w);
	if (fds[4].revents || w->pidfd < 0)
		try_reap(w);
	if (!w->reaped)
		stop_when_due(w);
}

static int open_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
	return (int)syscall(SYS_pidfd_open, pid, 0);
#else
	(void)pid;
	return -1;
#endif
}

/* --- SIGPIPE --------------------------------------------------------------------------------- */

struct sigpipe {
	sigset_t before;
	bool was_pending;
};

static void hold_sigpipe(struct sigpipe *s)
{
	sigset_t set, pending;

	sigpending(&pending);
	s->was_pending = sigismember(&pending, SIGPIPE) == 1;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, &s->before);
}

/* Take back the one that our own write raised, then unblock. */
static void release_sigpipe(const struct sigpipe *s)
{
	const struct timespec now = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	if (!s->was_pending)
		while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}

/* --- run ------------------------------------------------------------------------------------- */

static enum rfl_rc watch_to_end(struct watch *w)
{
	w->pidfd = open_pidfd(w->child.pid);
	if (w->spec->timeout_s > 0)
		w->term_at_s = w->start_s + w->spec->timeout_s;
	while (!w->reaped && w->rc == RFL_OK)
		watch_once(w);
	if (!w->reaped) { /* our own failure: leave no child behind */
		kill(w->child.pid, SIGKILL);
		while (waitpid(w->child.pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	drain(w);
	close_fd(&w->pidfd);
	rfl_proc__child_close(&w->child);
	rfl_buf_fini(&w->report);
	return w->rc;
}

enum rfl_rc rfl_proc_run(const struct rfl_proc_spec *spec, struct rfl_proc_result *ret,
			 struct rfl_err *err)
{
	struct watch w = {
		.spec = spec,
		.result = ret,
		.pidfd = -1,
		.err = err,
		.term_at_s = NEVER,
		.kill_at_s = NEVER,
	};
	struct sigpipe sigpipe;
	enum rfl_rc rc;

	*ret = (struct rfl_proc_result){ 0 };
	rfl_buf_init(&ret->out, CAPTURE_MAX);
	rfl_buf_init(&ret->err, CAPTURE_MAX);
	rfl_buf_init(&w.report, REPORT_MAX);
	hold_sigpipe(&sigpipe);
	w.start_s = rfl_clock_s();
	rc = rfl_proc__spawn(spec, &sigpipe.before, &w.child, err);
	ret->started = rc == RFL_OK;
	if (rc == RFL_OK)
		rc = watch_to_end(&w);
	release_sigpipe(&sigpipe);
	return rc;
}

void rfl_proc_result_fini(struct rfl_proc_result *r)
{
	rfl_buf_fini(&r->out);
	rfl_buf_fini(&r->err);
}
