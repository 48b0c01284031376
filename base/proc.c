/*
 * proc.c - starts a child process (pipes, fork, exec) and watches it until it ends (output,
 * deadline, cancellation, resource usage).
 */
#define _DEFAULT_SOURCE /* wait4 */

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
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"

#define CAPTURE_MAX   ((size_t)64 << 20)
#define REPORT_MAX    ((size_t)16 << 20) /* maximum length of a line */
#define BLOCK_SIZE    65536
#define TICK_MS       100 /* milliseconds between calls of cancelled() */
#define TICK_NO_FD_MS 10  /* milliseconds between checks without pidfd */
#define KILL_AFTER_S  5.0
#define NEVER         INFINITY
/* The parent's descriptors are higher than those set up for the child, so that no dup2() in the
 * child overwrites one that is still needed. */
#define FIRST_FD 10

extern char **environ;

enum { IN, OUT, ERR, REPORT, FAILURE, NPIPES }; /* FAILURE carries the errno of a failed exec */

/* A started child. */
struct watch {
	const struct rfl_proc_spec *spec;
	struct rfl_proc_result *result;
	pid_t pid;
	int fds[NPIPES]; /* the parent's ends of the pipes, non-blocking; -1: none */
	int pidfd;       /* readable after the child has ended; -1: not supported */
	struct rfl_buf *into[NPIPES], report;
	size_t input_at;
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

/* --- start -----------------------------------------------------------------------------------
 * Allocate before the fork: between fork and exec only async-signal-safe calls are allowed.
 */

/* Move a descriptor to `least` or above. */
static int lift(int fd, int least)
{
	int high;

	if (fd < 0 || fd >= least)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, least);
	if (high < 0 && errno == EINVAL) /* `least` exceeds the limit of descriptors */
		errno = EMFILE;
	close(fd);
	return high;
}

char **rfl_proc_env(const char *const *added)
{
	size_t ours = 0, more = 0, n = 0;
	char **env;

	while (environ && environ[ours])
		ours++;
	while (added && added[more])
		more++;
	env = rfl_alloc_array(ours + more + 1, sizeof(*env));
	for (size_t i = 0; i < ours; i++) {
		const size_t name = strcspn(environ[i], "=");
		size_t k = 0;

		while (k < more &&
		       (strncmp(environ[i], added[k], name) != 0 || added[k][name] != '='))
			k++;
		if (k == more)
			env[n++] = environ[i];
	}
	for (size_t i = 0; i < more; i++)
		memcpy(&env[n++], &added[i], sizeof(*env)); /* execvp() needs them without const */
	return env;
}

/* Called in the child: send errno to the parent and exit. */
RFL_NORETURN static void give_up(int failure_fd)
{
	int code = errno;

	(void)!write(failure_fd, &code, sizeof(code));
	_exit(127);
}

void rfl_proc_exec(const char *const *argv, char **env, const sigset_t *mask, int failure)
{
	const struct sigaction standard = { .sa_handler = SIG_DFL };
	char *const *words;

	/* main() ignores these two */
	sigaction(SIGPIPE, &standard, NULL);
	sigaction(SIGXFSZ, &standard, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	environ = env;
	memcpy(&words, &argv, sizeof(words)); /* execvp() needs it without const */
	execvp(words[0], words);
	give_up(failure);
}

int rfl_proc_exec_errno(int failure, pid_t pid)
{
	int code = 0;
	ssize_t n;

	do
		n = read(failure, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(code)) /* closed by exec */
		return 0;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return code;
}

/* Called in the child: from fork to exec. `fds`: its ends of the pipes; `mask`: its signal mask. */
static void run_child(const struct rfl_proc_spec *spec, const int fds[NPIPES], char **env,
		      const sigset_t *mask, pid_t parent)
{
	if (rfl_os_die_with_parent() != 0)
		give_up(fds[FAILURE]);
	if (getppid() != parent) /* the parent died before that */
		_exit(127);
	if (dup2(fds[IN], STDIN_FILENO) < 0 ||
	    (spec->capture_stdout && dup2(fds[OUT], STDOUT_FILENO) < 0) ||
	    (spec->capture_stderr && dup2(fds[ERR], STDERR_FILENO) < 0) ||
	    (spec->report_fd > 0 && dup2(fds[REPORT], spec->report_fd) < 0))
		give_up(fds[FAILURE]);
	rfl_proc_exec(spec->argv, env, mask, fds[FAILURE]);
}

static enum rfl_rc fail_start(const struct rfl_proc_spec *spec, int code, struct rfl_err *err)
{
	if (code == ENOENT || code == EACCES || code == ENOTDIR || code == ENOEXEC)
		return rfl_fail(err, RFL_EUNAVAILABLE, code, "%s: cannot start: %s", spec->argv[0],
				strerror(code));
	return rfl_fail(err, RFL_EIO, code, "%s: cannot start: %s%s", spec->argv[0], strerror(code),
			code == EMFILE ? "; raise the limit with 'ulimit -n'" : "");
}

/* Open the pipes and start the child with this signal mask. Only the parent's ends of the pipes
 * stay open, and none on failure. */
static enum rfl_rc spawn(struct watch *w, const sigset_t *mask, struct rfl_err *err)
{
	const struct rfl_proc_spec *spec = w->spec;
	const int least = spec->report_fd >= FIRST_FD ? spec->report_fd + 1 : FIRST_FD;
	const bool wanted[NPIPES] = {
		[IN] = spec->input != NULL,
		[OUT] = spec->capture_stdout,
		[ERR] = spec->capture_stderr,
		[REPORT] = spec->report_fd > 0,
		[FAILURE] = true,
	};
	int theirs[NPIPES] = { -1, -1, -1, -1, -1 }, ends[2];
	char **env = rfl_proc_env(spec->env);
	const pid_t parent = getpid();
	enum rfl_rc rc = RFL_OK;
	int code; /* errno of the failed exec */

	for (int i = 0; i < NPIPES; i++) {
		if (wanted[i] && rfl_os_pipe(ends) == 0) {
			theirs[i] = lift(ends[i != IN], least);
			w->fds[i] = lift(ends[i == IN], least);
		} else if (i == IN && !wanted[i]) {
			theirs[i] = lift(open("/dev/null", O_RDONLY | O_CLOEXEC), least);
		}
		if ((theirs[i] < 0 && (wanted[i] || i == IN)) || (wanted[i] && w->fds[i] < 0)) {
			rc = fail_start(spec, errno, err);
			goto done;
		}
	}
	w->pid = fork();
	if (w->pid == 0)
		run_child(spec, theirs, env, mask, parent); /* does not return */
	if (w->pid < 0) {
		rc = fail_start(spec, errno, err);
		goto done;
	}
	close_fd(&theirs[FAILURE]);
	code = rfl_proc_exec_errno(w->fds[FAILURE], w->pid);
	close_fd(&w->fds[FAILURE]);
	if (code) {
		rc = fail_start(spec, code, err);
		goto done;
	}
	if (spec->input_len == 0)
		close_fd(&w->fds[IN]);
	for (int i = 0; i < NPIPES; i++)
		if (w->fds[i] >= 0)
			(void)fcntl(w->fds[i], F_SETFL, fcntl(w->fds[i], F_GETFL) | O_NONBLOCK);
done:
	for (int i = 0; i < NPIPES; i++) {
		close_fd(&theirs[i]);
		if (rc != RFL_OK)
			close_fd(&w->fds[i]);
	}
	free(env);
	return rc;
}

static void fail(struct watch *w, const char *what)
{
	w->rc = rfl_fail_errno(w->err, "%s: %s", w->spec->argv[0], what);
}

/* Pass complete report lines to the callback and keep the rest. */
static void deliver_lines(struct watch *w)
{
	char *line = w->report.data, *end;
	size_t rest = w->report.len;

	if (w->report.failed) {
		rfl_log(RFL_LOG_WARN, "%s: dropped a report line of more than %zu bytes",
			w->spec->argv[0], REPORT_MAX);
		rfl_buf_reset(&w->report);
		return;
	}
	while ((end = memchr(line, '\n', rest)) != NULL) {
		*end = '\0';
		if (w->spec->on_report)
			w->spec->on_report(line, w->spec->ctx);
		rest -= (size_t)(end + 1 - line);
		line = end + 1;
	}
	memmove(w->report.data, line, rest);
	w->report.len = rest;
	w->report.data[rest] = '\0';
}

/* Read once from a pipe. At its end, close it and return false. */
static bool read_pipe(struct watch *w, int pipe)
{
	char block[BLOCK_SIZE];
	ssize_t n = read(w->fds[pipe], block, sizeof(block));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return errno == EINTR;
	if (n < 0)
		fail(w, "cannot read from the child");
	if (n <= 0) {
		close_fd(&w->fds[pipe]);
		return false;
	}
	rfl_buf_append(w->into[pipe], block, (size_t)n);
	if (pipe == REPORT)
		deliver_lines(w);
	return true;
}

static void write_input(struct watch *w)
{
	const char *data = w->spec->input;
	ssize_t n = write(w->fds[IN], data + w->input_at, w->spec->input_len - w->input_at);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0 && errno != EPIPE) /* a child may leave its input unread */
		fail(w, "cannot write to the child");
	if (n > 0)
		w->input_at += (size_t)n;
	if (n < 0 || w->input_at == w->spec->input_len)
		close_fd(&w->fds[IN]);
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

void rfl_proc_add_usage(struct rfl_proc_result *r, const struct rusage *ru)
{
	r->user_s += seconds(ru->ru_utime);
	r->system_s += seconds(ru->ru_stime);
	r->max_rss_bytes = fmax(r->max_rss_bytes, (double)ru->ru_maxrss * rfl_os_rss_unit);
	r->minor_faults += ru->ru_minflt;
	r->major_faults += ru->ru_majflt;
	r->voluntary_switches += ru->ru_nvcsw;
	r->involuntary_switches += ru->ru_nivcsw;
	r->fs_inputs += ru->ru_inblock;
	r->fs_outputs += ru->ru_oublock;
}

void rfl_proc_set_status(struct rfl_proc_result *r, int status)
{
	r->exited = WIFEXITED(status);
	r->exit_code = r->exited ? WEXITSTATUS(status) : 0;
	r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void try_reap(struct watch *w)
{
	struct rfl_proc_result *r = w->result;
	struct rusage ru;
	int status;
	pid_t pid;

	do
		pid = wait4(w->pid, &status, WNOHANG, &ru);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return;
	w->reaped = true;
	if (pid < 0) {
		fail(w, "cannot wait for the child");
		return;
	}
	r->wall_s = rfl_clock_s() - w->start_s;
	rfl_proc_set_status(r, status);
	rfl_proc_add_usage(r, &ru);
}

/* Send SIGTERM at the deadline or on cancellation, then SIGKILL if the child does not end in time.
 * @return milliseconds until the next check; -1: no limit */
static int stop_when_due(struct watch *w)
{
	struct rfl_proc_result *r = w->result;
	const double now_s = rfl_clock_s();
	bool stopping = r->timed_out || r->cancelled;
	double ms;

	if (!stopping) {
		r->timed_out = now_s >= w->term_at_s;
		r->cancelled =
			!r->timed_out && w->spec->cancelled && w->spec->cancelled(w->spec->ctx);
		stopping = r->timed_out || r->cancelled;
		if (stopping) {
			kill(w->pid, SIGTERM);
			w->kill_at_s =
				now_s + (w->spec->grace_s > 0 ? w->spec->grace_s : KILL_AFTER_S);
		}
	}
	if (now_s >= w->kill_at_s) {
		kill(w->pid, SIGKILL);
		w->kill_at_s = NEVER;
	}
	ms = ceil(((stopping ? w->kill_at_s : w->term_at_s) - now_s) * 1e3);
	if (!stopping && w->spec->cancelled)
		ms = fmin(ms, TICK_MS);
	if (w->pidfd < 0)
		ms = fmin(ms, TICK_NO_FD_MS);
	return isinf(ms) ? -1 : (int)fmin(fmax(ms, 0), 1e6);
}

static void watch_to_end(struct watch *w)
{
	int wait_ms = 0;

	w->pidfd = rfl_os_exit_fd(w->pid);
	while (!w->reaped && w->rc == RFL_OK) {
		struct pollfd fds[FAILURE + 1];
		int n;

		for (int i = 0; i < FAILURE; i++)
			fds[i] = (struct pollfd){ .fd = w->fds[i],
						  .events = i == IN ? POLLOUT : POLLIN };
		fds[FAILURE] = (struct pollfd){ .fd = w->pidfd, .events = POLLIN };
		n = poll(fds, RFL_ARRAY_LEN(fds), wait_ms);
		if (n < 0 && errno != EINTR)
			fail(w, "cannot poll");
		for (int i = 0; n > 0 && i < FAILURE; i++) {
			if (fds[i].revents && i == IN)
				write_input(w);
			else if (fds[i].revents)
				(void)read_pipe(w, i);
		}
		if (w->pidfd < 0 || (n > 0 && fds[FAILURE].revents))
			try_reap(w);
		if (!w->reaped)
			wait_ms = stop_when_due(w);
	}
	if (!w->reaped) { /* watching failed: leave no child running */
		kill(w->pid, SIGKILL);
		while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	/* All output of the child is already in the pipes. Read no more than that, since a
	 * grandchild that keeps writing would block this loop forever. */
	for (int i = OUT; i <= REPORT; i++) {
		int there = 0;

		if (w->fds[i] >= 0 && ioctl(w->fds[i], FIONREAD, &there) != 0)
			fail(w, "cannot read from the child");
		for (; there > 0 && read_pipe(w, i); there -= BLOCK_SIZE)
			;
	}
	for (int i = 0; i < NPIPES; i++)
		close_fd(&w->fds[i]);
	close_fd(&w->pidfd);
}

enum rfl_rc rfl_proc_run(const struct rfl_proc_spec *spec, struct rfl_proc_result *ret,
			 struct rfl_err *err)
{
	struct watch w = {
		.spec = spec,
		.result = ret,
		.fds = { -1, -1, -1, -1, -1 },
		.pidfd = -1,
		.into = { [OUT] = &ret->out, [ERR] = &ret->err, [REPORT] = &w.report },
		.start_s = rfl_clock_s(),
		.term_at_s = NEVER,
		.kill_at_s = NEVER,
		.err = err,
	};
	sigset_t sigpipe, pending, before;
	int number;

	*ret = (struct rfl_proc_result){ 0 };
	rfl_buf_init(&ret->out, CAPTURE_MAX);
	rfl_buf_init(&ret->err, CAPTURE_MAX);
	rfl_buf_init(&w.report, REPORT_MAX);
	if (spec->timeout_s > 0)
		w.term_at_s = w.start_s + spec->timeout_s;
	sigpending(&pending);
	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
	w.rc = spawn(&w, &before, err);
	ret->started = w.rc == RFL_OK;
	if (ret->started)
		watch_to_end(&w);
	rfl_buf_fini(&w.report);
	/* consume a SIGPIPE raised by write_input(), then unblock the signal */
	if (sigismember(&pending, SIGPIPE) != 1) {
		sigpending(&pending);
		if (sigismember(&pending, SIGPIPE) == 1)
			(void)sigwait(&sigpipe, &number);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return w.rc;
}

void rfl_proc_result_fini(struct rfl_proc_result *r)
{
	rfl_buf_fini(&r->out);
	rfl_buf_fini(&r->err);
}

char *rfl_proc_self(struct rfl_err *err)
{
	char *path = rfl_os_program();

	if (!path)
		rfl_fail_errno(err, "the path of this program");
	return path;
}
