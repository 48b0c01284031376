/*
 * main.c - set up the process: signals, standard streams, environment variables, directories.
 *
 * Other directories are found relative to the program's directory, so that a build directory, an
 * installation and an unpacked archive work alike: <prefix>/bin, <prefix>/lib/roofline,
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
#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "base/proc.h"
#include "cli/cmd.h"
#include "cli/stop.h"
#include "machine/torch.h"
#include "rfl_config.h"

#define LAST_SECOND INT64_C(253402300799) /* the last second of the year 9999 */

/* The directories in ROOFLINE_PLUGIN_PATH, followed by the built-in one, and the one for the
 * version of this PyTorch in it. */
static const char *const *plugin_dirs(struct rfl_arena *a, const char *prefix, const char *torch)
{
	const char *path = getenv("ROOFLINE_PLUGIN_PATH");
	char *copy = rfl_arena_strdup(a, path ? path : ""), *rest;
	const char **dirs;
	size_t n = 0, most = 3;

	for (const char *c = copy; *c != '\0'; c++)
		most += *c == ':';
	dirs = rfl_arena_array(a, most + 1, sizeof(*dirs));
	for (char *dir = strtok_r(copy, ":", &rest); dir; dir = strtok_r(NULL, ":", &rest))
		dirs[n++] = dir;
	dirs[n++] = rfl_arena_printf(a, "%s/" RFL_PLUGINDIR, prefix);
	if (torch)
		dirs[n] = rfl_arena_printf(a, "%s/torch-%s", dirs[n - 1],
					   rfl_torch_version(a, torch));
	return dirs;
}

/* Reset inherited signal dispositions. Open closed standard streams, because otherwise the next
 * opened file would get the number of such a stream and receive our output. */
static enum rfl_rc check_process(struct rfl_err *err)
{
	static const int wrong_way[] = { O_WRONLY, O_RDONLY, O_RDONLY };
	const rlim_t least = (rlim_t)256 << 10, enough = (rlim_t)8 << 20;
	struct rlimit stack;

	/* Let a write to a closed pipe or beyond the file size limit fail instead of ending the
	 * program. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL); /* if it is ignored, children have no exit status */
	rfl_stop_hold();                /* until the command installs its handlers */

	/* Open /dev/null in the wrong direction, so that every use of the stream fails. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", wrong_way[fd]) != fd)
			return rfl_fail(err, RFL_EIO, errno, "/dev/null: %s", strerror(errno));

	/* Raise a low stack limit as far as allowed, because the program might crash with it. */
	if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= least)
		return RFL_OK;
	stack.rlim_cur = stack.rlim_max < enough ? stack.rlim_max : enough;
	if (stack.rlim_cur >= least && setrlimit(RLIMIT_STACK, &stack) == 0)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"the stack limit of %llu KiB is below 256 KiB; raise it with 'ulimit -s'",
			(unsigned long long)stack.rlim_cur / 1024);
}

static void out_of_memory(void)
{
	static const char text[] = "roofline: out of memory\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1); /* nothing else can be done */
	_exit(1);
}

int main(int argc, char **argv)
{
	struct rfl_cli cli = { .out = stdout, .err = stderr };
	struct rfl_err err = RFL_ERR_INIT;
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	RFL_AUTOPTR(arena) arena = NULL;
	char *self = NULL, *prefix, *slash;
	int64_t unix_s;
	int code = 1;

	rfl_set_out_of_memory(out_of_memory);
	rfl_json_setup();
	arena = rfl_arena_new();
	if (check_process(&err) != RFL_OK || !(self = rfl_proc_self(&err)))
		goto done;
	if (epoch && *epoch != '\0') { /* makes output files reproducible */
		code = 2;
		if (rfl_num_parse_int(epoch, "SOURCE_DATE_EPOCH", &unix_s, &err) == RFL_OK &&
		    (unix_s < 0 || unix_s > LAST_SECOND))
			rfl_fail(&err, RFL_EUSAGE, 0,
				 "SOURCE_DATE_EPOCH: %s is not a time from 1970 to 9999 in "
				 "seconds; unset it, or use the output of 'date +%%s'",
				 epoch);
		if (err.rc != RFL_OK)
			goto done;
		rfl_clock_fix(unix_s);
		code = 1;
	}
	prefix = rfl_arena_strdup(arena, self);
	for (int i = 0; i < 2; i++) /* "/opt/x/bin/roofline" -> "/opt/x" */
		if ((slash = strrchr(prefix, '/')))
			*slash = '\0';
	cli.self = self;
	cli.data_dir = rfl_arena_printf(arena, "%s/" RFL_DATADIR, prefix);
	cli.torch_dir =
		rfl_torch_beside(arena, rfl_arena_printf(arena, "%s/" RFL_PLUGINDIR "/", prefix));
	cli.plugin_dirs = plugin_dirs(arena, prefix, cli.torch_dir);
	cli.terminal = isatty(STDOUT_FILENO) == 1;
	cli.progress = isatty(STDERR_FILENO) == 1;
	code = rfl_cli_main(&cli, argc, argv);
done:
	if (err.msg[0] != '\0')
		fprintf(stderr, "roofline: %s\n", err.msg);
	free(self);
	return code;
}
