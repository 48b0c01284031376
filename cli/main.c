/*
 * main.c - what the outside world gives the program: where it is, its environment variables, its
 * terminal.
 *
 * Everything is found relative to the program, so that a build folder, an installation and an
 * unpacked archive work alike: <prefix>/bin/roofline, <prefix>/lib/roofline,
 * <prefix>/share/roofline.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/proc.h"
#include "cli/cmd.h"
#include "cli/stop.h"
#include "rfl_config.h"

#define LAST_SECOND INT64_C(253402300799) /* of the year 9999 */

/* "/opt/x/bin/roofline" -> "/opt/x"; the program lies two steps below its prefix. */
static void cut_to_prefix(char *path)
{
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(path, '/');

		if (slash)
			*slash = '\0';
	}
}

/* The folders of ROOFLINE_PLUGIN_PATH, then our own. */
static const char *const *plugin_dirs(struct rfl_arena *a, const char *prefix, struct rfl_err *err)
{
	const char *path = getenv("ROOFLINE_PLUGIN_PATH");
	char *copy = rfl_arena_strdup(a, path ? path : "");
	const char **dirs;
	size_t n = 0, most = 2;

	for (const char *c = copy; c && *c != '\0'; c++)
		most += *c == ':';
	dirs = rfl_arena_array(a, most + 1, sizeof(*dirs));
	if (!copy || !dirs)
		goto out_of_memory;
	for (char *dir = copy; *dir != '\0';) {
		size_t len = strcspn(dir, ":");
		bool last = dir[len] == '\0';

		dir[len] = '\0';
		if (len > 0)
			dirs[n++] = dir;
		dir += len + (last ? 0 : 1);
	}
	dirs[n] = rfl_arena_printf(a, "%s/" RFL_PLUGINDIR, prefix);
	if (dirs[n])
		return dirs;
out_of_memory:
	rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	return NULL;
}

/* What a caller ignores or blocks is inherited. A run may be stopped from its first moment on, so
 * these signals wait for a handler. */
static void set_signals(void)
{
	/* A reader that goes and a limit on files are errors of a write, not our death. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL); /* ignored, it would take the exit status of our children */
	rfl_stop_hold();
}

/* A stack limit that is too low would be a crash somewhere; it is raised as far as we may. */
static enum rfl_rc need_stack(struct rfl_err *err)
{
	const rlim_t least = (rlim_t)256 << 10, enough = (rlim_t)8 << 20;
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least)
		return RFL_OK;
	limit.rlim_cur = limit.rlim_max < enough ? limit.rlim_max : enough;
	if (limit.rlim_cur >= least && setrlimit(RLIMIT_STACK, &limit) == 0)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"the stack limit of %llu KiB is below 256 KiB; raise it with 'ulimit -s'",
			(unsigned long long)limit.rlim_cur / 1024);
}

/* SOURCE_DATE_EPOCH: calendar time stands still, so that files come out equal. */
static enum rfl_rc fix_clock(struct rfl_err *err)
{
	const char *text = getenv("SOURCE_DATE_EPOCH");
	int64_t unix_s;
	enum rfl_rc rc;

	if (!text || *text == '\0')
		return RFL_OK;
	rc = rfl_num_parse_int(text, "SOURCE_DATE_EPOCH", &unix_s, err);
	if (rc == RFL_OK && (unix_s < 0 || unix_s > LAST_SECOND))
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "SOURCE_DATE_EPOCH: %s is not a time from 1970 to 9999 in seconds; "
			      "unset it, or use the output of 'date +%%s'",
			      text);
	if (rc != RFL_OK)
		return RFL_EUSAGE;
	rfl_clock_fix(unix_s);
	return RFL_OK;
}

/*
 * A standard stream that came closed would be handed to the next file or pipe that is opened, and
 * our output would land in it. /dev/null opened the wrong way round holds its place: using the
 * stream fails as it should.
 */
static enum rfl_rc hold_standard_streams(struct rfl_err *err)
{
	static const int wrong_way[] = { O_WRONLY, O_RDONLY, O_RDONLY };

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", wrong_way[fd]) != fd)
			return rfl_fail(err, RFL_EIO, errno, "/dev/null: %s", strerror(errno));
	return RFL_OK;
}

int main(int argc, char **argv)
{
	struct rfl_cli cli = { .out = stdout, .err = stderr };
	struct rfl_arena *arena = rfl_arena_new(0);
	struct rfl_err err = RFL_ERR_INIT;
	char *self = NULL, *prefix = NULL;
	int code = 1;

	set_signals();
	if (hold_standard_streams(&err) != RFL_OK || need_stack(&err) != RFL_OK)
		goto done;
	if (!arena) {
		rfl_fail(&err, RFL_ENOMEM, 0, "out of memory");
		goto done;
	}
	self = rfl_proc_self(&err);
	if (!self)
		goto done;
	if (fix_clock(&err) != RFL_OK) {
		code = 2;
		goto done;
	}
	prefix = rfl_arena_strdup(arena, self);
	if (prefix)
		cut_to_prefix(prefix);
	cli.self = self;
	cli.data_dir = prefix ? rfl_arena_printf(arena, "%s/" RFL_DATADIR, prefix) : NULL;
	cli.plugin_dirs = prefix ? plugin_dirs(arena, prefix, &err) : NULL;
	if (!cli.data_dir || !cli.plugin_dirs) {
		rfl_fail(&err, RFL_ENOMEM, 0, "out of memory");
		goto done;
	}
	cli.terminal = isatty(STDOUT_FILENO) == 1;
	cli.progress = isatty(STDERR_FILENO) == 1;
	code = rfl_cli_main(&cli, argc, argv);
done:
	if (err.msg[0] != '\0')
		fprintf(stderr, "roofline: %s\n", err.msg);
	free(self);
	rfl_arena_free(arena);
	return code;
}
