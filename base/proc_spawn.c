/*
 * proc_spawn.c - pipes, fork and exec. Everything that allocates happens before the fork: between
 * fork and exec only async-signal-safe calls are allowed.
 */
#define _GNU_SOURCE /* pipe2, prctl */

#include "base/proc_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/alloc.h"

extern char **environ;

/* Descriptors of ours stay above the ones that the child is given, so that no dup2() in the child
 * can overwrite one that is still needed. */
#define FIRST_FD 10

struct pipe {
	int read_end, write_end;
};

/* Both ends of each pipe, and what else the child needs to be told. */
struct plan {
	struct pipe in, out, err, report, failure;
	int null_fd;
	char **env;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_pipe(struct pipe *p)
{
	close_fd(&p->read_end);
	close_fd(&p->write_end);
}

void rfl_proc__child_close(struct rfl_proc__child *child)
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

/* --- in the child ---------------------------------------------------------------------------- */

static void give_up(int failure_fd)
{
	int code = errno;

	(void)!write(failure_fd, &code, sizeof(code));
	_exit(127);
}

static void child_signals(const sigset_t *mask)
{
	struct sigaction standard = { .sa_handler = SIG_DFL };

	sigaction(SIGPIPE, &standard, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
}

static void run_child(const struct rfl_proc_spec *spec, const struct plan *plan,
		      const sigset_t *mask, pid_t parent)
{
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
	child_signals(mask);
	environ = plan->env;
	memcpy(&argv, &spec->argv, sizeof(argv)); /* exec wants it without const */
	execvp(argv[0], argv);
	give_up(failure_fd);
}

/* --- in the parent --------------------------------------------------------------------------- */

/* What the child could not do before its exec; 0 when it did it all. */
static int read_failure(int fd)
{
	int code = 0;
	ssize_t n;

	do
		n = read(fd, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(code) ? code : 0;
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

static enum rfl_rc start(const struct rfl_proc_spec *spec, const sigset_t *mask, struct plan *plan,
			 struct rfl_proc__child *ret, struct rfl_err *err)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	int code;

	if (pid < 0)
		return fail_start(spec, errno, err);
	if (pid == 0)
		run_child(spec, plan, mask, parent); /* does not return */
	close_fd(&plan->failure.write_end);
	code = read_failure(plan->failure.read_end);
	if (code != 0) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return fail_start(spec, code, err);
	}
	*ret = (struct rfl_proc__child){
		.pid = pid,
		.in = take(&plan->in.write_end),
		.out = take(&plan->out.read_end),
		.err = take(&plan->err.read_end),
		.report = take(&plan->report.read_end),
	};
	if (spec->input && spec->input_len == 0)
		close_fd(&ret->in);
	return RFL_OK;
}

enum rfl_rc rfl_proc__spawn(const struct rfl_proc_spec *spec, const sigset_t *mask,
			    struct rfl_proc__child *ret, struct rfl_err *err)
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
	enum rfl_rc rc;

	plan.env = make_env(spec->env);
	if (!plan.env) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", spec->argv[0]);
		goto done;
	}
	if (!open_pipes(spec, &plan)) {
		rc = fail_start(spec, errno, err);
		goto done;
	}
	rc = start(spec, mask, &plan, ret, err);
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

char *rfl_proc_self(struct rfl_err *err)
{
	size_t size = 256;
	char *path = NULL;

	for (;;) {
		char *more = realloc(path, size);
		ssize_t n;

		if (!more) {
			free(path);
			rfl_fail(err, RFL_ENOMEM, 0, "the program's path: out of memory");
			return NULL;
		}
		path = more;
		n = readlink("/proc/self/exe", path, size);
		if (n < 0) {
			rfl_fail(err, RFL_EIO, errno, "/proc/self/exe: %s", strerror(errno));
			free(path);
			return NULL;
		}
		if ((size_t)n < size) {
			path[n] = '\0';
			return path;
		}
		size *= 2;
	}
}
