/* matrix_files.c - roofline matrix expand, slurm and merge: list, distribute and merge runs. */
#include "cli/cmd/matrix.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "ledger/matrix/merge.h"

/* Arguments of all commands in this file. */
struct files_args {
	struct rfl_opt_list
		operands; /* the matrix, followed by options of sbatch or by directories */
	struct rfl_opt_list only, setup;
	const char *log_dir, *shard, *output, *launch;
	int64_t shards, at_once;
	int format;
	bool retry_failed;
};

#define OPT(kind, member, ...) RFL_OPT(struct files_args, kind, member, __VA_ARGS__)

enum { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON, FORMAT_JSONL };

static const char *const formats[] = { "table", "csv", "json", "jsonl", NULL };

static const struct rfl_opt expand_opts[] = {
	OPT(TEXT, log_dir, RFL_MATRIX_LOG_DIR),
	OPT(LIST, only, RFL_MATRIX_ONLY),
	OPT(TEXT, shard, RFL_MATRIX_SHARD),
	OPT(CHOICE, format, .letter = 'f', .name = "format", .meta = "FMT", .choices = formats,
	    .def = "table", .help = "output format; json and jsonl contain the arguments as lists"),
	{ .name = NULL },
};

/* The row of a run. */
struct shown {
	const char *cell, *label, *env, *backend, *model, *precision, *command;
	int64_t batch;
	int repeat;
};

enum { FOR_PROGRAMS = 1 };

static const struct rfl_column columns[] = {
	RFL_COLUMN(TEXT, struct shown, cell, "cell", "Configuration"),
	RFL_COLUMN(TEXT, struct shown, label, "label", "Label"),
	RFL_COLUMN(TEXT, struct shown, env, "env", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, struct shown, backend, "backend", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, struct shown, model, "model", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, struct shown, precision, "precision", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(INT, struct shown, batch, "batch", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(INT, struct shown, repeat, "repeat", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, struct shown, command, "command", NULL, .when = FOR_PROGRAMS),
};

static enum rfl_rc put_table(struct rfl_cli *cli, const struct files_args *a,
			     const struct rfl_matrix_pick *pick, struct rfl_err *err)
{
	const bool people = a->format == FORMAT_TABLE;
	const struct rfl_matrix *m = pick->m;
	struct rfl_table *t =
		rfl_table_of(columns, RFL_ARRAY_LEN(columns), people ? 0 : FOR_PROGRAMS);
	RFL_AUTO(buf) command = { .len = 0 };

	for (size_t i = 0; i < pick->n; i++) {
		char label[RFL_LABEL_MAX + 1];
		const struct rfl_matrix_cell *c = rfl_cli_matrix_cell(m, pick->runs[i], label);

		rfl_buf_reset(&command);
		if (!people)
			rfl_cli_matrix_command(m, pick->runs[i], a->log_dir, &command);
		rfl_table_add(t,
			      &(struct shown){ .cell = c->id,
					       .label = label,
					       .env = c->env,
					       .backend = c->backend,
					       .model = c->model,
					       .precision = c->precision,
					       .command = rfl_buf_str(&command),
					       .batch = c->batch,
					       .repeat = (int)(pick->runs[i] / m->ncells) + 1 },
			      1, sizeof(struct shown));
	}
	rfl_table_note(t, "%s: %zu of %zu runs; %zu configurations, %d %s each", m->name, pick->n,
		       m->ncells * (size_t)m->repeats, m->ncells, m->repeats,
		       m->repeats == 1 ? "repeat" : "repeats");
	return rfl_cli_put_table(cli, t, people ? RFL_FORMAT_TABLE : RFL_FORMAT_CSV, err);
}

static enum rfl_rc put_json(struct rfl_cli *cli, const struct files_args *a,
			    const struct rfl_matrix_pick *pick, struct rfl_err *err)
{
	const bool lines = a->format == FORMAT_JSONL;
	RFL_AUTO(buf) out = { .len = 0 };

	rfl_buf_puts(&out, lines ? "" : "[\n");
	for (size_t i = 0; i < pick->n; i++) {
		const size_t run = pick->runs[i];
		char label[RFL_LABEL_MAX + 1];
		const struct rfl_matrix_cell *c = rfl_cli_matrix_cell(pick->m, run, label);
		json_t *args = json_array();
		json_auto_t *object = NULL;

		for (size_t k = 0; c->args[k]; k++)
			(void)json_array_append_new(args, json_string(c->args[k]));
		(void)json_array_append_new(args, json_sprintf("--label=%s", label));
		(void)json_array_append_new(args, json_sprintf("--log-dir=%s", a->log_dir));
		object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:i, s:o}", "cell", c->id,
				   "label", label, "env", c->env, "backend", c->backend, "model",
				   c->model, "precision", c->precision, "batch",
				   (json_int_t)c->batch, "repeat", (int)(run / pick->m->ncells) + 1,
				   "args", args);
		rfl_buf_puts(&out, lines ? "" : "  ");
		rfl_json_write_line(&out, object); /* the buffer fails if object is NULL */
		rfl_buf_puts(&out, lines || i + 1 == pick->n ? "\n" : ",\n");
	}
	rfl_buf_puts(&out, lines ? "" : "]\n");
	return rfl_cli_put(cli, &out, "runs", err);
}

static enum rfl_rc expand_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct files_args *a = args;
	RFL_AUTO(matrix_pick) pick;
	enum rfl_rc rc =
		rfl_cli_matrix_pick(cli, a->operands.items[0], &a->only, a->shard, &pick, err);

	return rc ? rc : (a->format <= FORMAT_CSV ? put_table : put_json)(cli, a, &pick, err);
}

const struct rfl_cmd rfl_cmd_matrix_expand = {
	.name = "matrix expand",
	.summary = "list the runs of a matrix",
	.operands = "FILE",
	.description = "Checks a run matrix (docs/reference/matrix.md) and lists its runs in "
		       "order: id of the configuration, label and, with csv, json and jsonl, the "
		       "command that executes only this run.",
	.example = "roofline matrix expand examples/study-laptop.json\n"
		   "roofline matrix expand matrix.json --shard 0/4 --format jsonl",
	.opts = expand_opts,
	.args_size = sizeof(struct files_args),
	.run = expand_run,
};

#define ARRAY_MAX 1000 /* the default of Slurm's MaxArraySize is 1001 */

static const struct rfl_opt slurm_opts[] = {
	OPT(TEXT, log_dir, RFL_MATRIX_LOG_DIR),
	OPT(LIST, only, RFL_MATRIX_ONLY),
	OPT(INT, shards, .name = "shards", .meta = "N", .def = "0", .min = 0, .max = 100000,
	    .help = "number of tasks in the array; 0: one per run, at most 1000"),
	OPT(INT, at_once, .name = "at-once", .meta = "N", .def = "0", .min = 0, .max = 100000,
	    .help = "number of tasks that may run at the same time; 0: unlimited"),
	OPT(FLAG, retry_failed, .name = "retry-failed", .help = "also repeat failed runs"),
	OPT(LIST, setup, .name = "setup", .meta = "LINE",
	    .help = "lines to insert into the script before the run, such as 'module load cuda'"),
	OPT(TEXT, launch, .name = "launch", .meta = "COMMAND",
	    .help = "command of the shell that starts roofline in a task, such as 'apptainer exec "
		    "--nv study.sif roofline'; default: this program"),
	OPT(TEXT, output, RFL_OPT_OUTPUT, .help = "file for the script; default: standard output"),
	{ .name = NULL },
};

static enum rfl_rc check_words(const struct files_args *a, struct rfl_err *err)
{
	for (size_t i = 1; i < a->operands.n; i++) {
		const char *word = a->operands.items[i];

		if (i == 1 && word[0] != '-')
			return rfl_usage(err,
					 "'%.128s' is not an option of sbatch; use 'matrix slurm "
					 "FILE -- --time=30'",
					 word);
		if (strncmp(word, "--ar", strlen("--ar")) == 0 || strncmp(word, "-a", 2) == 0)
			return rfl_usage(
				err,
				"--array: set by the script; use --shards and --at-once instead");
		if (strpbrk(word, "\n\"\\"))
			return rfl_usage(err,
					 "'%.128s': in a script, an option of sbatch cannot "
					 "contain quotes, backslashes or line breaks; remove them",
					 word);
	}
	for (size_t i = 0; i < a->setup.n; i++)
		if (strchr(a->setup.items[i], '\n'))
			return rfl_usage(err, "--setup: the value has a line break; give each line "
					      "as a separate value");
	if (a->launch && strchr(a->launch, '\n'))
		return rfl_usage(err, "--launch: the value has a line break; write it in one line");
	/* both also appear in a comment in the script */
	if (strchr(a->log_dir, '\n') || strchr(a->operands.items[0], '\n'))
		return rfl_usage(err, "FILE and --log-dir cannot contain line breaks in a script; "
				      "rename the file or directory");
	return RFL_OK;
}

static void put_word(struct rfl_buf *out, const char *before, const char *word)
{
	rfl_buf_puts(out, before);
	rfl_text_shell_word(word, out);
}

/* The environment of all these runs, or NULL if they have several. */
static const char *common_env(const struct rfl_matrix_pick *pick)
{
	const char *env = NULL;

	for (size_t i = 0; i < pick->n; i++) {
		const char *other = pick->m->cells[pick->runs[i] % pick->m->ncells].env;

		if (env && strcmp(env, other) != 0)
			return NULL;
		env = other;
	}
	return env;
}

/* The script redirects the output, because Slurm discards it if its directory does not exist before
 * the script starts. With exec, signals from Slurm reach the program. Unlike sh, bash inherits the
 * function 'module'. Scripts of modules and virtual environments fail with set -u. */
static void write_script(const struct files_args *a, const struct rfl_cli *cli,
			 const struct rfl_matrix_pick *pick, int64_t shards, struct rfl_buf *out)
{
	const struct rfl_matrix *m = pick->m;
	const char *env = common_env(pick);

	rfl_buf_printf(out, "#!/bin/bash\n#SBATCH --job-name=%s\n#SBATCH --array=0-%" PRId64,
		       m->name, shards - 1);
	if (a->at_once)
		rfl_buf_printf(out, "%%%" PRId64, a->at_once);
	rfl_buf_puts(out, "\n#SBATCH --ntasks=1\n#SBATCH --no-requeue\n#SBATCH --output=/dev/null");
	/* The last of several equal options takes effect, so the user's options come last. A
	 * separate value ("--time 30") stays on the line of its option. */
	for (size_t i = 1; i < a->operands.n; i++) {
		const char *word = a->operands.items[i];

		rfl_buf_puts(out, word[0] == '-' ? "\n#SBATCH " : " ");
		rfl_buf_printf(out, strpbrk(word, " \t'#") ? "\"%s\"" : "%s", word);
	}
	rfl_buf_printf(out,
		       "\n#\n# %s: %zu runs in %" PRId64
		       " tasks. Submit it with sbatch from this directory; each task\n# writes to "
		       "a separate directory. To merge the results when all tasks have ended:\n"
		       "#   roofline matrix merge",
		       m->name, pick->n, shards);
	put_word(out, " ", m->path);
	put_word(out, " --log-dir ", a->log_dir);
	put_word(out,
		 "\nset -e\n: \"${SLURM_ARRAY_TASK_ID:?submit this script with sbatch}\"\nlogs=",
		 a->log_dir);
	/* the arrays of two environments write to different directories */
	rfl_buf_puts(out, "\ntask=$logs/tasks/");
	if (env) {
		put_word(out, "", env);
		rfl_buf_puts(out, "-");
	}
	rfl_buf_puts(out, "$SLURM_ARRAY_TASK_ID\nmkdir -p -- \"$task\"\n"
			  "exec >>\"$task/slurm-$SLURM_ARRAY_JOB_ID.out\" 2>&1\n"
			  "echo \"task $SLURM_ARRAY_TASK_ID on $(hostname), GPU "
			  "${CUDA_VISIBLE_DEVICES:-none}\"\n");
	for (size_t i = 0; i < a->setup.n; i++)
		rfl_buf_printf(out, "%s\n", a->setup.items[i]);
	if (a->launch)
		rfl_buf_printf(out, "exec %s", a->launch);
	else
		put_word(out, "exec ", cli->self);
	put_word(out, " matrix run ", m->path);
	rfl_buf_printf(out,
		       " --shard \"$SLURM_ARRAY_TASK_ID/%" PRId64 "\" \\\n"
		       "\t--log-dir \"$task\" --done-in \"$logs\"",
		       shards);
	for (size_t i = 0; i < a->only.n; i++)
		put_word(out, " --only ", a->only.items[i]);
	rfl_buf_puts(out, a->retry_failed ? " --retry-failed\n" : "\n");
}

static enum rfl_rc slurm_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct files_args *a = args;
	RFL_AUTO(matrix_pick) pick = { .m = NULL };
	RFL_AUTO(buf) out = { .len = 0 };
	int64_t shards = a->shards;
	enum rfl_rc rc;

	if ((rc = check_words(a, err)) ||
	    (rc = rfl_cli_matrix_pick(cli, a->operands.items[0], &a->only, NULL, &pick, err)))
		return rc;
	if (shards == 0)
		shards = pick.n < ARRAY_MAX ? (int64_t)pick.n : ARRAY_MAX;
	if ((size_t)shards > pick.n)
		return rfl_usage(err, "--shards: there are only %zu runs; use at most that many",
				 pick.n);
	write_script(a, cli, &pick, shards, &out);
	/* printed unchanged, because it contains file names */
	rc = rfl_cli_deliver(cli, a->output, RFL_FORMAT_CSV, &out, "script", err);
	if (rc == RFL_OK && a->output)
		rfl_log(RFL_LOG_INFO,
			"%s: %zu runs in %" PRId64 " tasks; submit it with 'sbatch %s'", a->output,
			pick.n, shards, a->output);
	return rc;
}

const struct rfl_cmd rfl_cmd_matrix_slurm = {
	.name = "matrix slurm",
	.summary = "write a Slurm job array script for a matrix",
	.operands = "FILE [-- SBATCH-OPTION...]",
	.description =
		"Writes an sbatch script for a job array. The tasks share the runs of a matrix "
		"(docs/reference/matrix.md). Arguments after '--' are options of sbatch. Each task "
		"executes its shard with 'roofline matrix run' and writes to a directory of its "
		"own "
		"in tasks/ of the log directory, so that no two machines append to the same file; "
		"'roofline matrix "
		"merge' merges the rows. Runs that are ok in the log directory are not repeated. "
		"Submit the script from the directory to which relative paths in the matrix refer.",
	.example = "roofline matrix slurm matrix.json --output job.sh -- --gpus=1 "
		   "--cpus-per-task=8 --time=30 --requeue\n"
		   "roofline matrix slurm matrix.json --shards 8 --at-once 4 -- --partition=gpu | "
		   "sbatch",
	.opts = slurm_opts,
	.args_size = sizeof(struct files_args),
	.run = slurm_run,
};

static const struct rfl_opt merge_opts[] = {
	OPT(TEXT, log_dir, RFL_MATRIX_LOG_DIR),
	{ .name = NULL },
};

/* None of the named directories has a ledger: suggest directories in them that have one. */
static enum rfl_rc no_ledger(struct rfl_cli *cli, const struct files_args *a, struct rfl_err *err)
{
	const char *const below[] = { a->log_dir, "logs" };
	const char *names = "", *meant = "";

	for (size_t i = 1; i < a->operands.n; i++) {
		const char *name = a->operands.items[i], *dir;
		bool found = false;

		names = rfl_arena_printf(cli->arena, "%s%s%s", names, *names ? ", " : "", name);
		for (size_t k = 0; k < RFL_ARRAY_LEN(below) && !found; k++) {
			dir = rfl_cli_path(cli, name, below[k]);
			found = rfl_file_exists(rfl_cli_path(cli, dir, "metrics.csv"));
		}
		if (found)
			meant = rfl_arena_printf(cli->arena, "%s %s", meant, dir);
	}
	return rfl_fail(err, RFL_EIO, 0, "%s: no metrics.csv; %s%s%s", names,
			*meant ? "did you mean" : "name directories with a ledger", meant,
			*meant ? "?" : "");
}

static enum rfl_rc merge_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct files_args *a = args;
	const char *const *named = a->operands.items + 1;
	RFL_AUTO(matrix_view) view = { .size = 0 };
	RFL_AUTOPTR(matrix) m = NULL;
	size_t n = a->operands.n - 1;
	struct rfl_merge sum;
	enum rfl_rc rc = rfl_cli_matrix_load(cli, a->operands.items[0], &m, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++)
		if (!rfl_dir_exists(named[i]))
			return rfl_fail(err, RFL_EIO, 0,
					"%s: no such directory; name an existing one", named[i]);
	if (n == 0) {
		const char *tasks = rfl_arena_printf(cli->arena, "%s/tasks", a->log_dir), **folders;

		if ((rc = rfl_dir_list(tasks, rfl_dir_exists, cli->arena, &folders, &n, err)))
			return rc;
		named = folders;
		if (n == 0)
			return rfl_fail(err, RFL_EIO, 0,
					"%s: no task directories; submit the script of 'roofline "
					"matrix slurm', or name directories after the matrix",
					tasks);
	}
	if ((rc = rfl_ledger_merge(named, n, a->log_dir, &sum, err)) ||
	    (rc = rfl_cli_matrix_view(m, a->log_dir, 0, &view, err)))
		return rc;
	if (!sum.folders && a->operands.n > 1) /* perhaps the wrong ones */
		return no_ledger(cli, a, err);
	rfl_cli_printf(cli,
		       "%zu rows added, %zu already present; %zu files added, %zu already present; "
		       "from %zu %s\n",
		       sum.rows, sum.rows_there, sum.files, sum.files_there, sum.folders,
		       sum.folders == 1 ? "directory" : "directories");
	if (sum.empty)
		rfl_cli_printf(cli, "directories without a ledger: %zu\n", sum.empty);
	if (view.cover.surplus)
		rfl_cli_printf(cli,
			       "%zu surplus ok rows; run 'roofline matrix status %s --log-dir %s' "
			       "for a list\n",
			       view.cover.surplus, m->path, a->log_dir);
	rfl_cli_printf(cli, "%s: %zu of %zu runs ok\n", m->name, view.cover.done, view.cover.nruns);
	return RFL_OK;
}

const struct rfl_cmd rfl_cmd_matrix_merge = {
	.name = "matrix merge",
	.summary = "merge the rows of tasks into one log directory",
	.operands = "FILE [DIR...]",
	.description = "Copies metrics.csv, counters.csv, steps/, time/, memory/ and the records "
		       "of environments from the directories DIR (default: all directories in "
		       "tasks/ of the log directory) into the log directory. Existing rows and "
		       "files are kept, so the command can be repeated whenever tasks have ended. "
		       "The source directories are not changed.",
	.example = "roofline matrix merge matrix.json\n"
		   "roofline matrix merge matrix.json logs-0 logs-1 --log-dir logs",
	.opts = merge_opts,
	.args_size = sizeof(struct files_args),
	.run = merge_run,
};
