/* launch.c - a gated fork, signals by signalfd, and reaping of one process or a whole tree. */
#define _GNU_SOURCE /* pipe2, prctl, wait4 */

#include "base/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

struct rfl_launch {
	const struct rfl_launch_spec *spec;
	pid_t pid; /* 0: reaped */
	int gate;  /* written to let the child execute */
	int failure, signals;
	sigset_t before;
	double start_s, give_up_s;
};

#define READY_MS 30000

static const int forwarded[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM };

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* In the child: wait for the gate, then execute. Only async-signal-safe calls. */
static void run_child(const struct rfl_launch_spec *spec, char **env, int gate, int failure)
{
	sigset_t none;
	ssize_t n;
	char go;

	do
		n = read(gate, &go, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1) /* the parent is gone */
		_exit(127);
	sigemptyset(&none);
	rfl_proc_exec(spec->argv, env, &none, failure);
}

enum rfl_rc rfl_launch_new(const struct rfl_launch_spec *spec, struct rfl_launch **ret,
			   struct rfl_err *err)
{
	RFL_AUTOPTR(launch) l = rfl_alloc_array(1, sizeof(*l));
	int gate[2] = { -1, -1 }, failure[2] = { -1, -1 };
	RFL_AUTOFREE char **env = rfl_proc_env(spec->env);
	struct signalfd_siginfo info;
	sigset_t set;
	enum rfl_rc rc = RFL_OK;

	*l = (struct rfl_launch){ .spec = spec, .gate = -1, .failure = -1, .signals = -1 };
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < RFL_ARRAY_LEN(forwarded); i++)
		sigaddset(&set, forwarded[i]);
	pthread_sigmask(SIG_BLOCK, &set, &l->before);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->signals < 0 || pipe2(gate, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0 ||
	    (spec->all && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0))
		rc = rfl_fail_errno(err, "%s: cannot start", spec->argv[0]);
	while (!rc && read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD) /* the child would not get it */
			rc = rfl_fail(err, RFL_EINTR, (int)info.ssi_signo,
				      "%s: not started: signal %d (%s)", spec->argv[0],
				      (int)info.ssi_signo, strsignal((int)info.ssi_signo));
	if (!rc && (l->pid = fork()) == 0) {
		close(gate[1]);
		run_child(spec, env, gate[0], failure[1]); /* does not return */
	}
	if (!rc && l->pid < 0) {
		l->pid = 0;
		rc = rfl_fail_errno(err, "%s: cannot start", spec->argv[0]);
	}
	close_fd(&gate[0]);
	close_fd(&failure[1]);
	l->gate = gate[1];
	l->failure = failure[0];
	if (rc)
		return rc;
	*ret = l;
	l = NULL;
	return RFL_OK;
}

pid_t rfl_launch_pid(const struct rfl_launch *l)
{
	return l->pid;
}

enum rfl_rc rfl_launch_go(struct rfl_launch *l, struct rfl_err *err)
{
	int code;

	l->start_s = rfl_clock_s();
	if (write(l->gate, "x", 1) != 1)
		return rfl_fail_errno(err, "%s: cannot start", l->spec->argv[0]);
	close_fd(&l->gate);
	if (!(code = rfl_proc_exec_errno(l->failure, l->pid)))
		return RFL_OK;
	l->pid = 0;
	return rfl_fail(err, RFL_EUNAVAILABLE, code, "%s: cannot start: %s", l->spec->argv[0],
			strerror(code));
}

/* Reap what has ended. @return false once there is nothing to wait for */
static bool reap_ended(struct rfl_launch *l, struct rfl_proc_result *r)
{
	struct rusage usage;
	int status;
	pid_t pid;

	for (;;) {
		pid = wait4(l->spec->all ? -1 : l->pid, &status, WNOHANG, &usage);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid <= 0)
			return pid == 0;
		rfl_proc_add_usage(r, &usage);
		if (pid != l->pid)
			continue;
		l->pid = 0;
		rfl_proc_set_status(r, status);
		if (!l->spec->all)
			return false;
		if (l->spec->limit_s > 0)
			l->give_up_s = rfl_clock_s() + l->spec->limit_s;
	}
}

/* Forward signals that a process sent; the terminal sends its own to the child as well. */
static void take_signals(struct rfl_launch *l, struct rfl_proc_result *r)
{
	struct signalfd_siginfo info;

	while (read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (l->pid > 0 && info.ssi_code <= 0)
			kill(l->pid, (int)info.ssi_signo);
		else if (l->pid == 0 && !r->cancelled) {
			r->cancelled = true;
			r->exited = false;
			r->signal = (int)info.ssi_signo;
		}
	}
}

enum rfl_rc rfl_launch_wait(struct rfl_launch *l, struct rfl_proc_result *r, struct rfl_err *err)
{
	bool more = true;
	int n;

	*r = (struct rfl_proc_result){ .started = true };
	l->give_up_s = INFINITY;
	while (more) {
		struct pollfd fds[] = {
			{ .fd = l->signals, .events = POLLIN },
			{ .fd = l->spec->watch_fd > 0 ? l->spec->watch_fd : -1, .events = POLLIN },
		};
		const double left_s = l->give_up_s - rfl_clock_s();

		if (left_s <= 0 || r->cancelled)
			break;
		n = poll(fds, RFL_ARRAY_LEN(fds), (int)fmin(ceil(left_s * 1e3), READY_MS));
		if (n < 0 && errno != EINTR)
			return rfl_fail_errno(err, "%s: cannot poll", l->spec->argv[0]);
		if (l->spec->ready && (n == 0 || fds[1].revents))
			l->spec->ready(l->spec->ctx);
		take_signals(l, r);
		more = reap_ended(l, r);
	}
	r->timed_out = more && !r->cancelled;
	r->wall_s = rfl_clock_s() - l->start_s;
	/* what a short program wrote before it ended */
	if (l->spec->watch_fd > 0)
		l->spec->ready(l->spec->ctx);
	return RFL_OK;
}

void rfl_launch_free(struct rfl_launch *l)
{
	struct signalfd_siginfo info;

	if (!l)
		return;
	close_fd(&l->gate); /* lets a child that was not executed exit */
	while (l->pid > 0 && waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_fd(&l->failure);
	while (l->signals >= 0 && read(l->signals, &info, sizeof(info)) > 0)
		;
	close_fd(&l->signals);
	if (l->spec->all)
		prctl(PR_SET_CHILD_SUBREAPER, 0);
	pthread_sigmask(SIG_SETMASK, &l->before, NULL);
	free(l);
}
