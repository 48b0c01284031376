/*
 * tour.c - roofline tour: a small study in a new directory, with a line on what each step does.
 *
 * The steps are commands of this program. The study skips runs and ceilings that are there, so the
 * tour can be interrupted and repeated.
 */
#include "cli/cmd.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "cli/inventory.h"
#include "cli/stop.h"

#define STUDY      "study.json"
#define MAX_WORDS  16
#define MADE_BY    "// Made by 'roofline tour'"
#define ONLY(step) "study " STUDY " --only " step

/* examples/study-tour.json, compiled into the program; it begins with MADE_BY. */
extern const char rfl_study__tour[];

struct tour_args {
	struct rfl_opt_list operands;
};

static const char project[] = "{\"schema\": \"roofline.project/1\", \"env\": \"cpu\"}\n";

/* The steps, and what takes their place without an engine. */
static const struct step {
	const char *words, *command;
	const char *other_words, *other_command; /* NULL: the same */
} steps[] = {
	{ "Count: what a training step of two small networks computes and moves. Nothing is "
	  "executed.",
	  ONLY("complexity"), NULL, NULL },
	{ "Measure this machine: the bandwidth of its memory and its rate of multiply-adds.",
	  ONLY("peaks"), NULL, NULL },
	{ "Train: each network twice, for a few measured steps.", ONLY("runs"),
	  "Compute: how fast a training step could be at these rates.",
	  "complexity --train --models resnet18 mobilenet_v2 --batch-sizes 8 --image-size 64 "
	  "--peaks peaks.json --env cpu" },
	{ "Compare: how close each run comes to the limits of the machine.", ONLY("points"), "",
	  NULL },
	{ "Draw: the roofline, as a PNG file and here.", ONLY("figures"),
	  "Draw: the bandwidth of the memory, as a PNG file and here.",
	  "plot --kind bandwidth --format png terminal" },
	{ "Report: everything on one page, to open in a browser.", ONLY("report"), NULL, "report" },
};

/* Whether the directory is empty; temporary files of an earlier attempt do not count. */
static bool is_empty(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	bool empty = d != NULL;

	while (empty && (entry = readdir(d)))
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			rfl_file_is_temporary(entry->d_name);
	if (d)
		closedir(d);
	return empty;
}

/* Create the directory and its two files, or continue in one that has them. */
static enum rfl_rc enter(struct rfl_cli *cli, const char *dir, struct rfl_err *err)
{
	const char *study = rfl_cli_path(cli, dir, STUDY);
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc = rfl_file_mkdirs(dir, err);

	if (rc)
		return rc;
	if (rfl_file_size(study) && (rc = rfl_file_read(study, &text, err)))
		return rc;
	if (strncmp(rfl_buf_str(&text), MADE_BY, strlen(MADE_BY)) != 0) {
		if (!is_empty(dir))
			return rfl_usage(err,
					 "%s: not an empty directory, nor one of 'roofline tour'; "
					 "name a new one: roofline tour DIR",
					 dir);
		rc = rfl_file_create(study, rfl_study__tour, strlen(rfl_study__tour), err);
	}
	if (rc == RFL_OK && chdir(dir) != 0)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: %s", dir, strerror(errno));
	if (rc == RFL_OK && access("roofline.json", F_OK) != 0)
		rc = rfl_file_create("roofline.json", project, strlen(project), err);
	return rc;
}

/* Whether a plugin can train on the CPU; otherwise, why not. */
static enum rfl_rc find_engine(struct rfl_cli *cli, bool *found, const char **why,
			       struct rfl_err *err)
{
	static const char *const engines[] = { "engines" };
	struct rfl_inventory inv;
	enum rfl_rc rc = rfl_inventory_new(cli, engines, 1, &inv, err);

	*found = false;
	*why = "there is none";
	for (size_t i = 0; rc == RFL_OK && i < inv.n; i++) {
		if (inv.items[i].state != RFL_ITEM_NO)
			*found = true;
		else if (inv.items[i].reason)
			*why = inv.items[i].reason;
	}
	return rc;
}

/* Unlike a message of the log, the text can have several lines. */
#define SAY(cli, ...)                                    \
	do {                                             \
		if ((cli)->verbosity >= 0)               \
			rfl_cli_say((cli), __VA_ARGS__); \
	} while (0)

/* Run a command of this program. @param name  the directory, as a word for a shell */
static enum rfl_rc execute(struct rfl_cli *cli, const char *name, const char *command,
			   struct rfl_err *err)
{
	const char *words[MAX_WORDS + 3] = { cli->self };
	const struct rfl_proc_spec spec = { .argv = words, .cancelled = rfl_stop_cancels };
	RFL_AUTO(proc_result) result = { .started = false };
	size_t n = 1;
	char *rest;
	enum rfl_rc rc;

	for (char *word = strtok_r(rfl_arena_strdup(cli->arena, command), " ", &rest);
	     word && n <= MAX_WORDS; word = strtok_r(NULL, " ", &rest))
		words[n++] = word;
	if (strncmp(command, "study", 5) != 0) /* which prints the command that it runs */
		rfl_log(RFL_LOG_INFO, "==> roofline %s", command);
	if (cli->verbosity)
		words[n] = cli->verbosity < 0 ? "-q" : "-v";
	rfl_cli_flush(cli);
	if ((rc = rfl_proc_run(&spec, &result, err)))
		return rc;
	if (result.cancelled || rfl_stop_asked())
		return rfl_fail(err, RFL_EINTR, 0,
				"stopped by a signal; to continue, run: roofline tour %s", name);
	if (result.exited && result.exit_code == 0)
		return RFL_OK;
	return rfl_fail(err, RFL_EFAILED, 0,
			"'roofline %s' failed; fix its error, then run: roofline tour %s", command,
			name);
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct tour_args *a = args;
	const char *dir = a->operands.n ? a->operands.items[0] : "roofline-tour", *name, *why;
	RFL_AUTO(buf) quoted = { .len = 0 };
	struct rfl_stop stop;
	bool engine = false;
	int at = 0;
	enum rfl_rc rc;

	rfl_text_shell_word(dir, &quoted);
	name = rfl_buf_str(&quoted);
	rfl_stop_catch(&stop);
	if ((rc = enter(cli, dir, err)) == RFL_OK)
		rc = find_engine(cli, &engine, &why, err);
	if (rc == RFL_OK)
		SAY(cli, "A tour of roofline in %s, of about a minute.\n", dir);
	if (rc == RFL_OK && !engine)
		rfl_log(RFL_LOG_WARN, "nothing can be trained without an engine: %s", why);
	for (const struct step *s = steps; rc == RFL_OK && s < steps + RFL_ARRAY_LEN(steps); s++) {
		const char *words = engine || !s->other_words ? s->words : s->other_words;

		if (!*words)
			continue;
		SAY(cli, "\n%d. %s\n", ++at, words);
		rc = execute(cli, name, engine || !s->other_command ? s->command : s->other_command,
			     err);
	}
	rfl_stop_restore(&stop);
	if (rc == RFL_OK && engine)
		SAY(cli,
		    "\nDone: see %s/report.html and %s/figures/roofline_cpu.png. "
		    "docs/guide/first-roofline.md explains how to read them.\n\n"
		    "To add another network:\n"
		    "  cd %s\n"
		    "  roofline run --arch vgg11 --batch-size 8 --image-size 64 --warmup-iters 2 "
		    "--iters 6 --synthetic\n"
		    "  roofline points && roofline plot && roofline report\n\n"
		    "For your own results, measure the machine in full while it is idle: roofline "
		    "peaks measure\n",
		    dir, dir, name);
	else if (rc == RFL_OK)
		SAY(cli,
		    "\nDone, without training: see %s/report.html. To add the runs, install an "
		    "engine ('roofline doctor' shows how), then run: roofline tour %s\n",
		    dir, name);
	return rc;
}

const struct rfl_cmd rfl_cmd_tour = {
	.name = "tour",
	.summary = "try everything in a minute: a small study in a new directory",
	.operands = "[DIR]",
	.description =
		"Counts, trains and measures two small networks on this CPU, compares the "
		"runs with the limits of the machine, draws the roofline and writes a report. Each "
		"step is explained in one line, and its command is printed, so that you can repeat "
		"it. The ceilings are measured quickly: for your own results, run 'roofline peaks "
		"measure'.\n\nAll files are in DIR (default: roofline-tour), which must be new or "
		"empty. You can interrupt the command at any time and repeat it to continue: "
		"finished runs and ceilings are kept. Without an engine, the command counts, "
		"measures, and computes how fast the networks could be.",
	.example = "roofline tour\nroofline tour /tmp/first",
	.args_size = sizeof(struct tour_args),
	.holds_signals = true,
	.run = run,
};
