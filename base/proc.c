/*
 * proc.c - start a child (pipes, fork, exec) and watch it to its end (pipes, deadline,
 * cancellation, rusage).
 */
#define _GNU_SOURCE /* pipe2, prctl, wait4, syscall */

#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
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
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

#define CAPTURE_MAX   ((size_t)64 << 20)
#define REPORT_MAX    ((size_t)16 << 20) /* one line */
#define BLOCK_SIZE    65536
#define TICK_MS       100 /* how often cancelled() is asked */
#define TICK_NO_FD_MS 10  /* where the kernel has no descriptor for a process */
#define KILL_AFTER_S  5.0
#define NEVER         INFINITY

extern char **environ;

/* A started child and our ends of its pipes, non-blocking; -1 where there is none. */
struct child {
	pid_t pid;
	int in, out, err, report;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- start -----------------------------------------------------------------------------------
 * Everything that allocates happens before the fork: between fork and exec only async-signal-safe
 * calls are allowed.
 */

/* Descriptors of ours stay above the ones that the child is given, so that no dup2() in the child
 * can overwrite one that is still needed. */
#define FIRST_FD 10

struct pipe {
	int read_end, write_end;
};

/* Both ends of each pipe, and what else the child needs. */
struct plan {
	struct pipe in, out, err, report, failure;
	int null_fd;
	char **env;
};

static void close_pipe(struct pipe *p)
{
	close_fd(&p->read_end);
	close_fd(&p->write_end);
}

static void close_child(struct child *child)
{
	close_fd(&child->in);
	close_fd(&child->out);
	close_fd(&child->err);
	close_fd(&child->report);
}

/* Move a descriptor up to `least` or higher. */
static int lift(int fd, int least)
{
	int high;

	if (fd < 0 || fd >= least)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, least);
	if (high < 0 && errno == EINVAL) /* `least` is beyond the limit */
		errno = EMFILE;
	close(fd);
	return high;
}

static bool open_pipe(struct pipe *p, int least)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		return false;
	p->read_end = lift(fds[0], least);
	p->write_end = lift(fds[1], least);
	return p->read_end >= 0 && p->write_end >= 0;
}

static bool open_pipes(const struct rfl_proc_spec *spec, struct plan *plan)
{
	int least = spec->report_fd >= FIRST_FD ? spec->report_fd + 1 : FIRST_FD;

	if (!open_pipe(&plan->failure, least))
		return false;
	if (spec->input && !open_pipe(&plan->in, least))
		return false;
	if (!spec->input) {
		plan->null_fd = lift(open("/dev/null", O_RDONLY | O_CLOEXEC), least);
		if (plan->null_fd < 0)
			return false;
	}
	return (!spec->capture_stdout || open_pipe(&plan->out, least)) &&
	       (!spec->capture_stderr || open_pipe(&plan->err, least)) &&
	       (spec->report_fd <= 0 || open_pipe(&plan->report, least));
}

/* True when `added` has an entry for the variable of `entry`. */
static bool is_replaced(const char *entry, const char *const *added)
{
	size_t len = strcspn(entry, "=");

	for (; *added; added++)
		if (strncmp(entry, *added, len) == 0 && (*added)[len] == '=')
			return true;
	return false;
}

/* Our environment with the added variables; the strings are borrowed. */
static char **make_env(const char *const *added)
{
	static const char *const none[] = { NULL };
	size_t ours = 0, more = 0, n = 0;
	char **env;

	if (!added)
		added = none;
	while (environ && environ[ours])
		ours++;
	while (added[more])
		more++;
	env = rfl_alloc_array(ours + more + 1, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < ours; i++)
		if (!is_replaced(environ[i], added))
			env[n++] = environ[i];
	for (size_t i = 0; i < more; i++)
		memcpy(&env[n++], &added[i], sizeof(*env)); /* exec wants them without const */
	return env;
}

/* In the child: the parent reads why. */
static void give_up(int failure_fd)
{
	int code = errno;

	(void)!write(failure_fd, &code, sizeof(code));
	_exit(127);
}

static void run_child(const struct rfl_proc_spec *spec, const struct plan *plan,
		      const sigset_t *mask, pid_t parent)
{
	const struct sigaction standard = { .sa_handler = SIG_DFL };
	int failure_fd = plan->failure.write_end;
	char *const *argv;

#ifdef __linux__
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		give_up(failure_fd);
	if (getppid() != parent) /* it died before prctl() took hold */
		_exit(127);
#else
	(void)parent;
#endif
	if (dup2(spec->input ? plan->in.read_end : plan->null_fd, STDIN_FILENO) < 0 ||
	    (spec->capture_stdout && dup2(plan->out.write_end, STDOUT_FILENO) < 0) ||
	    (spec->capture_stderr && dup2(plan->err.write_end, STDERR_FILENO) < 0) ||
	    (spec->report_fd > 0 && dup2(plan->report.write_end, spec->report_fd) < 0))
		give_up(failure_fd);
	sigaction(SIGPIPE, &standard, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	environ = plan->env;
	memcpy(&argv, &spec->argv, sizeof(argv)); /* exec wants it without const */
	execvp(argv[0], argv);
	give_up(failure_fd);
}

static enum rfl_rc fail_start(const struct rfl_proc_spec *spec, int code, struct rfl_err *err)
{
	if (code == ENOENT || code == EACCES || code == ENOTDIR || code == ENOEXEC)
		return rfl_fail(err, RFL_EUNAVAILABLE, code, "%s: cannot be started: %s",
				spec->argv[0], strerror(code));
	return rfl_fail(err, RFL_EIO, code, "%s: cannot be started: %s%s", spec->argv[0],
			strerror(code), code == EMFILE ? "; raise the limit with 'ulimit -n'" : "");
}

static int take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	if (taken >= 0)
		(void)fcntl(taken, F_SETFL, fcntl(taken, F_GETFL) | O_NONBLOCK);
	return taken;
}

/* Start it; `mask` is the signal mask that it gets. Nothing is left open after a failure. */
static enum rfl_rc spawn(const struct rfl_proc_spec *spec, const sigset_t *mask, struct child *ret,
			 struct rfl_err *err)
{
	const struct pipe closed = { .read_end = -1, .write_end = -1 };
	struct plan plan = {
		.in = closed,
		.out = closed,
		.err = closed,
		.report = closed,
		.failure = closed,
		.null_fd = -1,
	};
	const pid_t parent = getpid();
	enum rfl_rc rc = RFL_OK;
	int code = 0; /* why the child could not exec */
	ssize_t n;
	pid_t pid;

	plan.env = make_env(spec->env);
	if (!plan.env) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", spec->argv[0]);
		goto done;
	}
	if (!open_pipes(spec, &plan) || (pid = fork()) < 0) {
		rc = fail_start(spec, errno, err);
		goto done;
	}
	if (pid == 0)
		run_child(spec, &plan, mask, parent); /* does not return */
	close_fd(&plan.failure.write_end);
	do
		n = read(plan.failure.read_end, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(code)) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		rc = fail_start(spec, code, err);
		goto done;
	}
	*ret = (struct child){
		.pid = pid,
		.in = take(&plan.in.write_end),
		.out = take(&plan.out.read_end),
		.err = take(&plan.err.read_end),
		.report = take(&plan.report.read_end),
	};
	if (spec->input && spec->input_len == 0)
		close_fd(&ret->in);
done:
	close_pipe(&plan.in);
	close_pipe(&plan.out);
	close_pipe(&plan.err);
	close_pipe(&plan.report);
	close_pipe(&plan.failure);
	close_fd(&plan.null_fd);
	free(plan.env);
	return rc;
}

/* --- watch ----------------------------------------------------------------------------------- */

struct watch {
	const struct rfl_proc_spec *spec;
	struct rfl_proc_result *result;
	struct child child;
	int pidfd; /* readable when the child has ended; -1: not supported */
	size_t input_at;
	struct rfl_buf report;
	double start_s, term_at_s, kill_at_s;
	bool reaped;
	struct rfl_err *err;
	enum rfl_rc rc;
};

static void fail(struct watch *w, const char *what)
{
	w->rc = rfl_fail(w->err, RFL_EIO, errno, "%s: %s: %s", w->spec->argv[0], what,
			 strerror(errno));
}

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

/* Read what is there, once. False at the end of the pipe, which is closed then. */
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

/* After the child's end: what it wrote is in the pipes already. No more than that is read, because
 * a grandchild that keeps writing would keep us forever. */
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

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static void try_reap(struct watch *w)
{
	struct rfl_proc_result *r = w->result;
	struct rusage ru;
	int status;
	pid_t pid;

	do
		pid = wait4(w->child.pid, &status, WNOHANG, &ru);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return;
	w->reaped = true;
	if (pid < 0) {
		fail(w, "cannot wait for the child");
		return;
	}
	r->wall_s = rfl_clock_s() - w->start_s;
	r->exited = WIFEXITED(status);
	r->exit_code = r->exited ? WEXITSTATUS(status) : 0;
	r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	r->user_s = seconds(ru.ru_utime);
	r->system_s = seconds(ru.ru_stime);
#ifdef __APPLE__
	r->max_rss_bytes = (double)ru.ru_maxrss;
#else
	r->max_rss_bytes = (double)ru.ru_maxrss * 1024;
#endif
	r->minor_faults = ru.ru_minflt;
	r->major_faults = ru.ru_majflt;
	r->voluntary_switches = ru.ru_nvcsw;
	r->involuntary_switches = ru.ru_nivcsw;
	r->fs_inputs = ru.ru_inblock;
	r->fs_outputs = ru.ru_oublock;
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

/* Milliseconds until the next check, -1 for "when the child does something". */
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

/* --- run ------------------------------------------------------------------------------------- */

static enum rfl_rc watch_to_end(struct watch *w)
{
#ifdef SYS_pidfd_open
	w->pidfd = (int)syscall(SYS_pidfd_open, w->child.pid, 0);
#endif
	if (w->spec->timeout_s > 0)
		w->term_at_s = w->start_s + w->spec->timeout_s;
	while (!w->reaped && w->rc == RFL_OK)
		watch_once(w);
	if (!w->reaped) { /* our own failure: leave no child running */
		kill(w->child.pid, SIGKILL);
		while (waitpid(w->child.pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	drain(w);
	close_fd(&w->pidfd);
	close_child(&w->child);
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
	const struct timespec now = { 0 };
	sigset_t sigpipe, pending, before;
	enum rfl_rc rc;

	*ret = (struct rfl_proc_result){ 0 };
	rfl_buf_init(&ret->out, CAPTURE_MAX);
	rfl_buf_init(&ret->err, CAPTURE_MAX);
	rfl_buf_init(&w.report, REPORT_MAX);
	sigpending(&pending);
	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
	w.start_s = rfl_clock_s();
	rc = spawn(spec, &before, &w.child, err);
	ret->started = rc == RFL_OK;
	if (rc == RFL_OK)
		rc = watch_to_end(&w);
	/* take back the SIGPIPE that our own write raised, then unblock it */
	if (sigismember(&pending, SIGPIPE) != 1)
		while (sigtimedwait(&sigpipe, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

void rfl_proc_result_fini(struct rfl_proc_result *r)
{
	rfl_buf_fini(&r->out);
	rfl_buf_fini(&r->err);
}

char *rfl_proc_self(struct rfl_err *err)
{
	char *path = realpath("/proc/self/exe", NULL);

	if (!path && errno == ENOMEM)
		rfl_fail(err, RFL_ENOMEM, 0, "the program's path: out of memory");
	else if (!path)
		rfl_fail(err, RFL_EIO, errno, "/proc/self/exe: %s", strerror(errno));
	return path;
}
