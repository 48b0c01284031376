/*
 * matrix_slurm.c - roofline matrix slurm: a job array script that farms a matrix out.
 */
#include "cli/cmd.h"

#include <inttypes.h>
#include <limits.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/cmd/matrix.h"
#include "cli/put.h"

#define ARRAY_MAX 1000 /* Slurm's MaxArraySize is 1001 unless the administrator says otherwise */

struct slurm_args {
	struct rfl_opt_list operands, only, setup;
	const char *log_dir, *output, *gpus, *memory, *time, *partition, *account, *qos, *nodelist,
		*constraint, *job_name;
	int64_t shards, at_once, cpus;
	bool requeue, exclusive, retry_failed;
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
	  .help = "also run again what has failed" },
	{ .group = "Asked of Slurm",
	  .name = "gpus", .meta = "GPUS", .kind = RFL_OPT_TEXT, .offset = AT(gpus),
	  .help = "GPUs of a task: 1, or a type and a number such as l4:1" },
	{ .name = "cpus", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(cpus), .def = "0", .min = 0,
	  .max = 100000, .help = "processors of a task; 0 leaves it to Slurm" },
	{ .name = "mem", .meta = "SIZE", .kind = RFL_OPT_TEXT, .offset = AT(memory),
	  .help = "memory of a task, such as 16G" },
	{ .name = "time", .meta = "LIMIT", .kind = RFL_OPT_TEXT, .offset = AT(time),
	  .help = "time limit of a task, such as 30 (minutes) or 2:00:00" },
	{ .name = "partition", .meta = "NAME", .kind = RFL_OPT_TEXT, .offset = AT(partition),
	  .help = "where to run" },
	{ .name = "account", .meta = "NAME", .kind = RFL_OPT_TEXT, .offset = AT(account),
	  .help = "who is charged" },
	{ .name = "qos", .meta = "NAME", .kind = RFL_OPT_TEXT, .offset = AT(qos),
	  .help = "quality of service" },
	{ .name = "nodelist", .meta = "NODES", .kind = RFL_OPT_TEXT, .offset = AT(nodelist),
	  .help = "the machines that the environment stands for" },
	{ .name = "constraint", .meta = "FEATURES", .kind = RFL_OPT_TEXT, .offset = AT(constraint),
	  .help = "features that a machine must have" },
	{ .name = "exclusive", .kind = RFL_OPT_FLAG, .offset = AT(exclusive),
	  .help = "no other job on the machine meanwhile" },
	{ .name = "requeue", .kind = RFL_OPT_FLAG, .offset = AT(requeue),
	  .help = "a task that was preempted is queued again, and goes on" },
	{ .group = "Script",
	  .name = "job-name", .meta = "NAME", .kind = RFL_OPT_TEXT, .offset = AT(job_name),
	  .help = "name of the job; the matrix's when absent" },
	{ .name = "setup", .meta = "LINE", .kind = RFL_OPT_LIST, .offset = AT(setup),
	  .help = "lines of the script before the run, such as 'module load cuda'" },
	{ .letter = 'o', .name = "output", .meta = "FILE", .kind = RFL_OPT_TEXT,
	  .offset = AT(output), .help = "write the script there; standard output when absent" },
	{ .name = NULL },
};
/* clang-format on */

/* ---- what Slurm is told ---- */

struct directive {
	const char *option, *value;
};

static size_t directives_of(const struct slurm_args *a, struct directive out[16])
{
	const struct directive all[] = {
		{ "gpus", a->gpus },         { "mem", a->memory },
		{ "time", a->time },         { "partition", a->partition },
		{ "account", a->account },   { "qos", a->qos },
		{ "nodelist", a->nodelist }, { "constraint", a->constraint },
	};
	size_t n = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(all); i++)
		if (all[i].value)
			out[n++] = all[i];
	return n;
}

/* A value becomes part of a line that Slurm reads: nothing in it may end the value or the line. */
static enum rfl_rc check_value(const char *option, const char *value, struct rfl_err *err)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.,:;+*|&()[]=@%/-";

	if (!value || strspn(value, allowed) == strlen(value))
		return RFL_OK;
	return rfl_fail(err, RFL_EUSAGE, 0,
			"--%s: '%.128s' is not what Slurm takes here: letters, digits and "
			"_.,:;+*|&()[]=@%%/- without blanks",
			option, value);
}

/* What sbatch refuses is better known before the script is. */
static enum rfl_rc check_form(const char *option, const char *value, struct rfl_err *err)
{
	static const struct {
		const char *option, *form, *example;
	} forms[] = {
		{ "time", "^([0-9]+(:[0-9]+){0,2}|[0-9]+-[0-9]+(:[0-9]+){0,2}|infinite|unlimited)$",
		  "30 (minutes), 2:00:00 (hours) or 1-12 (days and hours)" },
		{ "mem", "^[0-9]+([KMGT]B?)?$", "16G, 800M or 0 (all of the machine)" },
		{ "gpus", "^([a-z0-9_.-]+:)?[0-9]+(,([a-z0-9_.-]+:)?[0-9]+)*$", "1 or l4:1" },
	};
	regex_t form;
	bool fits;

	for (size_t i = 0; i < RFL_ARRAY_LEN(forms); i++) {
		if (strcmp(forms[i].option, option) != 0)
			continue;
		if (regcomp(&form, forms[i].form, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
			return rfl_fail(err, RFL_ENOMEM, 0, "--%s: out of memory", option);
		fits = regexec(&form, value, 0, NULL, 0) == 0;
		regfree(&form);
		if (fits)
			continue;
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--%s: '%.128s' is not what Slurm takes here: give %s", option,
				value, forms[i].example);
	}
	return RFL_OK;
}

static enum rfl_rc check_args(const struct slurm_args *a, struct rfl_err *err)
{
	struct directive given[16];
	const size_t n = directives_of(a, given);
	enum rfl_rc rc = check_value("job-name", a->job_name, err);

	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		rc = check_value(given[i].option, given[i].value, err);
	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		rc = check_form(given[i].option, given[i].value, err);
	for (size_t i = 0; i < a->setup.n && rc == RFL_OK; i++)
		if (strchr(a->setup.items[i], '\n'))
			rc = rfl_fail(err, RFL_EUSAGE, 0, "--setup: give one line at a time");
	/* Both stand in a comment, too. */
	if (rc == RFL_OK && (strchr(a->log_dir, '\n') || strchr(a->operands.items[0], '\n')))
		rc = rfl_fail(err, RFL_EUSAGE, 0,
			      "a script cannot name a file whose name has a line break: rename it");
	return rc;
}

static void write_directives(const struct slurm_args *a, const struct rfl_matrix *m, int64_t shards,
			     struct rfl_buf *out)
{
	struct directive given[16];
	const size_t n = directives_of(a, given);

	rfl_buf_printf(out, "#SBATCH --job-name=%s\n", a->job_name ? a->job_name : m->name);
	rfl_buf_printf(out, "#SBATCH --array=0-%" PRId64, shards - 1);
	if (a->at_once)
		rfl_buf_printf(out, "%%%" PRId64, a->at_once);
	rfl_buf_puts(out, "\n#SBATCH --ntasks=1\n");
	if (a->cpus)
		rfl_buf_printf(out, "#SBATCH --cpus-per-task=%" PRId64 "\n", a->cpus);
	for (size_t i = 0; i < n; i++)
		rfl_buf_printf(out, "#SBATCH --%s=%s\n", given[i].option, given[i].value);
	if (a->exclusive)
		rfl_buf_puts(out, "#SBATCH --exclusive\n");
	rfl_buf_printf(out, "#SBATCH --%s\n", a->requeue ? "requeue" : "no-requeue");
	rfl_buf_puts(out, "#SBATCH --output=/dev/null\n");
}

/* ---- the script ---- */

static void put_word(struct rfl_buf *out, const char *word)
{
	rfl_buf_putc(out, ' ');
	rfl_cli_shell_word(word, out);
}

static void write_command(const struct slurm_args *a, const struct rfl_cli *cli,
			  const struct rfl_matrix *m, int64_t shards, struct rfl_buf *out)
{
	rfl_buf_puts(out, "exec");
	put_word(out, cli->self);
	rfl_buf_puts(out, " matrix run");
	put_word(out, m->path);
	rfl_buf_printf(out, " --shard \"$SLURM_ARRAY_TASK_ID/%" PRId64 "\" \\\n", shards);
	rfl_buf_puts(out, "\t--log-dir \"$logs/tasks/$SLURM_ARRAY_TASK_ID\" --done-in \"$logs\"");
	for (size_t i = 0; i < a->only.n; i++) {
		rfl_buf_puts(out, " --only");
		put_word(out, a->only.items[i]);
	}
	rfl_buf_printf(out, "%s\n", a->retry_failed ? " --retry-failed" : "");
}

/* Slurm opens the output before the script could make a folder for it, and loses it when there is
 * none: so the script opens its own. exec: the signals of Slurm reach the program. bash, because
 * 'module' is a function that it inherits and sh does not; without set -u, which the scripts of
 * modules and virtual environments do not bear. */
static void write_script(const struct slurm_args *a, const struct rfl_cli *cli,
			 const struct rfl_matrix *m, size_t nruns, int64_t shards,
			 struct rfl_buf *out)
{
	rfl_buf_puts(out, "#!/bin/bash\n");
	write_directives(a, m, shards, out);
	rfl_buf_printf(out,
		       "#\n# %s: %zu runs in %" PRId64 " tasks. Submit it with sbatch from this "
		       "folder; each task\n# writes to its own folder. When they are done:\n"
		       "#   roofline matrix merge",
		       m->name, nruns, shards);
	put_word(out, m->path);
	rfl_buf_puts(out, " --log-dir");
	put_word(out, a->log_dir);
	rfl_buf_puts(out, "\nset -e\n: \"${SLURM_ARRAY_TASK_ID:?submit this script with sbatch}\"\n"
			  "logs=");
	rfl_cli_shell_word(a->log_dir, out);
	rfl_buf_puts(out,
		     "\nmkdir -p -- \"$logs/tasks/$SLURM_ARRAY_TASK_ID\"\n"
		     "exec >>\"$logs/tasks/$SLURM_ARRAY_TASK_ID/slurm-$SLURM_ARRAY_JOB_ID.out\""
		     " 2>&1\n"
		     "echo \"task $SLURM_ARRAY_TASK_ID on $(hostname), GPU "
		     "${CUDA_VISIBLE_DEVICES:-none}\"\n");
	for (size_t i = 0; i < a->setup.n; i++)
		rfl_buf_printf(out, "%s\n", a->setup.items[i]);
	write_command(a, cli, m, shards, out);
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
	struct rfl_matrix_pick pick = { 0 };
	struct rfl_matrix *m = NULL;
	enum rfl_rc rc = check_args(a, err);

	if (rc == RFL_OK)
		rc = rfl_cli_matrix_load(cli, a->operands.items[0], &m, err);
	if (rc == RFL_OK)
		rc = rfl_cli_matrix_pick(m, &a->only, NULL, &pick, err);
	if (rc == RFL_OK)
		rc = put_script(cli, a, m, pick.n, err);
	rfl_matrix_pick_fini(&pick);
	rfl_matrix_free(m);
	return rc;
}

const struct rfl_cmd rfl_cmd_matrix_slurm = {
	.name = "matrix slurm",
	.summary = "a Slurm job array script for a matrix",
	.operands = "FILE",
	.description =
		"Writes a script for sbatch whose tasks share the runs of a matrix "
		"(docs/matrix.md). Each task runs its shard with 'roofline matrix run' and writes "
		"to tasks/<task> in the log folder, so that no two machines append to one file; "
		"'roofline matrix merge' brings the rows together. What is ok in the log folder "
		"already is not run again. The script is to be submitted from the folder that "
		"relative paths of the matrix are meant for.",
	.example =
		"roofline matrix slurm matrix.json --gpus 1 --cpus 8 --time 30 --requeue --output "
		"job.sh\n"
		"roofline matrix slurm matrix.json --shards 8 --at-once 4 --partition gpu | sbatch",
	.opts = opts,
	.args_size = sizeof(struct slurm_args),
	.operands_offset = AT(operands),
	.run = run,
};
