/* cli.c - the table of commands: find and run a command, report failures, set the exit code. */
#include "cli/cmd.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/opt/opt.h"
#include "cli/stop.h"
#include "rfl_config.h"

/* clang-format off */
/* in the order of the help page; hidden commands are last */
#define COMMANDS(X) \
	X(run) X(train) X(profile) X(env) \
	X(matrix_expand) X(matrix_run) X(matrix_status) X(matrix_slurm) X(matrix_merge) \
	X(complexity) X(bench_lm) X(bench_attention) X(bench_decode) X(bench_accumulate) X(bench_loader) \
	X(peaks_measure) X(peaks_show) X(peaks_check) X(peaks_set) X(peaks_merge) X(peaks_devices) \
	X(peaks_import) X(peaks_export) \
	X(counters_show) X(counters_import) X(counters_list) X(counters_check) \
	X(tour) X(study) X(summary) X(compare) X(points) X(plot) X(report) \
	X(list) X(verify) X(doctor) X(help_page) X(completion) X(version) \
	X(complete) X(probe) X(run_child) X(train_child)
/* clang-format on */

#define DECLARE(name) extern const struct rfl_cmd rfl_cmd_##name;
#define ROW(name)     &rfl_cmd_##name,

COMMANDS(DECLARE)

static const struct rfl_cmd *const commands[] = { COMMANDS(ROW) };

const struct rfl_cmd *rfl_cmd_at(size_t i)
{
	return i < RFL_ARRAY_LEN(commands) ? commands[i] : NULL;
}

const struct rfl_cmd *rfl_cmd_find(const char *name)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(commands); i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

bool rfl_cmd_in_group(const struct rfl_cmd *cmd, const char *group)
{
	size_t len = strlen(group);

	return strncmp(cmd->name, group, len) == 0 && cmd->name[len] == ' ';
}

bool rfl_cmd_is_group(const char *word)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(commands); i++)
		if (rfl_cmd_in_group(commands[i], word))
			return true;
	return false;
}

const char *rfl_cmd_names(struct rfl_arena *arena, const char *group)
{
	const char *all = "";

	for (size_t i = 0; i < RFL_ARRAY_LEN(commands); i++)
		if (rfl_cmd_in_group(commands[i], group))
			all = rfl_arena_printf(arena, "%s%s%s", all, *all ? ", " : "",
					       commands[i]->name + strlen(group) + 1);
	return all;
}

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

enum rfl_rc rfl_usage_of(const char *option, struct rfl_err *err)
{
	rfl_err_prefix(err, "%s", option);
	return RFL_EUSAGE;
}

void rfl_cli_quote(const char *const *words, size_t n, struct rfl_buf *out)
{
	for (size_t i = 0; i < n; i++) {
		rfl_buf_putc(out, ' ');
		rfl_text_shell_word(words[i], out);
	}
}

const char *rfl_cli_path(struct rfl_cli *cli, const char *dir, const char *name)
{
	const bool ends = rfl_span_ends(rfl_span_of(dir), "/");

	return rfl_arena_printf(cli->arena, "%s%s%s", dir, ends || !*dir ? "" : "/", name);
}

const char *rfl_cli_line(struct rfl_cli *cli)
{
	RFL_AUTO(buf) line = { .len = 0 };

	for (int i = 0; i < cli->argc; i++)
		rfl_buf_printf(&line, "%s%s", i ? " " : "", cli->argv[i]);
	return rfl_arena_strdup(cli->arena, rfl_buf_str(&line));
}

enum rfl_rc rfl_cli_unknown_command(const char *name, struct rfl_err *err)
{
	const char *names[2 * RFL_ARRAY_LEN(commands) + 1] = { NULL };
	char groups[RFL_ARRAY_LEN(commands)][16], advice[RFL_ADVICE_SIZE];
	size_t n = 0, ngroups = 0;

	for (; n < RFL_ARRAY_LEN(commands) && !commands[n]->hidden; n++)
		names[n] = commands[n]->name;
	for (size_t i = 0; commands[i] && !commands[i]->hidden; i++) {
		const size_t len = strcspn(commands[i]->name, " ");

		if (!commands[i]->name[len] ||
		    (ngroups && strncmp(groups[ngroups - 1], commands[i]->name, len) == 0))
			continue;
		snprintf(groups[ngroups], sizeof(groups[0]), "%.*s", (int)len, commands[i]->name);
		names[n++] = groups[ngroups++];
	}
	return rfl_usage(err, "'%s' is not a command; %s", name,
			 rfl_text_advice(name, names, 1, "'roofline --help' lists them", advice));
}

/* Find the command named by argv[0] and argv[1], and set `*used` to the number of words in its
 * name. Returns RFL_OK with *ret NULL if the help page of a group was requested; it is already
 * printed. */
static enum rfl_rc find_command(struct rfl_cli *cli, int argc, char *const *argv,
				const struct rfl_cmd **ret, int *used, struct rfl_err *err)
{
	const char *group = argv[0], *name = group;

	*used = 1;
	if (rfl_cmd_is_group(group)) {
		if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
			rfl_help_group(cli->out, group);
			return RFL_OK;
		}
		if (argc < 2 || argv[1][0] == '-')
			return rfl_usage(err, "'roofline %s' needs a subcommand; use one of: %s",
					 group, rfl_cmd_names(cli->arena, group));
		name = rfl_arena_printf(cli->arena, "%s %s", group, argv[1]);
		*used = 2;
	}
	*ret = rfl_cmd_find(name);
	return *ret ? RFL_OK : rfl_cli_unknown_command(name, err);
}

/* argv[0] is the last word of the command's name. */
static enum rfl_rc run_command(struct rfl_cli *cli, const struct rfl_cmd *cmd, int argc,
			       char *const *argv, struct rfl_err *err)
{
	struct rfl_project project = { .arena = cli->arena };
	struct rfl_opt_globals globals = { .project = &project };
	void *args = rfl_arena_array(cli->arena, 1, cmd->args_size + 1);
	enum rfl_rc rc = rfl_opt_parse(cmd, argc, argv, args, &globals, err);

	if (rc == RFL_OK) {
		apply_globals(cli, &globals);
		if (!cmd->holds_signals)
			rfl_stop_let();
		if (globals.help)
			rfl_cmd_help(cli->out, cmd, globals.help == RFL_HELP_ALL);
		else if (globals.version)
			rfl_cli_printf(cli, "roofline %s\n", RFL_VERSION);
		else
			rc = cmd->run(cli, args, err);
		rfl_cli_progress(cli, NULL);
	}
	rfl_opt_free(cmd, args);
	return rc;
}

/* @param cmd  set to the command, for the message of its failure */
static enum rfl_rc dispatch(struct rfl_cli *cli, const struct rfl_cmd **cmd, struct rfl_err *err)
{
	struct rfl_opt_globals globals = { .help = RFL_HELP_NONE };
	int next = cli->argc, used = 0;
	enum rfl_rc rc = rfl_opt_parse_front(cli->argc, cli->argv, &globals, &next, err);

	if (rc)
		return rc;
	apply_globals(cli, &globals);
	if (globals.version) {
		rfl_cli_printf(cli, "roofline %s\n", RFL_VERSION);
	} else if (globals.help) {
		rfl_help_overview(cli->out);
	} else if (next >= cli->argc) {
		rfl_stop_let();
		rc = rfl_cli_next(cli, err);
	} else {
		rc = find_command(cli, cli->argc - next, cli->argv + next, cmd, &used, err);
		next += used - 1;
		if (*cmd)
			rc = run_command(cli, *cmd, cli->argc - next, cli->argv + next, err);
	}
	return rc;
}

int rfl_cli_main(struct rfl_cli *cli, int argc, char **argv)
{
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_cmd *cmd = NULL;
	struct pollfd out = { .fd = fileno(cli->out), .events = POLLOUT };
	enum rfl_rc rc;
	int code;

	cli->argc = argc;
	cli->argv = argv;
	cli->arena = arena;
	rc = dispatch(cli, &cmd, &err);
	rfl_log_set(NULL, NULL, RFL_LOG_ERROR);
	rfl_cli_flush(cli); /* print the results before the error message */
	if (rc != RFL_OK && (err.msg[0] != '\0' || rc != RFL_EFAILED))
		rfl_cli_say(cli, "roofline%s%s: %s\n", cmd ? " " : "", cmd ? cmd->name : "",
			    err.msg[0] != '\0' ? err.msg : rfl_rc_text(rc));
	code = cli->exit_status ? cli->exit_status : rfl_exit_code(rc);
	if (!ferror(cli->out) && cli->write_errno == 0)
		return code;

	/* A result that could not be written is a failure even if the command returned RFL_OK.
	 * Print no message if the reader of a pipe has exited (`| head`). */
	if (poll(&out, 1, 0) != 1 || !(out.revents & POLLERR))
		fprintf(cli->err, "roofline: standard output: %s\n",
			cli->write_errno != 0 ? strerror(cli->write_errno) : "writing failed");
	return code != 0 ? code : 1;
}
