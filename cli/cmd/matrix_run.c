/*
 * cmd/matrix_loop.c - roofline matrix run: what of a matrix is missing is run; a table of what
 * failed.
 */
#include "cli/cmd.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/cmd/matrix.h"
#include "cli/cmd/matrix_gaps.h"
#include "cli/cmd/matrix_loop.h"
#include "cli/put.h"

struct run_args {
	struct rfl_opt_list operands, only;
	const char *log_dir, *shard, *done_in;
	int64_t shuffle;
	bool retry_failed, dry_run, share_device;
};

#define AT(member) offsetof(struct run_args, member)

static const struct rfl_opt opts[] = {
	RFL_MATRIX_LOG_DIR_ROW(AT(log_dir)),
	RFL_MATRIX_ONLY_ROW(AT(only)),
	RFL_MATRIX_SHARD_ROW(AT(shard)),
	{ .name = "retry-failed",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(retry_failed),
	  .help = "also run again what has failed; what was interrupted is run again in any case" },
	{ .name = "done-in",
	  .meta = "DIR",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(done_in),
	  .help = "another log folder: what is ok there is not run either" },
	{ .name = "shuffle",
	  .meta = "SEED",
	  .kind = RFL_OPT_INT,
	  .offset = AT(shuffle),
	  .def = "-1",
	  .min = -1,
	  .max = INT64_MAX,
	  .help = "another order within each repeat; -1 keeps that of the file" },
	{ .name = "share-device",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(share_device),
	  .help = "do not wait until other runs of a matrix have left the processor or GPU" },
	{ .name = "dry-run",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(dry_run),
	  .help = "print the commands that would be run" },
	{ .name = NULL },
};

static enum rfl_rc print_commands(struct rfl_cli *cli, const struct rfl_matrix_job *job,
				  struct rfl_err *err)
{
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	for (size_t i = 0; i < job->n; i++) {
		rfl_cli_matrix_command(job->m, job->runs[i], job->log_dir, &out);
		rfl_buf_putc(&out, '\n');
	}
	rc = rfl_cli_put(cli, &out, "commands", err);
	rfl_buf_fini(&out);
	return rc;
}

/* ---- what is not done ---- */

/* Why a run is not done. One that could not begin may have failed before: what is to be mended now
 * is told. One without a row whose turn did not come is among those that one line tells of.
 * @return is it told of here */
static bool explain(const struct rfl_matrix_job *job, const struct rfl_matrix_view *view,
		    size_t run, struct rfl_matrix_gap *ret)
{
	const struct rfl_matrix_run *r = &view->cover.runs[run];

	*ret = (struct rfl_matrix_gap){ .run = run, .status = "missing" };
	if (job->refusals[run]) {
		ret->status = "refused";
		ret->reason = job->refusals[run];
	} else if (r->state == RFL_MATRIX_FAILED) {
		ret->status = r->row->status;
		ret->reason = r->row->error_text;
	} else if (job->stopped) {
		return false;
	}
	return true;
}

/* Both folders together. @param done  per run */
static enum rfl_rc mark_done(const struct rfl_matrix_job *job, const struct rfl_matrix_view *view,
			     bool *done, struct rfl_err *err)
{
	struct rfl_matrix_view other = { .ledger = NULL };
	enum rfl_rc rc = RFL_OK;

	if (job->done_in)
		rc = rfl_cli_matrix_view(job->m, job->done_in, &other, err);
	for (size_t i = 0; rc == RFL_OK && i < view->cover.nruns; i++)
		done[i] = view->cover.runs[i].state == RFL_MATRIX_DONE ||
			  (job->done_in && other.cover.runs[i].state == RFL_MATRIX_DONE);
	rfl_matrix_view_fini(&other);
	return rc;
}

/* The table, when there is something in it. @param ok  how many of the chosen runs are done */
static enum rfl_rc put_failures(struct rfl_cli *cli, const struct rfl_matrix_job *job,
				const struct rfl_matrix_pick *pick, const bool *done,
				const struct rfl_matrix_view *view, size_t *ok, struct rfl_err *err)
{
	struct rfl_matrix_gap *gaps = rfl_alloc_array(pick->n, sizeof(*gaps));
	struct rfl_buf out;
	size_t n = 0;
	enum rfl_rc rc;

	if (!gaps)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", job->m->path);
	for (size_t i = 0; i < pick->n; i++) {
		*ok += done[pick->runs[i]];
		if (!done[pick->runs[i]])
			n += explain(job, view, pick->runs[i], &gaps[n]);
	}
	rfl_buf_init(&out, 0);
	rc = rfl_matrix_gaps_render(job->m, gaps, n, RFL_FORMAT_TABLE, &out, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put(cli, &out, "runs that are not done", err);
	rfl_buf_fini(&out);
	free(gaps);
	return rc;
}

/* A run that was killed between its row and the mirror, before or now, may have been the last one.
 * The file of another program is left as it is. */
static void mend(const struct rfl_matrix_view *view)
{
	struct rfl_err why = RFL_ERR_INIT;

	if (rfl_ledger_check(view->path, NULL) == RFL_OK &&
	    rfl_ledger_mend(view->path, &why) != RFL_OK)
		rfl_log(RFL_LOG_WARN, "%s", why.msg);
}

static enum rfl_rc conclude(struct rfl_cli *cli, const struct rfl_matrix_job *job,
			    const struct rfl_matrix_pick *pick, struct rfl_err *err)
{
	const size_t nruns = job->m->ncells * (size_t)job->m->repeats;
	struct rfl_matrix_view view = { .ledger = NULL };
	bool *done = calloc(nruns, sizeof(*done));
	size_t ok = 0;
	enum rfl_rc rc;

	if (!done)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", job->m->path);
	rc = rfl_cli_matrix_view(job->m, job->log_dir, &view, err);
	if (rc == RFL_OK)
		rc = mark_done(job, &view, done, err);
	if (rc == RFL_OK)
		rc = put_failures(cli, job, pick, done, &view, &ok, err);
	if (rc == RFL_OK)
		mend(&view);
	rfl_matrix_view_fini(&view);
	free(done);
	if (rc)
		return rc;
	rfl_log(RFL_LOG_INFO, "%s: %zu of %zu runs ok", job->m->name, ok, pick->n);
	if (job->stopped)
		return rfl_fail(err, RFL_EINTR, 0,
				"stopped by a signal: the same command goes on with what is left");
	if (ok < pick->n)
		return rfl_fail(err, RFL_EFAILED, 0, "%zu of %zu runs are not ok%s", pick->n - ok,
				pick->n,
				job->retry_failed ? ""
						  : "; the same command does what is missing, with "
						    "--retry-failed also what failed");
	return RFL_OK;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct run_args *a = args;
	struct rfl_matrix_pick pick = { 0 };
	struct rfl_matrix_job job = {
		.cli = cli,
		.log_dir = a->log_dir,
		.done_in = a->done_in,
		.retry_failed = a->retry_failed,
		.share_device = a->share_device,
	};
	struct rfl_matrix *m = NULL;
	enum rfl_rc rc = rfl_cli_matrix_load(cli, a->operands.items[0], &m, err);

	job.m = m;
	if (rc == RFL_OK)
		rc = rfl_cli_matrix_pick(m, &a->only, a->shard, &pick, err);
	if (rc == RFL_OK)
		rc = rfl_matrix_job_plan(&job, &pick, err);
	if (rc == RFL_OK && a->shuffle >= 0)
		rfl_matrix_job_shuffle(&job, (uint64_t)a->shuffle);
	if (rc == RFL_OK && a->dry_run) {
		rc = print_commands(cli, &job, err);
	} else if (rc == RFL_OK) {
		rc = rfl_matrix_job_check(&job, err);
		if (rc == RFL_OK)
			rc = rfl_matrix_job_run(&job, err);
		if (rc == RFL_OK)
			rc = conclude(cli, &job, &pick, err);
	}
	rfl_matrix_job_fini(&job);
	rfl_matrix_pick_fini(&pick);
	rfl_matrix_free(m);
	return rc;
}

const struct rfl_cmd rfl_cmd_matrix_run = {
	.name = "matrix run",
	.summary = "run what of a matrix is missing",
	.operands = "FILE",
	.description =
		"Does the runs of a matrix (docs/matrix.md) that have no row yet in metrics.csv of "
		"the log folder: first every configuration once, then every configuration again, "
		"so that drift of the machine meets all alike. Each run is a process of its own; "
		"one that fails has its row and does not keep the others back. The command may be "
		"ended or killed at any moment: given again, it goes on. Several may work on one "
		"log folder: each run is done by one of them, and on each processor and GPU one "
		"run is timed at a time. Exit code 1 when a run is not ok; a table says why.",
	.example = "roofline matrix run examples/matrix-laptop.json\n"
		   "roofline matrix run matrix.json --only lab_gpu/resnet50 --retry-failed\n"
		   "roofline matrix run matrix.json --shard 0/2 --log-dir logs-0",
	.opts = opts,
	.args_size = sizeof(struct run_args),
	.operands_offset = AT(operands),
	.run = run,
};
