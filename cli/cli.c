/*
 * cli.c - the program between main() and a command: which command is meant, its options, its
 * verdict as an exit code, and whether the result really was written.
 */
#include "cli/cmd.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/opt/help.h"
#include "cli/opt/opt.h"
#include "cli/put.h"
#include "cli/stop.h"
#include "rfl_config.h"

#define COMMANDS_MAX 128

int rfl_exit_code(enum rfl_rc rc)
{
	switch (rc) {
	case RFL_OK:
		return 0;
	case RFL_EUSAGE:
		return 2;
	case RFL_EMISSING:
		return 3;
	case RFL_EUNAVAILABLE:
		return 77;
	default:
		return 1;
	}
}

static void on_log(enum rfl_log_level level, const char *line, void *ctx)
{
	static const char *const prefixes[] = {
		[RFL_LOG_ERROR] = "roofline: ",
		[RFL_LOG_WARN] = "roofline: warning: ",
		[RFL_LOG_INFO] = "",
		[RFL_LOG_DEBUG] = "debug: ",
	};

	rfl_cli_say(ctx, "%s%s\n", prefixes[level], line);
}

static void apply_globals(struct rfl_cli *cli, const struct rfl_opt_globals *globals)
{
	static const enum rfl_log_level levels[] = { RFL_LOG_ERROR, RFL_LOG_INFO, RFL_LOG_DEBUG };

	if (globals->quiet)
		cli->verbosity = -1;
	else if (globals->verbose)
		cli->verbosity = 1;
	if (cli->verbosity < 0)
		cli->progress = false;
	rfl_log_set(on_log, cli, levels[cli->verbosity + 1]);
}

enum rfl_rc rfl_cli_unknown_command(const char *name, struct rfl_err *err)
{
	const char *names[COMMANDS_MAX + 1] = { NULL };
	char group[64];
	const char *near;
	size_t n = 0;

	for (size_t i = 0; rfl_cmd_at(i) && n < COMMANDS_MAX; i++)
		if (!rfl_cmd_at(i)->hidden)
			names[n++] = rfl_cmd_at(i)->name;
	near = rfl_text_nearest(name, names);
	for (size_t i = 0; !near && i < n; i++) { /* "peaks" of "peaks measure" */
		const size_t len = strcspn(names[i], " ");

		snprintf(group, sizeof(group), "%.*s", (int)len, names[i]);
		if (names[i][len])
			near = rfl_text_nearest(name, (const char *const[]){ group, NULL });
	}
	if (near)
		return rfl_fail(err, RFL_EUSAGE, 0, "there is no command '%s'; did you mean '%s'?",
				name, near);
	return rfl_fail(err, RFL_EUSAGE, 0,
			"there is no command '%s'; 'roofline --help' lists them", name);
}

enum rfl_rc rfl_cli_need_file(const char *path, const char *made_by, struct rfl_err *err)
{
	if (access(path, F_OK) == 0 || errno != ENOENT)
		return RFL_OK;
	return rfl_fail(err, RFL_EIO, ENOENT, "%s: there is no such file; '%s' makes one", path,
			made_by);
}

static enum rfl_rc incomplete_group(const char *group, struct rfl_err *err)
{
	struct rfl_buf names;
	enum rfl_rc rc;

	rfl_buf_init(&names, 0);
	for (size_t i = 0; rfl_cmd_at(i); i++)
		if (rfl_cmd_in_group(rfl_cmd_at(i), group) && !rfl_cmd_at(i)->hidden)
			rfl_buf_printf(&names, "%s%s", names.len > 0 ? ", " : "",
				       rfl_cmd_at(i)->name + strlen(group) + 1);
	rc = rfl_fail(err, RFL_EUSAGE, 0, "'roofline %s' needs one of: %s", group,
		      rfl_buf_str(&names));
	rfl_buf_fini(&names);
	return rc;
}

static bool is_help(const char *word)
{
	return word && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0);
}

/* The command that argv[0] and argv[1] name. `*used` words were taken. On RFL_OK with *ret NULL a
 * page of a group was asked for and printed. */
static enum rfl_rc find_command(struct rfl_cli *cli, int argc, char *const *argv,
				const struct rfl_cmd **ret, int *used, struct rfl_err *err)
{
	struct rfl_buf two;
	enum rfl_rc rc = RFL_OK;

	*ret = NULL;
	*used = 1;
	rfl_buf_init(&two, 0);
	if (!rfl_cmd_is_group(argv[0])) {
		*ret = rfl_cmd_find(argv[0]);
		if (!*ret)
			rc = rfl_cli_unknown_command(argv[0], err);
		goto done;
	}
	if (argc > 1 && is_help(argv[1])) {
		rfl_help_group(cli->out, argv[0]);
		goto done;
	}
	if (argc < 2 || argv[1][0] == '-') {
		*ret = rfl_cmd_find(argv[0]); /* a group may be a command as well */
		if (!*ret)
			rc = incomplete_group(argv[0], err);
		goto done;
	}
	rfl_buf_printf(&two, "%s %s", argv[0], argv[1]);
	rc = rfl_buf_check(&two, "command line", err);
	if (rc != RFL_OK)
		goto done;
	*ret = rfl_cmd_find(rfl_buf_str(&two));
	*used = 2;
	if (!*ret)
		rc = rfl_cli_unknown_command(rfl_buf_str(&two), err);
done:
	rfl_buf_fini(&two);
	return rc;
}

/* argv[0] is the last word of the command's name. */
static enum rfl_rc run_command(struct rfl_cli *cli, const struct rfl_cmd *cmd, int argc,
			       char *const *argv, struct rfl_err *err)
{
	struct rfl_opt_globals globals = { .help = false };
	void *args = calloc(1, cmd->args_size > 0 ? cmd->args_size : 1);
	enum rfl_rc rc;

	if (!args)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	rc = rfl_opt_parse_all(cmd, argc, argv, args, &globals, err);
	if (rc != RFL_OK)
		goto done;
	apply_globals(cli, &globals);
	if (!cmd->holds_signals)
		rfl_stop_let();
	if (globals.help)
		rfl_cmd_help(cli->out, cmd);
	else if (globals.version)
		rfl_cli_printf(cli, "roofline %s\n", RFL_VERSION);
	else
		rc = cmd->run(cli, args, err);
	rfl_cli_progress(cli, NULL);
done:
	rfl_opt_free(cmd, args);
	free(args);
	return rc;
}

/* True when the reader of the result has gone (`| head`): not an error. */
static bool reader_has_gone(FILE *f)
{
	struct pollfd p = { .fd = fileno(f), .events = POLLOUT };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLERR) != 0;
}

/* A result that did not reach its file is a failure, whatever the command thinks. */
static int check_output(struct rfl_cli *cli, int code)
{
	rfl_cli_flush(cli);
	if (!ferror(cli->out) && cli->write_errno == 0)
		return code;
	if (!reader_has_gone(cli->out))
		fprintf(cli->err, "roofline: standard output: %s\n",
			cli->write_errno != 0 ? strerror(cli->write_errno) : "writing failed");
	return code != 0 ? code : 1;
}

static int report(struct rfl_cli *cli, const struct rfl_cmd *cmd, enum rfl_rc rc,
		  const struct rfl_err *err)
{
	if (rc == RFL_OK)
		return 0;
	rfl_cli_flush(cli); /* the result that there is comes before the complaint */
	if (err->msg[0] != '\0' || rc != RFL_EFAILED)
		rfl_cli_say(cli, "roofline%s%s: %s\n", cmd ? " " : "", cmd ? cmd->name : "",
			    err->msg[0] != '\0' ? err->msg : rfl_rc_text(rc));
	return rfl_exit_code(rc);
}

int rfl_cli_main(struct rfl_cli *cli, int argc, char **argv)
{
	struct rfl_opt_globals globals = { .help = false };
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_cmd *cmd = NULL;
	int next = argc, used = 0;
	enum rfl_rc rc;

	cli->argc = argc;
	cli->argv = argv;
	rc = rfl_opt_parse_front(argc, argv, &globals, &next, &err);
	if (rc != RFL_OK)
		goto done;
	apply_globals(cli, &globals);
	if (globals.version) {
		rfl_cli_printf(cli, "roofline %s\n", RFL_VERSION);
	} else if (globals.help) {
		rfl_help_overview(cli->out);
	} else if (next >= argc) {
		rfl_help_overview(cli->err);
		rc = rfl_fail(&err, RFL_EUSAGE, 0, "name a command");
	} else {
		rc = find_command(cli, argc - next, argv + next, &cmd, &used, &err);
		if (rc == RFL_OK && cmd)
			rc = run_command(cli, cmd, argc - next - used + 1, argv + next + used - 1,
					 &err);
	}
done:
	rfl_log_set(NULL, NULL, RFL_LOG_ERROR);
	return check_output(cli, report(cli, cmd, rc, &err));
}
