/*
 * matrix_slurm.c - roofline matrix slurm: a job array script that farms a matrix out. What follows
 * "--" is sbatch's own and becomes #SBATCH lines.
 */
#include "cli/cmd/matrix.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/put.h"

#define ARRAY_MAX 1000 /* Slurm's MaxArraySize is 1001 unless the administrator says otherwise */

struct slurm_args {
	struct rfl_opt_list operands; /* the matrix, then options of sbatch */
	struct rfl_opt_list only, setup;
	const char *log_dir, *output;
	int64_t shards, at_once;
	bool retry_failed;
};

#define AT(member) offsetof(struct slurm_args, member)

/* clang-format off */
static const struct rfl_opt opts[] = {
	RFL_MATRIX_LOG_DIR_ROW(AT(log_dir)),
	RFL_MATRIX_ONLY_ROW(AT(only)),
	{ .name = "shards", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(shards), .def = "0",
	  .min = 0, .max = 100000,
	  .help = "tasks of the array; 0 is one for each run, at most 1000" },
	{ .name = "at-once", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(at_once), .def = "0",
	  .min = 0, .max = 100000, .help = "tasks that may run at the same time; 0 is any number" },
	{ .name = "retry-failed", .kind = RFL_OPT_FLAG, .offset = AT(retry_failed),
	  .help = "also repeat runs that failed" },
	{ .name = "setup", .meta = "LINE", .kind = RFL_OPT_LIST, .offset = AT(setup),
	  .help = "lines of the script before the run, such as 'module load cuda'" },
	{ .letter = 'o', .name = "output", .meta = "FILE", .kind = RFL_OPT_TEXT,
	  .offset = AT(output), .help = "write the script there; standard output when absent" },
	{ .name = NULL },
};
/* clang-format on */

static enum rfl_rc check_args(const struct slurm_args *a, struct rfl_err *err)
{
	for (size_t i = 1; i < a->operands.n; i++) {
		const char *word = a->operands.items[i];

		if (i == 1 && word[0] != '-')
			return rfl_fail(err, RFL_EUSAGE, 0,
					"'%.128s' is not an option of sbatch; use 'matrix slurm "
					"FILE -- --time=30'",
					word);
		if (strncmp(word, "--array", strlen("--array")) == 0 || strcmp(word, "-a") == 0)
			return rfl_fail(err, RFL_EUSAGE, 0,
					"--array: the script sets it; use --shards and --at-once");
		if (strpbrk(word, "\n\"\\"))
			return rfl_fail(err, RFL_EUSAGE, 0,
					"'%.128s': an option of sbatch cannot have quotes, "
					"backslashes or line breaks in a script",
					word);
	}
	for (size_t i = 0; i < a->setup.n; i++)
		if (strchr(a->setup.items[i], '\n'))
			return rfl_fail(err, RFL_EUSAGE, 0, "--setup: use it once per line");
	/* both are in a comment of the script, too */
	if (strchr(a->log_dir, '\n') || strchr(a->operands.items[0], '\n'))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"a script cannot name a file with a line break in its name: rename "
				"it");
	return RFL_OK;
}

static void put_word(struct rfl_buf *out, const char *before, const char *word)
{
	rfl_buf_puts(out, before);
	rfl_cli_shell_word(word, out);
}

/* Slurm opens the output before the script could make a folder for it, and loses it when there is
 * none: so the script opens its own. exec: the signals of Slurm reach the program. bash, because
 * 'module' is a function that it inherits and sh does not; without set -u, which the scripts of
 * modules and virtual environments do not survive. */
static void write_script(const struct slurm_args *a, const struct rfl_cli *cli,
			 const struct rfl_matrix *m, size_t nruns, int64_t shards,
			 struct rfl_buf *out)
{
	rfl_buf_printf(out, "#!/bin/bash\n#SBATCH --job-name=%s\n#SBATCH --array=0-%" PRId64,
		       m->name, shards - 1);
	if (a->at_once)
		rfl_buf_printf(out, "%%%" PRId64, a->at_once);
	rfl_buf_puts(out, "\n#SBATCH --ntasks=1\n#SBATCH --no-requeue\n#SBATCH --output=/dev/null");
	/* The later of two equal options counts, so sbatch's own come last. A value that is a word
	 * of its own ("--time 30") stays on the line of its option. */
	for (size_t i = 1; i < a->operands.n; i++) {
		const char *word = a->operands.items[i];

		rfl_buf_puts(out, word[0] == '-' ? "\n#SBATCH " : " ");
		rfl_buf_printf(out, strpbrk(word, " \t'#") ? "\"%s\"" : "%s", word);
	}
	rfl_buf_printf(out,
		       "\n#\n# %s: %zu runs in %" PRId64 " tasks. Submit it with sbatch from this "
		       "folder; each task\n# writes to its own folder. When they are done:\n"
		       "#   roofline matrix merge",
		       m->name, nruns, shards);
	put_word(out, " ", m->path);
	put_word(out, " --log-dir ", a->log_dir);
	put_word(out,
		 "\nset -e\n: \"${SLURM_ARRAY_TASK_ID:?submit this script with sbatch}\"\nlogs=",
		 a->log_dir);
	rfl_buf_puts(out,
		     "\nmkdir -p -- \"$logs/tasks/$SLURM_ARRAY_TASK_ID\"\n"
		     "exec >>\"$logs/tasks/$SLURM_ARRAY_TASK_ID/slurm-$SLURM_ARRAY_JOB_ID.out\""
		     " 2>&1\n"
		     "echo \"task $SLURM_ARRAY_TASK_ID on $(hostname), GPU "
		     "${CUDA_VISIBLE_DEVICES:-none}\"\n");
	for (size_t i = 0; i < a->setup.n; i++)
		rfl_buf_printf(out, "%s\n", a->setup.items[i]);
	put_word(out, "exec ", cli->self);
	put_word(out, " matrix run ", m->path);
	rfl_buf_printf(out,
		       " --shard \"$SLURM_ARRAY_TASK_ID/%" PRId64 "\" \\\n"
		       "\t--log-dir \"$logs/tasks/$SLURM_ARRAY_TASK_ID\" --done-in \"$logs\"",
		       shards);
	for (size_t i = 0; i < a->only.n; i++)
		put_word(out, " --only ", a->only.items[i]);
	rfl_buf_puts(out, a->retry_failed ? " --retry-failed\n" : "\n");
}

static enum rfl_rc put_script(struct rfl_cli *cli, const struct slurm_args *a,
			      const struct rfl_matrix *m, size_t nruns, struct rfl_err *err)
{
	int64_t shards = a->shards;
	struct rfl_buf out;
	enum rfl_rc rc;

	if (shards == 0)
		shards = nruns < ARRAY_MAX ? (int64_t)nruns : ARRAY_MAX;
	if ((size_t)shards > nruns)
		return rfl_fail(err, RFL_EUSAGE, 0, "--shards: there are only %zu runs", nruns);
	rfl_buf_init(&out, 0);
	write_script(a, cli, m, nruns, shards, &out);
	if (!a->output) {
		/* exact, as data is: it names files */
		rc = rfl_cli_put_as(cli, RFL_FORMAT_CSV, &out, "script", err);
	} else {
		rc = rfl_buf_check(&out, "script", err);
		if (rc == RFL_OK)
			rc = rfl_file_write(a->output, out.data, out.len, err);
		if (rc == RFL_OK)
			rfl_log(RFL_LOG_INFO,
				"%s: %zu runs in %" PRId64 " tasks; submit it with 'sbatch %s'",
				a->output, nruns, shards, a->output);
	}
	rfl_buf_fini(&out);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct slurm_args *a = args;
	struct rfl_matrix_pick pick = { .m = NULL };
	enum rfl_rc rc = check_args(a, err);

	if (rc == RFL_OK)
		rc = rfl_cli_matrix_pick(cli, a->operands.items[0], &a->only, NULL, &pick, err);
	if (rc == RFL_OK)
		rc = put_script(cli, a, pick.m, pick.n, err);
	rfl_matrix_pick_fini(&pick);
	return rc;
}

const struct rfl_cmd rfl_cmd_matrix_slurm = {
	.name = "matrix slurm",
	.summary = "write a Slurm job array script for a matrix",
	.operands = "FILE [SBATCH-OPTION...]",
	.description =
		"Writes a script for sbatch in which the tasks of an array share the runs of a "
		"matrix (docs/matrix.md). Options of sbatch follow '--'. Each task runs its shard "
		"with 'roofline matrix run' and writes to tasks/<task> in the log folder, so that "
		"no two machines append to one file; 'roofline matrix merge' brings the rows "
		"together. Runs that are ok in the log folder are not repeated. Submit the script "
		"from the folder that relative paths in the matrix refer to.",
	.example = "roofline matrix slurm matrix.json --output job.sh -- --gpus=1 "
		   "--cpus-per-task=8 --time=30 --requeue\n"
		   "roofline matrix slurm matrix.json --shards 8 --at-once 4 -- --partition=gpu | "
		   "sbatch",
	.opts = opts,
	.args_size = sizeof(struct slurm_args),
	.operands_offset = AT(operands),
	.run = run,
};
